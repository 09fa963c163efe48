"""Rows and numbers → plotly figures as plain dicts. Pure; plotly is imported in this package only."""
