"""Which drafter suits a target, by configurations, tokenizers and headers of weight files. No weights are
read."""
