"""The version of the package, for files and caches that name their producer."""

__version__ = "0.1.0"
