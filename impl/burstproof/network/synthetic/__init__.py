"""Synthetic networks from a seed, on any backend."""
