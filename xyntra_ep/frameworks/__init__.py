"""Ways into our kernels beside ONNX Runtime: operations on arrays of any library (`ops`), and PyTorch (`torch`).

Each makes a `fusion.Graph` of what it is given, has it planned, and runs the islands on the caller's memory. PyTorch is imported
by `torch` alone.
"""
