"""A GPT-2 model and its training."""
