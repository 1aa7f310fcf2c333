"""Codebook: the id of every value of every column, and the folder it is saved to."""
