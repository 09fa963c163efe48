"""Pairs of real shapes with random weights."""
