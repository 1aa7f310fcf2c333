"""What the benchmarks and the checks share: measuring, rows of a run, tables on a page, plots."""
