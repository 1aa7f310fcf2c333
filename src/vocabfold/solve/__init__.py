"""Curve -> cuts: the methods that fold one curve, or several under one budget."""
