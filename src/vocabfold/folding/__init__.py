"""Arrays in, Fold out: the paper's objective, its solvers, and one budget over many columns."""
