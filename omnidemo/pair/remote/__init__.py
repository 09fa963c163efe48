"""Pairs whose answers or targets compute in another process: the app's side, the computing side, and the
messages between them."""
