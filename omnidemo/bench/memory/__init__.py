"""Whether memory or the time of a round grows."""
