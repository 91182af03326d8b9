"""How ONNX Runtime comes to know the provider: open the library, give it the planner, register it.

`import xyntra_ep` does this once per process. It touches no device and starts no process or thread, so a process may
fork afterwards.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import shutil
import sys
import threading
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from xyntra_ep import ending, knobs
from xyntra_ep.errors import ConfigError, XyntraError
from xyntra_ep.provider.callback import make_callback
from xyntra_ep.tracea.backends import BACKENDS, DeviceBackend
from xyntra_ep.trusted_file import read_trusted

EP_NAME = "XyntraEP"
OLDEST_ORT = (1, 25, 1)
# Knobs that do not change a plan; all others enter the digest of a graph.
_NO_PART_OF_A_PLAN = frozenset({"register", "debug", "compile_timeout_s", "jobs", "cache_dir", "zoo_dir", "xdg_cache_home"})
_WARNING = 2  # of ONNX Runtime's severities

# Where the runtime looks for one (xyntra_ep/tracea/runtime/compilers.py), besides $XYNTRA_CC.
_COMPILERS = ("clang", *(f"clang-{n}" for n in range(24, 15, -1)), "gcc", *(f"gcc-{n}" for n in range(17, 11, -1)), "cc", "zig")

_PACKAGE = Path(__file__).resolve().parent.parent
_LIBRARY = "libxyntra_ep.so"


@dataclass(slots=True)
class _State:
    """Of the process. The library and the callback stay: native code holds pointers to them."""

    library: ctypes.CDLL | None = None
    callback: Any = None
    registered: bool = False
    said: set[str] = field(default_factory=set)  # of what is said once
    problem: XyntraError | None = None


_state = _State()
_lock = threading.RLock()


def get_library_path() -> str:
    """The plugin library, for `onnxruntime.register_execution_provider_library`."""
    return str(_PACKAGE / _LIBRARY)


def get_ep_name() -> str:
    """The one provider in the library."""
    return EP_NAME


def get_ep_names() -> list[str]:
    """All providers in the library."""
    return [EP_NAME]


def register() -> None:
    """Make `XyntraEP` known to ONNX Runtime; once is enough, more does no harm. Raises when that cannot be."""
    with _lock:
        if _state.registered:
            return
        ort = _import_ort()
        library()
        if EP_NAME not in ort.get_available_providers():
            try:
                ort.register_execution_provider_library(EP_NAME, get_library_path())
            except Exception as error:  # ONNX Runtime's own classes have no common base of their own
                raise ConfigError(str(error), where="onnxruntime refused the provider library") from error
        _state.registered = True
        _state.problem = None
        say_unknown()


def register_on_import() -> None:
    """As `register()`, for `import xyntra_ep`: never raises. What `register()` would raise is logged, because ONNX Runtime says
    no more than that it does not know the provider; `problem()` tells it, too.
    """
    try:
        if knobs.current().register:
            register()
    except XyntraError as error:
        _state.problem = error
    except Exception as error:
        _state.problem = XyntraError(f"{type(error).__name__}: {error}", where="registration")
    if _state.problem is not None:
        import logging  # seldom needed, and this is part of the package's import

        logging.getLogger(__name__).warning("%s is not registered: %s", EP_NAME, _state.problem)


def say(level: int, text: str) -> bool:
    """To ONNX Runtime's log, as severe as ``level`` (of its own: 1 is INFO, 2 WARNING); whether there was one to say it to."""
    return bool(library().xyntra_say(level, text.encode("utf-8", "replace")))


def say_unknown() -> None:
    """Warn of what is set and read by nobody, of each name once in a process."""
    environment = knobs.current()
    if (environment.log_level or "").strip().lower() == "error":
        return
    lines = knobs.unknown_now()
    if environment.config is not None or os.path.lexists("fusion.toml"):
        from xyntra_ep import options  # only where it matters: this runs at import

        lines = options.unknown()
    for line in lines:
        if line not in _state.said and say(_WARNING, f"{EP_NAME}: {line}"):
            _state.said.add(line)


def problem() -> XyntraError | None:
    """Why the provider could not be registered when the package was imported."""
    return _state.problem


def default_cache_dir() -> Path:
    """Where sessions that say nothing themselves keep kernels and plans."""
    environment = knobs.current()
    if environment.config is not None and not environment.cache_dir:
        from xyntra_ep import options  # only where it matters: this runs at import

        try:
            return options.parse({}).cache_dir
        except ConfigError:  # which no session survives: each of them says so
            pass
    return environment.cache_root


def is_registered() -> bool:
    return _state.registered


def library() -> ctypes.CDLL:
    """The library, opened and with the planner attached. The same instance that ONNX Runtime uses."""
    with _lock:
        if _state.library is None:
            opened = _open()
            attach(opened, make_callback(opened))
            ending.at_end(lambda: _detach(opened))
            _state.library = opened
        return _state.library


def attach(opened: ctypes.CDLL, callback: Any) -> None:
    """Give native code its planner, and what besides a graph decides about plans."""
    _state.callback = callback  # native code holds a bare pointer to it
    opened.xyntra_attach(
        callback,
        _code_version().encode(),
        _cpu_features().encode(),
        "\n".join([_compiler_id(), *_devices(opened)]).encode(),
        os.fsencode(default_cache_dir()),
        "\n".join(watched_variables()).encode(),
    )


def _detach(opened: ctypes.CDLL) -> None:
    """Native code stays when Python has gone: it must not call it any more, nor return threads to it."""
    python = ctypes.pythonapi
    is_going = getattr(python, "Py_IsFinalizing", None) or python._Py_IsFinalizing  # before Python 3.13
    opened.xyntra_python_ends(is_going, python.PyGILState_GetThisThreadState)


def watched_variables() -> list[str]:
    """The environment variables whose values decide about plans."""
    ours = [knobs.variable_of(field.name) for field in fields(knobs.Knobs) if field.name not in _NO_PART_OF_A_PLAN]
    return [*ours, "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"]  # which decide what the first GPU is


def _import_ort() -> Any:
    try:
        import onnxruntime as ort
    except ImportError as error:
        raise ConfigError(f"onnxruntime cannot be imported ({error})", where=EP_NAME, hint="pip install onnxruntime") from error
    version = str(getattr(ort, "__version__", ""))
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if numbers < OLDEST_ORT or numbers[0] != OLDEST_ORT[0]:
        oldest = ".".join(map(str, OLDEST_ORT))
        raise ConfigError(
            f"onnxruntime {version or 'of unknown version'} is not supported",
            where=EP_NAME,
            hint=f"install {oldest} or newer, below 2.0: pip install -U onnxruntime",
        )
    return ort


def _open() -> ctypes.CDLL:
    path = get_library_path()
    try:
        opened = ctypes.CDLL(path)
    except OSError as error:
        if not os.path.lexists(path) and (installed := _hidden_by(_PACKAGE)) is not None:
            raise ConfigError(
                f"this is the source folder, which has no library; the installed package is at {installed}",
                where=str(_PACKAGE),
                hint="run from another folder, or `make native` here",
            ) from error
        raise ConfigError(
            f"the library cannot be opened ({error})",
            where=path,
            hint="reinstall xyntra-ep, or `make native` in a checkout",
        ) from error
    opened.xyntra_attach.argtypes = [ctypes.c_void_p, *[ctypes.c_char_p] * 5]
    opened.xyntra_attach.restype = None
    opened.xyntra_reply.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64]
    opened.xyntra_reply.restype = None
    opened.xyntra_say.argtypes = [ctypes.c_int, ctypes.c_char_p]
    opened.xyntra_version.restype = ctypes.c_char_p
    opened.xyntra_api_version.restype = ctypes.c_uint32
    opened.xyntra_hash128.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_char_p]
    opened.xyntra_hash128.restype = None
    opened.xyntra_pool_bytes.restype = ctypes.c_uint64
    opened.xyntra_counts.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
    opened.xyntra_counts.restype = ctypes.c_uint64
    opened.xyntra_quiet_ms.argtypes = [ctypes.c_int64]
    opened.xyntra_quiet_ms.restype = ctypes.c_int64
    opened.xyntra_give_back_file_pages.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    opened.xyntra_give_back_file_pages.restype = ctypes.c_uint64
    opened.xyntra_take_report.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64]
    opened.xyntra_take_report.restype = ctypes.c_uint64
    opened.xyntra_cuda_at_hand.argtypes = [ctypes.c_char_p]
    opened.xyntra_cuda_at_hand.restype = ctypes.c_int
    opened.xyntra_profile.argtypes = [ctypes.c_int]
    opened.xyntra_profile.restype = None
    opened.xyntra_take_profile.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
    opened.xyntra_take_profile.restype = ctypes.c_uint64
    opened.xyntra_time_kernel.argtypes = [
        *[ctypes.c_char_p] * 4,
        ctypes.c_uint32,
        ctypes.c_int64,
        ctypes.POINTER(ctypes.c_uint64),
        ctypes.c_uint32,
        ctypes.POINTER(ctypes.c_int32),
        ctypes.c_uint32,
        ctypes.POINTER(ctypes.c_int64),
        ctypes.c_uint32,
        ctypes.c_char_p,
        ctypes.c_uint64,
    ]
    return opened


def _hidden_by(package: Path) -> Path | None:
    """The installed package that an import would find if the source folder ``package`` did not come first."""
    found = (Path(entry or os.curdir).resolve() / package.name for entry in sys.path)
    return next((other for other in found if other != package and (other / _LIBRARY).is_file()), None)


def source_folder_here() -> Path | None:
    """The source folder without a library that `python` takes for the package where it is started in this directory."""
    here = Path.cwd() / _PACKAGE.name
    shadows = here != _PACKAGE and (here / "__init__.py").is_file() and not (here / _LIBRARY).exists()
    return here if shadows else None


def _code_version() -> str:
    """The package's version, and sizes and times of its sources: whoever edits them gets new plans."""
    from xyntra_ep import __version__

    marks = [__version__]
    waiting = [str(_PACKAGE)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir():
                    waiting.append(entry.path)
                elif entry.name.endswith((".py", ".json")):  # tables decide about plans, too
                    status = entry.stat()
                    marks.append(f"{entry.name} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(marks)


def _cpu_features() -> str:
    """What the first CPU says about itself, model and feature flags, and what of it the operating system grants."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(8192).split("\n\n")[0]
    except OSError:
        return platform.processor()
    wanted = ("vendor_id", "model name", "flags", "CPU implementer", "CPU part", "Features", "isa")
    lines = [line for line in first.splitlines() if line.startswith(wanted)]
    if " amx_tile" in first:
        from xyntra_ep.tracea.doctor import matrix_tiles  # only where it matters: this runs at import

        lines.append(f"matrix tiles: {matrix_tiles.granted()}")
    return "\n".join(lines)


def _compiler_id() -> str:
    """Which compilers there are, without starting one: after an installation or an upgrade, plans are made anew."""
    marks = []
    for name in _COMPILERS:
        path = shutil.which(name)
        if path is not None:
            status = os.stat(path)
            marks.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(marks)


def _devices(opened: ctypes.CDLL) -> list[str]:
    """What decides where backend=auto computes, without asking a driver; nothing on a machine without a device."""
    traces = [line for backend in BACKENDS if isinstance(backend, DeviceBackend) for line in backend.traces(opened)]
    return [*traces, _trials()] if traces else []


def _trials() -> str:
    """What is on record about kernels on devices: plans were made by it."""
    from xyntra_ep.tracea.runtime.cache_root import TRIALS  # only where it matters: this runs at import

    try:
        content = read_trusted(default_cache_dir() / TRIALS)
    except OSError:
        return ""
    return hashlib.sha256(content).hexdigest()
