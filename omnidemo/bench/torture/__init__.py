"""Everything that may go wrong with the app, on purpose: kills, faults, damaged files, bad inputs, load and strangers; see `run`."""
