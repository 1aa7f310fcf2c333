"""Folders, engines and rows: nothing here depends on labels or vocabularies."""
