"""Recorded and small networks."""
