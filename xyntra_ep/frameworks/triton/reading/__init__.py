"""From the source of a `@triton.jit` kernel and its launch to core IR: what is read, and what is not, is in docs/triton.md."""
