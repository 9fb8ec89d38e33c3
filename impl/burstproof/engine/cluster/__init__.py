"""One network over MPI ranks: launch, exchange, and a watch over the ranks."""
