"""Adapter lines: the pool of their trainers, the router among them, and measurements of what they learned."""
