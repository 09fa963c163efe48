"""From traces to a new version: losses, the training step, the processes that make it, and what it was
worth."""
