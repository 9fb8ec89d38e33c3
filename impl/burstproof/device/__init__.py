"""One CUDA device: memory, streams, events and graphs, on CuPy or on numba's simulator."""
