"""Loads the pytest plugin of the test plan, and lets assertions in ``suites.support`` show their values."""

import pytest

pytest.register_assert_rewrite("suites.support")

pytest_plugins = ["stages.plugin"]
