"""The record of a run, its verdicts and reports (``python -m reports``)."""
