"""Loads the plugin of the test plan."""

pytest_plugins = ["stages.plugin"]
