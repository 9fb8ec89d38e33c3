"""The burst engine on one CUDA device."""
