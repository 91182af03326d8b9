"""Adapters of WebGPU: what finds them, and their library."""
