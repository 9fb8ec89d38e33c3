"""The morphologies as vectorised rules: from the dimensions of two areas to the connected voxels."""
