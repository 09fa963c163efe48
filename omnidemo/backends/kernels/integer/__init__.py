"""Products in whole numbers: activations of eight bits, exact sums."""
