"""Training of small Llama models on a CPU: shapes, rows, the lean model, optimisers, the loop."""
