"""Language models by name: where their files are, how they are loaded, how their prompts are spelled."""
