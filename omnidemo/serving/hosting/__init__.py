"""Where the app is hosted: what a Space would refuse in this checkout."""
