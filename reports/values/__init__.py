"""What a run measured and what was decided about it: frozen values, their units, and their JSON form."""
