"""Questions about lazy tensors that come up on the way from them to core-IR ops."""
