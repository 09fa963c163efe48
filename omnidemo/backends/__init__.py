"""Fast passes and fast rounds: the fused Llama with its kernels and CUDA graphs. The other wings can be
understood without it."""
