"""A differential fuzzer: random networks on a backend and on the reference, and the smallest form of what differs."""
