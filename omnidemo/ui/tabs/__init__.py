"""The tabs of the page and their panels: one file each."""
