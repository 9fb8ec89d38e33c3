"""Cases worked out by hand, one module for each part of the rules."""
