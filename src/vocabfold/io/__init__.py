"""Folders, engines and rows: nothing here knows of labels or vocabularies."""
