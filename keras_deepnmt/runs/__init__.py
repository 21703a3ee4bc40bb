"""Executing a recipe: train, evaluate, average, and the run folder."""
