"""What is decided before a device is touched: kernels, sizes, memory."""
