"""The targets of kernels, a file each: what finds its devices, and what makes kernels for them.

Option `backend`, the doctor, `backend=auto`, trials and benchmarks read `BACKENDS`, and nobody else names a target. `_backend.py`
says what a row has to answer. In native code its devices are a class beside it (native/devices/device.h).
"""

from xyntra_ep.registry import Registry
from xyntra_ep.tracea.backends._backend import LIBRARY, Backend, DeviceBackend, DeviceTarget

__all__ = ["BACKENDS", "LIBRARY", "Backend", "DeviceBackend", "DeviceTarget"]

BACKENDS = Registry[Backend](__name__, "BACKENDS")
