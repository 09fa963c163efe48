"""Adapter lines: the pool of their trainers, the topics that choose among them, and what they have
learned."""
