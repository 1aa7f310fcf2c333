"""Folders that appear whole or not at all, and how untrusted folders are read."""
