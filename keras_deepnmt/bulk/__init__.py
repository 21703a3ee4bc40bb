"""Work that several processes share, on one machine or on many, by Ray."""
