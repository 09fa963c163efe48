"""Fast forward passes and rounds: the fused Llama, its kernels, CUDA graphs. The rest can be understood
without them."""
