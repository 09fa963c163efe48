"""What further ways of speculative decoding would bring, simulated along recorded answers."""
