"""Compiled functions are made ready before a test imports them: who imports them first decides where numba keeps their machine code."""

from omnidemo.backends import compile_kernels

compile_kernels.wait()
