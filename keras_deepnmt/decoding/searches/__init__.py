"""The searches: beam search, greedy search and sampling."""
