"""What a network is and where it comes from."""
