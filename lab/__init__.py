"""The laboratory: answers of real targets, and drafters that learn from them. It imports omnidemo; omnidemo never imports it."""
