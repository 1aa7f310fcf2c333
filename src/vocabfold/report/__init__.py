"""Door C: a codebook -> a plain dict of figures -> plots -> one HTML file."""
