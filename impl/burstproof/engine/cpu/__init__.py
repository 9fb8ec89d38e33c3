"""The burst engine on the CPU: numba kernels on one core or many."""
