"""One network over MPI ranks: launch, exchange, and detection of lost ranks."""
