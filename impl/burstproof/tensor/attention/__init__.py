"""Scaled dot-product attention, and its flash kernels."""
