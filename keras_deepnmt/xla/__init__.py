"""Functions compiled by XLA, their cache, and tuned constants."""
