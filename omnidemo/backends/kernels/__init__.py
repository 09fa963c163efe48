"""What numba compiles. Only `backends/compile_kernels.py` imports it, once the machine code is ready."""
