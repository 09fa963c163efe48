"""What else could draft, along recorded answers: memories of what was written."""
