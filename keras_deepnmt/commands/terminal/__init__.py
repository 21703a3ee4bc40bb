"""Terminal input and output: progress, error messages and standard input."""
