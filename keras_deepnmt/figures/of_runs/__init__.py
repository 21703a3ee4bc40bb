"""The figures of one run, a module for each analysis."""
