"""Online distillation of the drafter: updates, evaluated versions, adapter lines."""
