"""What numba compiles. `omnidemo.runtime.compiling` alone imports it, when its machine code is ready."""
