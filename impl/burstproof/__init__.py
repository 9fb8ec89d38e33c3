"""burstproof: the FEAGI burst engine on CPU and CUDA, exact to the bit on every backend."""

__version__ = "0.1.0"
