"""Corpora known by name: where their texts come from, and finding them."""
