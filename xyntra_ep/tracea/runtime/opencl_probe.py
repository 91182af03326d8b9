"""Lists the OpenCL devices and tries each with a small kernel. Run as a program of its own: a broken driver may end the process.

Prints lines of JSON after a mark, because drivers print too: {"devices": [...]}, then for each device {"trying": n} and
{"tried": n, "problem": ""}; instead of all that {"missing": why, "kind": "package" or "driver"}.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any

MARK = "xyntra-opencl "
_TEXT = """__kernel void probe(__global const float *x, __global float *y) {
  __local float shared[4];
  shared[get_local_id(0)] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  y[get_global_id(0)] = shared[3 - get_local_id(0)];
}
"""


def main() -> None:
    try:
        import pyopencl as cl
    except ImportError as error:
        _say({"missing": f"pyopencl cannot be imported ({error})", "kind": "package"})
        return
    try:
        places = [(p, d) for p in range(len(cl.get_platforms())) for d in range(len(cl.get_platforms()[p].get_devices()))]
    except cl.Error as error:  # also when no driver is registered
        _say({"missing": f"there is no OpenCL driver ({error})", "kind": "driver"})
        return
    devices = [cl.get_platforms()[p].get_devices()[d] for p, d in places]
    facts = [_facts(device, *place) for device, place in zip(devices, places, strict=True)]
    _say({"devices": [{**fact, "identity": _identity(devices, number)} for number, fact in enumerate(facts)]})
    for number, device in enumerate(devices):
        _say({"trying": number})
        _say({"tried": number, "problem": _try(device)})


def _facts(device: Any, platform_number: int, device_number: int) -> dict[str, Any]:
    import pyopencl as cl

    return {
        "place": [platform_number, device_number],
        "name": device.name.strip(),
        "platform": device.platform.name.strip(),
        "version": device.version.strip(),
        "is_cpu": bool(device.type & cl.device_type.CPU),
        "compute_units": device.max_compute_units,
        "max_threads": device.max_work_group_size,
        "shared_bytes": device.local_mem_size,
        "memory_bytes": device.global_mem_size,
        "vendor": device.vendor.strip(),
        "clock_mhz": device.max_clock_frequency,
        "has_half": "cl_khr_fp16" in device.extensions.split(),
        "divides_exactly": bool(device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT),
    }


def _identity(devices: Sequence[Any], number: int) -> str:
    """As native code spells it (native/opencl/opencl_device.cc)."""
    spelled = [f"OpenCL / {d.platform.name} / {d.name} / {d.driver_version}" for d in devices[: number + 1]]
    before = spelled[:-1].count(spelled[-1])
    return spelled[-1] + (f" #{before}" if before else "")


def _try(device: Any) -> str:
    """Why a kernel cannot be built and run; empty when it can."""
    import numpy as np
    import pyopencl as cl

    x = np.arange(4, dtype=np.float32)
    y = np.zeros_like(x)
    no_cache: Any = False  # of binaries, pyopencl's own: the question is whether the driver compiles
    try:
        context = cl.Context([device])
        queue = cl.CommandQueue(context)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # compilers talk about successes too
            program = cl.Program(context, _TEXT).build(cache_dir=no_cache)
        source = cl.Buffer(context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
        target = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, y.nbytes)
        cl.Kernel(program, "probe")(queue, (4,), (4,), source, target)
        cl.enqueue_copy(queue, y, target)
    except (cl.Error, OSError) as error:
        return (str(error).strip().splitlines() or ["it fails without a message"])[0]
    return "" if (y == x[::-1]).all() else f"it computes {y.tolist()} where {x[::-1].tolist()} is right"


def _say(fact: dict[str, Any]) -> None:
    print(MARK + json.dumps(fact), flush=True)


if __name__ == "__main__":
    main()
