"""A drafter that reads what the target's output layer read: recorded states, training, scores."""
