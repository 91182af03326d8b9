"""One picture of a run: a timeline for Perfetto, and a live view (docs/tracing.md)."""
