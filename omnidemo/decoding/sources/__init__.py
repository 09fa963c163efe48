"""Drafts from memory: prompt lookup in the chat and in earlier answers, and what followed short contexts."""
