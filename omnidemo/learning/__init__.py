"""How a drafter learns from traffic: updates, judged versions, adapter lines, probes."""
