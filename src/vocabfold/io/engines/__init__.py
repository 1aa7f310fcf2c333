"""Where SQL runs: DuckDB in this process, Spark on the caller's cluster."""
