"""Arrays on NumPy and CuPy: backends, element types, memory, transfers."""
