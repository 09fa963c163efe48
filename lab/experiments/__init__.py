"""The papers' claims: `plans` lists the arms, `arm` runs one by replay, `jobs` runs all of them,
`experiment_report` writes the tables."""
