"""Counts -> Codebook."""
