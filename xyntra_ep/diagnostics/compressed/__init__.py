"""`xyntra compress`: constant matrices as products of two of low rank, where that pays (docs/low-rank.md)."""
