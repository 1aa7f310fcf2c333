"""Whatever a caller gives as data <-> batches of rows."""
