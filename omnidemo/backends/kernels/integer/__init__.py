"""int8 GEMM: 8-bit activations, exact integer sums."""
