"""What ATen's operators are in ONNX's terms, a row each (`conversion.AtenRow`)."""
