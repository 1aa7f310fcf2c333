"""Codebook and figures -> one HTML page."""
