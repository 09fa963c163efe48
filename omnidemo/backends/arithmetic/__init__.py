"""The arithmetics of products with packed weights that are not float32, as numpy computes them."""
