"""Speculative decoding: the loop, a round, and its parts. Read `engine.py` first, then `backend.py`."""
