"""The laboratory's commands. Models are imported when a command needs them."""
