"""Curve -> cuts: the exact solver, the paper's algorithms, and what they are compared with."""
