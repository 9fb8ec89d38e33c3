"""What a burst does: the engine protocol, the executable specification and the backends."""
