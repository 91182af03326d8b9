"""What planning needs of the system: compilers, the cache on disk, devices, child processes.

Comes in: source text of kernels (`kernel_source.py`). Goes out: compiled files in the cache, by content. Drivers and compilers
that may crash run in child processes (`children/`). Read first: `kernel_cache.py`, then `compilers.py` and `cache_root.py`.
"""
