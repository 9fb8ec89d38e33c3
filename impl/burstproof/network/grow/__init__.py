"""Genomes: read, checked, and grown into a network."""
