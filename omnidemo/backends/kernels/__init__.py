"""What numba compiles. `omnidemo.backends.compile_kernels` alone imports it, when its machine code is
ready."""
