"""Language models by name: finding their files, loading them, and spelling their prompts."""
