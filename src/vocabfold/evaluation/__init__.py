"""What a codebook is worth: on new rows, at other budgets, against other methods."""
