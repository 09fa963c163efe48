"""The commands of the command line. Models and pages are imported when a command needs them."""
