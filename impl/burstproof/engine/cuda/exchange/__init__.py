"""How shards on CUDA devices exchange what fired."""
