"""Tells what a run will need, from everything up to its first updates."""
