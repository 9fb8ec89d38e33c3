"""What a run shows: spikes, statistics per cortical area, raster pictures; for Python and for the command."""
