"""Operators of other domains than ONNX's own: com.microsoft, ai.onnx.ml, ai.xyntra."""
