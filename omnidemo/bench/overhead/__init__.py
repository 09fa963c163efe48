"""What serving an answer costs beside decoding it."""
