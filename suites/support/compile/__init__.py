"""Which kernels are compiled, with what tools, and what resources they were recorded to need."""
