"""Every method's greedy ids against transformers' own, on tiny models of every architecture."""
