"""A folder with one more target, as if its file stood in xyntra_ep/tracea/backends."""
