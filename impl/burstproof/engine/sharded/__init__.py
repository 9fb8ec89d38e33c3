"""One network on many engines: partitions, shards by target, and their exchange of what fired."""
