"""Models of the zoo as a user of PyTorch would write them, filled with the weights of the ONNX file that the others run.

A module here declares TWINS, a list of rows; nothing else needs to know of a new file. Names of weights are those of the zoo's
builders. PyTorch is imported when a twin is made.
"""

from bench.twins._twin import Twin
from zoo import Registry

twins: Registry[Twin] = Registry("bench.twins", "TWINS")

__all__ = ["Twin", "twins"]
