"""What the commands that measure and the page's Compare share: files of prompts, tables, methods side by
side, a drafter that learns."""
