"""`Pair`: a target and a drafter, ready to generate."""
