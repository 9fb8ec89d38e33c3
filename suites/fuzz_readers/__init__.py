"""Fuzzing of everything that reads a file: ``python -m suites.fuzz_readers``."""
