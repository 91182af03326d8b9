"""Products by matrix units that are described by a table of shapes (`semantic_ir/gpu/matrix_dot.py`). Each file with a VARIANTS
list is read by `doctor/variants.py`."""
