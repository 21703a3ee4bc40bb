"""Functions compiled by XLA, what is kept of them, and what is tuned."""
