"""Mutation testing: small faults planted in the modules that decide something, and the cases that have to notice."""
