"""What serving an answer costs beside decoding it, and whether memory grows."""
