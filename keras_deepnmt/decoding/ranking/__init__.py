"""Which hypotheses are better: their scores, and the best that ended."""
