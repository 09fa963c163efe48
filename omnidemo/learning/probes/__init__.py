"""Versions of a drafter, measured on recorded answers."""
