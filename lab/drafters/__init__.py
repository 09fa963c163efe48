"""Drafters for real targets: answers, vocabularies, rows, training, scores."""
