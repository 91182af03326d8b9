"""Measures sessions against ONNX Runtime's CPU provider and stores what it saw; `reports` reads that."""
