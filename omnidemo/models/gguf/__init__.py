"""GGUF files, read by ourselves: header, weights, tokenizer, and where they are on this machine."""
