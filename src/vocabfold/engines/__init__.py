"""Where rows are read and SQL text runs."""
