"""Finds how large a part of a batch fits in memory."""
