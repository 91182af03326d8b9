"""How ONNX Runtime comes to know the provider: open the library, give it the planner, register it.

`import xyntra_ep` does this once per process. It touches no device and starts no process or thread, so a process may
fork afterwards.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xyntra_ep import ending, knobs
from xyntra_ep.errors import ConfigError, XyntraError
from xyntra_ep.provider.callback import make_callback
from xyntra_ep.provider.native_library import get_library_path as get_library_path
from xyntra_ep.provider.native_library import open_library
from xyntra_ep.provider.plan_identity import identity, watched_variables

EP_NAME = "XyntraEP"
OLDEST_ORT = (1, 25, 1)
_WARNING = 2  # of ONNX Runtime's severities


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


def _default_trace() -> str:
    """Of sessions that say nothing themselves; native code reads the variable, not the file."""
    if knobs.current().config is None:
        return ""
    from xyntra_ep import options  # only where it matters: this runs at import

    try:
        return options.parse({}).trace
    except ConfigError:  # which no session survives: each of them says so
        return ""


def trace_stage() -> Callable[[str, int, int], None] | None:
    """What puts a stage of planning into the process's trace; None while that is off."""
    opened = library()
    detail = ctypes.c_int()
    opened.xyntra_trace_ring(ctypes.byref(detail))
    if not detail.value:
        return None
    return lambda name, begin_ns, end_ns: opened.xyntra_trace_stage(name.encode("utf-8", "replace"), begin_ns, end_ns)


def asks_for_files() -> bool:
    """Whether a session of this process wants its trace in a file."""
    opened = _state.library
    return opened is not None and opened.xyntra_trace_files() > 0


def is_registered() -> bool:
    return _state.registered


def library() -> ctypes.CDLL:
    """The library, opened and with the planner attached. The same instance that ONNX Runtime uses."""
    with _lock:
        if _state.library is None:
            opened = open_library()
            attach(opened, make_callback(opened))
            ending.at_end(lambda: _detach(opened))
            _state.library = opened
        return _state.library


def attach(opened: ctypes.CDLL, callback: Any) -> None:
    """Give native code its planner, and what besides a graph decides about plans."""
    _state.callback = callback  # native code holds a bare pointer to it
    cache_dir = default_cache_dir()
    opened.xyntra_trace_unless_told(_default_trace().encode("utf-8", "surrogateescape"))
    opened.xyntra_attach(callback, *identity(opened, cache_dir), os.fsencode(cache_dir), "\n".join(watched_variables()).encode())


def _detach(opened: ctypes.CDLL) -> None:
    """Native code stays when Python has gone: it must not call it any more, nor return threads to it."""
    python = ctypes.pythonapi
    is_going = getattr(python, "Py_IsFinalizing", None) or python._Py_IsFinalizing  # before Python 3.13
    opened.xyntra_python_ends(is_going, python.PyGILState_GetThisThreadState)


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
