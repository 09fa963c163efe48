"""What stands around an answer of a session."""
