"""Pairs of real shapes with random weights, and how the cost of a round grows."""
