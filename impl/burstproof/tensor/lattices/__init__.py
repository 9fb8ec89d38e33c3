"""The lattice E8 and recursions of the golden ratio, batched."""
