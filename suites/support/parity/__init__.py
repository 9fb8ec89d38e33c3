"""What judges an engine: hand-made cases, mixed and large networks, planted faults, every backend."""
