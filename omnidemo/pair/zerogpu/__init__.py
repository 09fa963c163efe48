"""ZeroGPU: the pair's models compute in another process, which may be new or old; everything else stays where
it is."""
