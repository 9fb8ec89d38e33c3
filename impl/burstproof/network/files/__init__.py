"""Files that hold networks: the package's own and the engine's binary."""
