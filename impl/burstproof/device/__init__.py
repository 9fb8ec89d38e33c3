"""One CUDA device: memory, streams, events and graphs, through CuPy or in numba's simulator."""
