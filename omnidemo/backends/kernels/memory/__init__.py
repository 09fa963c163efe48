"""What memory proposes: copies, continuations, and the chain of both."""
