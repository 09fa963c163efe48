"""From traces to a new version: losses, training steps, the processes that run them, evaluation."""
