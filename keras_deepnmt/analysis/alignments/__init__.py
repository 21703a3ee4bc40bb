"""Alignments of words by attention, and what they serve for."""
