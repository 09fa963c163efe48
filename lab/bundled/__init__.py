"""The corpus and the training of the bundled models."""
