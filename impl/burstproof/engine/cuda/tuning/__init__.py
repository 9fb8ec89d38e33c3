"""Launch configurations measured on the device at hand, and kept."""
