"""Fuzzing of everything that reads a file: ``python -m suites.support.fuzz_readers``."""
