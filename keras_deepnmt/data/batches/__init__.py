"""Turns a prepared folder into padded batches: shapes, order, datasets."""
