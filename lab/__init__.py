"""The laboratory: what the project is measured, broken and trained with. It imports omnidemo; omnidemo never
imports it."""
