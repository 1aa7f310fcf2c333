"""Folders that appear whole or not at all, and what strangers' folders may hold."""
