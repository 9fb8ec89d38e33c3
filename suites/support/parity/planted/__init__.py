"""Faults planted in the real engines: a line of their source is edited in a copy of the package, which then runs.

What runs is the engine itself, kernels and shaders included, with one rule wrong; ``planted_check`` holds it against
the cases and mixes that every backend has to pass. There is a module of faults for each engine. Where the process that
runs needs no device, a fault is tried in a fork of it (``forks``), which compiles what the fault changes (``reuse``).
"""
