"""The papers' claims: `plans` says what runs, `arm` runs one arm by replay, `jobs` runs all of them,
`experiment_report` shows it."""
