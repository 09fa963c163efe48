"""Answers that are more than one chat: repeated tasks, drafts of other machines, closed pages."""
