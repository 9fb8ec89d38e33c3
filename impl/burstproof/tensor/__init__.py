"""Array operations with one face and two implementations, NumPy and CuPy; knows nothing of bursts."""
