"""The test plan: seven stages as data, the pytest plugin, and the runner."""
