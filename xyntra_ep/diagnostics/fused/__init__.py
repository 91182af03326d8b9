"""`xyntra fuse`: what XyntraEP makes of a model, as a file."""
