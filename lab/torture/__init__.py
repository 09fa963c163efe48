"""Everything that may go wrong with the app, on purpose: kills, faults, damaged files, bad input, load and
strangers; see `run_torture`."""
