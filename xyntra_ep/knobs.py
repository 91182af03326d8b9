"""Every environment variable that XyntraEP reads, typed. Nobody else reads `os.environ`.

>>> with scope(debug=2):
...     current().debug
2
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xyntra_ep.errors import ConfigError, did_you_mean

_ON = frozenset({"1", "true", "on", "yes"})
_OFF = frozenset({"0", "false", "off", "no"})


def parse_flag(text: str) -> bool:
    """Read an on/off value.

    >>> parse_flag("True"), parse_flag("0")
    (True, False)
    """
    folded = text.strip().lower()
    if folded in _ON:
        return True
    if folded in _OFF:
        return False
    raise ValueError("wants 1 or 0")


def parse_int(text: str, *, least: int, most: int | None = None) -> int:
    """Read an integer within bounds.

    >>> parse_int("3", least=0, most=5)
    3
    """
    span = f"from {least} to {most}" if most is not None else f"of at least {least}"
    try:
        value = int(text.strip())
    except ValueError:
        raise ValueError(f"wants an integer {span}") from None
    if value < least or (most is not None and value > most):
        raise ValueError(f"wants an integer {span}")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text.strip())
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise ValueError("wants a number of seconds above 0")
    return value


def _debug(text: str) -> int:
    return parse_int(text, least=0, most=5)


def _isa(text: str) -> str:
    folded = text.strip().lower()
    if folded not in ("avx512", "avx2", "scalar"):
        raise ValueError("wants avx512, avx2 or scalar")
    return folded


def _jobs(text: str) -> int:
    return parse_int(text, least=1)


def _sanitizers(text: str) -> str:
    folded = text.strip().lower()
    if folded in _OFF:
        return ""
    if folded in ("thread", "address,undefined") or folded in _ON:
        return "thread" if folded == "thread" else "address,undefined"
    raise ValueError("wants 1 (address,undefined), thread or 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """What the environment says.

    The second group stands behind the provider options of the same names: raw text, checked by
    `options.parse`, so that a mistake is reported in the same words wherever it was made.
    """

    register: bool = True  # XYNTRA_REGISTER=0: `import xyntra_ep` does not register the provider
    cc: str | None = None  # XYNTRA_CC: the C compiler, a name or a path; none: what is prebuilt has to do
    prebuilt_dir: Path | None = None  # XYNTRA_PREBUILT_DIR: where prebuilt kernels are, if not in the package
    isa: str | None = None  # XYNTRA_ISA: avx512, avx2 or scalar: the widest instruction set to use of those the machine has
    debug: int = 0  # XYNTRA_DEBUG: 1 faults of ours are raised, with their tracebacks; 4 sources of kernels are kept
    sanitize: str = ""  # XYNTRA_SANITIZE: kernels report what they do wrong; 1 (address,undefined) or thread: docs/soundness.md
    compile_timeout_s: float = 60.0  # XYNTRA_COMPILE_TIMEOUT_S: for one kernel
    jobs: int = dataclasses.field(default_factory=lambda: _cpus())  # XYNTRA_JOBS: compilers at a time
    config: Path | None = None  # XYNTRA_CONFIG: options file, instead of ./fusion.toml
    cuda_devices: int | None = None  # XYNTRA_CUDA_DEVICES: how many there are, where native/cuda/cuda_presence.cc cannot see it
    wgpu_library: Path | None = None  # XYNTRA_WGPU_LIBRARY: wgpu-native's library, if not the package's (native code reads it)
    trials: bool = True  # XYNTRA_TRIALS=0: a GPU is used without trying our kernels on it before
    avoid: tuple[str, ...] = ()  # XYNTRA_AVOID: kernel variants for GPUs that are not to be chosen, apart by commas
    zoo_dir: Path | None = None  # XYNTRA_ZOO_DIR: where zoo/cache.py keeps models
    xdg_cache_home: Path | None = None  # XDG_CACHE_HOME, without our prefix: it is everybody's

    backend: str | None = None
    precision: str | None = None
    claim: str | None = None
    policy: str | None = None
    min_island: str | None = None
    cache_dir: str | None = None
    dump_dir: str | None = None
    rules: str | None = None
    fp32_strict: str | None = None
    tune: str | None = None
    deterministic: str | None = None
    first_run: str | None = None
    dim_hints: str | None = None
    compile_for: str | None = None
    compiled_digest: str | None = None
    trace: str | None = None
    log_level: str | None = None

    @property
    def cache_root(self) -> Path:
        """Where compiled kernels go unless a provider option says otherwise."""
        if self.cache_dir:
            return Path(self.cache_dir).expanduser()
        if self.xdg_cache_home is not None:
            return self.xdg_cache_home / "xyntra"
        return _home() / ".cache" / "xyntra"

    @property
    def zoo_root(self) -> Path:
        """Where models of the zoo are kept: what zoo/cache.py says, which works without this package."""
        return self.zoo_dir or (self.xdg_cache_home or _home() / ".cache") / "xyntra-zoo"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Knobs:
        """Read all knobs; an empty variable counts as unset. Raises ConfigError for the first that is wrong."""
        found, wrong = cls.readable(environ)
        if wrong:
            raise wrong[0]
        return found

    @classmethod
    def readable(cls, environ: Mapping[str, str]) -> tuple[Knobs, list[ConfigError]]:
        """As if what is wrong were not set, and what is wrong."""
        found: dict[str, Any] = {}
        wrong: list[ConfigError] = []
        for field in dataclasses.fields(cls):
            variable = variable_of(field.name)
            text = environ.get(variable, "").strip()
            if not text:
                continue
            try:
                found[field.name] = _READERS.get(field.name, str)(text)
            except ValueError as error:
                wrong.append(ConfigError(f"{text!r} is not valid", where=variable, hint=f"it {error}"))
        return cls(**found), wrong


_READERS: dict[str, Callable[[str], object]] = {
    "register": parse_flag,
    "trials": parse_flag,
    "debug": _debug,
    "isa": _isa,
    "sanitize": _sanitizers,
    "compile_timeout_s": _seconds,
    "jobs": _jobs,
    "avoid": lambda text: tuple(name.strip() for name in text.split(",") if name.strip()),
    "cuda_devices": lambda text: parse_int(text, least=0),
    "wgpu_library": Path,
    "config": lambda text: Path(text).expanduser(),
    "prebuilt_dir": lambda text: Path(text).expanduser(),
    "zoo_dir": Path,
    "xdg_cache_home": Path,
}


def variable_of(knob: str) -> str:
    """The environment variable behind a knob.

    >>> variable_of("cache_dir")
    'XYNTRA_CACHE_DIR'
    """
    return knob.upper() if knob.startswith("xdg_") else f"XYNTRA_{knob.upper()}"


def variables() -> tuple[str, ...]:
    """All that are read."""
    return tuple(variable_of(field.name) for field in dataclasses.fields(Knobs))


def unknown(environ: Mapping[str, object]) -> list[str]:
    """What is set in our name and read by nobody: a line for each variable.

    >>> unknown({"XYNTRA_JOB": "2", "XYNTRA_CC": "gcc"})
    ["XYNTRA_JOB: no such variable, so it does nothing. did you mean 'XYNTRA_JOBS'?"]
    """
    known = variables()
    wrong = sorted(name for name in environ if name.startswith("XYNTRA_") and name not in known)
    return [f"{name}: no such variable, so it does nothing. {did_you_mean(name, known)}" for name in wrong]


def unknown_now() -> list[str]:
    """`unknown` of the environment."""
    return unknown(os.environ)


def settings_now() -> list[tuple[str, str]]:
    """The variables that are set and read, with their values."""
    given = dict(os.environ)
    return [(name, given[name]) for name in variables() if given.get(name, "").strip()]


def _cpus() -> int:
    """The processors this process may use, which in a container are fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a container user without a home directory
        return Path("/tmp")


_scoped: Knobs | None = None


def current() -> Knobs:
    """The knobs now. The environment is read at every call, so nothing depends on the order of imports."""
    return _scoped if _scoped is not None else Knobs.from_environment(os.environ)


@contextmanager
def forgiving() -> Iterator[list[ConfigError]]:
    """The knobs without those that are wrong, for who has to report these; of the whole process."""
    global _scoped
    before = _scoped
    wrong: list[ConfigError] = []
    if before is None:
        _scoped, wrong = Knobs.readable(os.environ)
    try:
        yield wrong
    finally:
        _scoped = before


@contextmanager
def scope(**overrides: Any) -> Iterator[Knobs]:
    """Set knobs for a test or a measurement; of the whole process, because sessions compile on several threads."""
    global _scoped
    before = _scoped
    _scoped = dataclasses.replace(current(), **overrides)
    try:
        yield _scoped
    finally:
        _scoped = before
