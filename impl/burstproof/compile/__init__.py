"""Compile, load and launch device code; knows nothing of bursts."""
