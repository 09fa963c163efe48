"""A pair whose answers are written in another process: the app's side, the side that computes, and the values
that go between them."""
