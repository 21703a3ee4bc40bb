"""Terminal input and output: progress, warnings, errors and standard input."""
