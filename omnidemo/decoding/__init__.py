"""One round of speculative decoding, its parts, and the loop around it. Read `engine.py` first, then
`backend.py`."""
