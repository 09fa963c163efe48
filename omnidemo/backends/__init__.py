"""Fast passes and fast rounds: the fused Llama with its kernels and CUDA graphs. Nobody needs to enter to
understand the rest."""
