"""Versions of a drafter's adapter on disk, and the acceptance head that lies beside them."""
