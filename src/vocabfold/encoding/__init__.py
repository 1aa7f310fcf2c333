"""Codebook + rows -> ids; training rows out of fold."""
