"""Option parsing: the parser of one command and the options they share."""
