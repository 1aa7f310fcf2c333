"""Rows -> Counts: the rows of every value, by label."""
