"""From corpora to a prepared folder: filters, tokenizers, shards, manifest."""
