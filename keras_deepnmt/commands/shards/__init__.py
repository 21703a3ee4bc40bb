"""Parts of `deepnmt translate-files`: many files, translated by workers."""
