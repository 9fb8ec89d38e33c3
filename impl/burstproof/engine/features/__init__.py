"""What the fast engines share of FEATURES.md: derived constants, tables, small rules, and the memory machine."""
