"""ZeroGPU: only the pair's models compute in another process, which may be forked anew for each answer."""
