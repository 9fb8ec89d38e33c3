"""One network on several shards: partitions, shards that own their incoming synapses, exchange of fired lists."""
