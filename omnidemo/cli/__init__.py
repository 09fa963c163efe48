"""The command line's parts. Models and pages are imported when a command needs them."""
