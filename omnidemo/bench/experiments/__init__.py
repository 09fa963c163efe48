"""The papers' claims as experiments: `plans` says what runs, `arm` runs one arm by replay, `jobs` all of them, `report` shows it."""
