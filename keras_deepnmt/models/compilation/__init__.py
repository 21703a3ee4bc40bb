"""Programs for XLA that are the same in every process."""
