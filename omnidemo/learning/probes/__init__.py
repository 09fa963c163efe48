"""A drafter version measured on recorded answers."""
