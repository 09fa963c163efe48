"""What holds a change to the commit before it: the same ids, and as fast."""
