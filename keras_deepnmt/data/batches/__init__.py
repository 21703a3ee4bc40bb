"""From a prepared folder to padded batches: shapes, order, datasets."""
