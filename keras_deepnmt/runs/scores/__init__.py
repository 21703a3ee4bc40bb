"""Scores of runs: the file that keeps them, and translations to compare."""
