"""Whether a GPU kernel is legal and free of races: run on every kernel when it is made."""
