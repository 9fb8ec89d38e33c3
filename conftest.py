"""Loads the plugin of the test plan, and shows what failed where a helper asserts."""

import pytest

pytest.register_assert_rewrite("suites.support")

pytest_plugins = ["stages.plugin"]
