"""The kernels of the CUDA engine, and what they share with the host."""
