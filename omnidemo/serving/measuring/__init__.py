"""Measurements of commands and of the page's Compare: prompt files, tables, methods side by side,
learning."""
