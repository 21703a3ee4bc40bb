"""Benchmark scripts and their helpers.

The scripts put the repository's root on `sys.path` and import each other's
helpers from there, as `benchmarks.<folder>.<module>`.
"""
