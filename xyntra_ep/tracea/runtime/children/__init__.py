"""Programs for processes of their own: drivers and kernels that are tried may crash or hang, and take only these along. Each file
is run by its path and imports nothing of ours, so that it starts fast.
"""
