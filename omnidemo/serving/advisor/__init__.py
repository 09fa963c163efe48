"""Which drafter for a target: what configurations, tokenizers and headers of weight files say, before any
weights are read."""
