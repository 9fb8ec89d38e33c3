"""Small checkouts for every module of this folder."""

from suites.unit.stages.test_runner import checkout

__all__ = ["checkout"]
