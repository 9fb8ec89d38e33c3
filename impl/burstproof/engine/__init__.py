"""The engines: the protocol, the executable specification and the backends."""
