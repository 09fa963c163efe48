"""Drafts that are copied from the text."""
