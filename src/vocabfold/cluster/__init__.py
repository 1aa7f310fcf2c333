"""The steps where rows or values outgrow one machine: they stay on the caller's Spark cluster."""
