"""Drafts from memory: ids that are copied from the text, or that followed the same context before."""
