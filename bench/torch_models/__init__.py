"""Models of the zoo as a user of PyTorch would write them, filled with the weights of the ONNX file that the others run.

They are the reference implementations that `torch_sessions` measures. A module here declares TORCH_MODELS, a list of rows;
nothing else needs to know of a new file. Names of weights are those of the zoo's builders. PyTorch is imported when a model
is made.
"""

from xyntra_bench.torch_models._torch_model import TorchModel, torch_models

__all__ = ["TorchModel", "torch_models"]
