"""WGSL, the language of WebGPU. Read first: `text.py`."""
