"""Training of drafters on traffic: updates, judged versions, adapter lines."""
