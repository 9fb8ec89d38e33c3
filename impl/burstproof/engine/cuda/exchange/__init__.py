"""The exchange of firings between shards on CUDA devices."""
