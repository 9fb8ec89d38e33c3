"""What machine this is: inventory, gates, prerequisites, telemetry and peaks. Facts, never a verdict."""
