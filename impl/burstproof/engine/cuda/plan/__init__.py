"""Decisions that need no device: kernels, sizes, memory."""
