"""One round of speculative decoding, what it needs, and the loop around it. Read `engine.py` first, then
`backend.py`."""
