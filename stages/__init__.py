"""The test plan: stages as data, the pytest plugin, and the runner."""
