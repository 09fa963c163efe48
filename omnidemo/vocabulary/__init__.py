"""Tokenizers as bytes: vocabularies, the map between two of them, and the n-gram cache."""
