"""What every room may use: checks of arguments, words, progress; no columns, no SQL."""
