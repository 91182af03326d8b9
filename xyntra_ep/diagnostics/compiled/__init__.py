"""Models that are compiled ahead of time."""
