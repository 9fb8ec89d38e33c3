"""The host's side of the CUDA engine: buffers, batches, graphs, uploads, fired lists."""
