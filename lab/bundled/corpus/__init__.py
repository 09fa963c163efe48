"""The generated corpus of the bundled models: seeded, combinatorial, no copied text."""
