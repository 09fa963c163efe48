"""What could draft beside the drafter as it is: the target's own first layers."""
