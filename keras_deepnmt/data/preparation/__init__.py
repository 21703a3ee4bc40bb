"""Turns corpora into a prepared folder: filters, tokenizers, id shards."""
