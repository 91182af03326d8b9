"""Whether claiming pays: what nodes cost ONNX Runtime and us, and the sizes that are assumed for it."""
