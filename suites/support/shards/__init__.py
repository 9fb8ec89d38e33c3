"""Sharded networks: partitions, ranks, links between GPUs."""
