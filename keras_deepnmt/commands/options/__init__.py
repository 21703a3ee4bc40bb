"""Command-line options: the parser, and options that several commands use."""
