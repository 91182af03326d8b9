"""Provider options: each is declared once, as a field of `Options`; all else is derived from that field.

A value comes from the provider option, else the environment (`XYNTRA_<NAME>`), else the `[provider]` table
of `fusion.toml` (`options_file.py`), else the default. `options_table.py` writes the table of the documentation.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from xyntra_ep import knobs
from xyntra_ep.errors import ConfigError, did_you_mean
from xyntra_ep.options_file import OptionsFile, read_file

PROVIDER = "XyntraEP"
T = TypeVar("T")


class BackendName(str):
    """A row of `tracea/backends`, or `AUTO`, which leaves the choice to the machine and the model."""

    __slots__ = ()


AUTO = BackendName("auto")


class Precision(StrEnum):
    FP32 = "fp32"
    TF32 = "tf32"
    BF16 = "bf16"
    FP16 = "fp16"
    INT8W = "int8w"


class Claim(StrEnum):
    PROFITABLE = "profitable"
    ALL = "all"


class Tune(StrEnum):
    OFF = "off"
    CACHED = "cached"
    SESSION = "session"


class FirstRun(StrEnum):
    COMPILE = "compile"
    PREBUILT = "prebuilt"


class Goal(StrEnum):
    """What a session is for."""

    BALANCED = "balanced"
    LATENCY = "latency"
    THROUGHPUT = "throughput"
    MEMORY = "memory"


class LogLevel(StrEnum):
    VERBOSE = "verbose"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class DimHints(tuple[tuple[str, int], ...]):
    """Names of dimensions and what they usually are.

    >>> DimHints.parse("height=640, width=640")
    DimHints((('height', 640), ('width', 640)))
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> DimHints:
        """Raises ValueError for what is not ``NAME=SIZE,NAME=SIZE``, or a name that stands there twice."""
        found: dict[str, int] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, equals, size = (piece.strip() for piece in part.rpartition("="))
            if not (name and equals) or name in found:
                raise ValueError("wants NAME=SIZE,NAME=SIZE, each name once")
            found[name] = knobs.parse_int(size, least=1)
        return cls(found.items())

    def __repr__(self) -> str:
        return f"DimHints({super().__repr__()})"


NATIVE = "native"  # the processor at hand
INSTRUCTION_SETS = (NATIVE, "amx", "avx512_bf16", "avx512", "avx2", "scalar")


class InstructionSets(tuple[str, ...]):
    """Names of instruction sets.

    >>> InstructionSets.parse("avx2, avx512")
    InstructionSets(('avx2', 'avx512'))
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> InstructionSets:
        """Raises ValueError for a name that there is not, or none at all."""
        names = [part.strip().lower() for part in text.split(",") if part.strip()]
        for name in names:
            if name not in INSTRUCTION_SETS:
                raise ValueError(f"knows no {name!r}, but {', '.join(INSTRUCTION_SETS)}")
        if not names:
            raise ValueError(f"wants some of {', '.join(INSTRUCTION_SETS)}")
        return cls(dict.fromkeys(names))

    def __repr__(self) -> str:
        return f"InstructionSets({super().__repr__()})"


class TraceTo(str):
    """`OFF`, `LIVE`, or the path of a file. What is done with it is native code's, because a session whose plan is stored asks
    nobody else (native/trace.cc)."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> TraceTo:
        """
        >>> TraceTo.parse("Live"), TraceTo.parse("Run.json")
        ('live', 'Run.json')
        """
        folded = text.strip().lower()
        return cls(folded if folded in (OFF, LIVE) else text.strip() or OFF)


OFF, LIVE = TraceTo("off"), TraceTo("live")


# Planned, so that asking for them is answered with "not in this release" and not with "no such option".
LATER_OPTIONS = ("fast_math",)

# ONNX Runtime reads it itself, to choose a device. What arrives here is the CUDA device that was chosen, in whatever way, for the
# session's tensors; nothing where they are in ordinary memory.
DEVICE_ID = "device_id"
# Native code says that the session compiles a model ahead of time (ep.context_enable).
AHEAD_OF_TIME = "ahead_of_time"


def option(
    *,
    doc: str,
    default: T | None = None,
    default_factory: Callable[[], T] | None = None,
    shown_default: str | None = None,
    least: int = 0,
) -> T:
    """A field of `Options`: default, and a line of documentation."""
    metadata = {"doc": doc, "least": least, "shown_default": shown_default}
    field: Any
    if default_factory is not None:
        field = dataclasses.field(default_factory=default_factory, metadata=metadata)
    else:
        field = dataclasses.field(default=default, metadata=metadata)
    return field  # type: ignore[no-any-return]  # as in dataclasses.field: a description now, a T in the instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What one session asked for, checked.

    >>> parse({"claim": "all", "fp32_strict": "True"}).claim
    <Claim.ALL: 'all'>
    """

    backend: BackendName = option(
        default=AUTO,
        doc="where fused kernels run; `auto`: a GPU that works and is much faster than the processor, for models that gain more "
        "there than copying inputs and outputs costs, otherwise the CPU",
    )
    precision: Precision = option(
        default=Precision.FP32,
        doc="the type in which matrix products, convolutions and attention multiply; sums are always f32 (`bf16` needs AMX, "
        "AMD's AVX512_BF16 or an NVIDIA GPU; `fp16` a GPU: it has three bits more and overflows beyond 65504; `tf32` an NVIDIA "
        "GPU: the precision of fp16 with the range of fp32, in tensors that stay fp32; `int8w`, on the CPU: constant matrices in "
        "8 bits, for models bound by reading them). If the device does not support it, the next of bf16, fp16, fp32 is used, and "
        "a warning says so when the model is planned",
    )
    claim: Claim = option(
        default=Claim.PROFITABLE,
        doc="`profitable`: what should be faster than with ONNX Runtime's CPU provider; `all`: everything that can be fused",
    )
    policy: Goal = option(
        default=Goal.BALANCED,
        doc="what the session is for: `latency`: single runs that have all cores; `throughput`: many runs side by side, each on "
        "one core; `balanced`: both; `memory`: kernels that hold less of it, though they may take 2.5 times as long, and no GPU "
        "that nobody names (docs/policy.md)",
    )
    min_island: int = option(default=1, least=1, doc="fewest nodes that may form an island")
    cache_dir: Path = option(
        default_factory=lambda: knobs.current().cache_root,
        shown_default="~/.cache/xyntra",
        doc="compiled kernels and plans; holds native code, so it must belong to you alone",
    )
    dump_dir: Path | None = option(
        doc="write the sources of each session's kernels here, and each island after each pass (docs/architecture.md); stored "
        "plans are then not used",
        shown_default="off",
    )
    rules: Path | None = option(
        doc="a file of rewrite rules of your own, formulas in TOML or a list in Python (docs/rules.md); each is tried on random "
        "numbers first. Plans are then not stored. A `fusion.toml` that is merely found cannot name it",
        shown_default="off",
    )
    fp32_strict: bool = option(
        default=False,
        doc="NaN and Inf appear exactly where they do in ONNX Runtime: no Winograd convolution, no masked keys skipped. Some "
        "operators still differ, where ONNX Runtime's own result varies (docs/precision.md)",
    )
    tune: Tune = option(
        default=Tune.CACHED,
        doc="whether kernels are chosen by what was measured on this machine: `cached`: by what `xyntra tune` has found, where "
        "it was asked; `session`: the kernels of a model are tuned while its first session is created, for a minute at most "
        "(needs `pip install 'xyntra-ep[tune]'`); `off`: by estimates alone (docs/tuning.md)",
    )
    deterministic: bool = option(
        default=False,
        doc="the same plan with and without tuning results: as `tune=off`, whatever `tune` says",
    )
    first_run: FirstRun = option(
        default=FirstRun.COMPILE,
        doc="what the first session of a model waits for: `compile`: its kernels; `prebuilt`: those alone that the package does "
        "not have compiled: it begins with kernels for all sizes, a child process compiles others for the model's sizes, and a "
        "later run goes on with them (docs/deployment.md). Without prebuilt kernels for the processor, on a device, and with "
        "`deterministic` or `tune=session`: as `compile`",
    )
    dim_hints: DimHints = option(
        default_factory=DimHints,
        shown_default="none",
        doc="usual sizes of named symbolic dimensions, as in `height=640,width=640`; kernels are chosen for these sizes and "
        "serve all others too. Without a hint, a size is guessed from name and place (docs/dynamic-shapes.md)",
    )
    compile_for: InstructionSets = option(
        default=InstructionSets((NATIVE,)),
        shown_default=NATIVE,
        doc="instruction sets that a model is compiled for ahead of time (docs/compiled-models.md): `native` is this machine's; "
        "`amx`: Intel since Sapphire Rapids; `avx512_bf16`: AMD since Zen 4; `avx512`: with VNNI, since Cascade Lake; `avx2`; "
        "`scalar`. A machine takes the best that it has",
    )
    compiled_digest: Path | None = option(
        shown_default="off",
        doc="a file of SHA-256 digests, as `xyntra compile --digest` writes it: a model that was compiled ahead of time and is "
        "not listed there is refused",
    )
    trace: TraceTo = option(
        default=OFF,
        doc="where the time of the process goes, from its first session that asks for it on: a path: a timeline for Perfetto, "
        "written when Python ends (`%p` in it becomes the number of the process); `live`: `xyntra top` shows it meanwhile "
        "(docs/tracing.md). A `fusion.toml` that is merely found cannot name it",
    )
    log_level: LogLevel = option(
        default=LogLevel.INFO,
        doc="least severe message that is given to ONNX Runtime's logger, whose own level then applies (that of "
        "`onnxruntime.set_default_logger_severity` if a session names its providers)",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionRow:
    """One option as its readers see it: parser, documentation, tests."""

    name: str
    kind: type[Any]
    values: tuple[str, ...]
    default: str
    optional: bool
    least: int
    doc: str

    @property
    def variable(self) -> str:
        return knobs.variable_of(self.name)


@cache
def rows() -> tuple[OptionRow, ...]:
    """All options, in the order of declaration."""
    hints = get_type_hints(Options)
    return tuple(_row(field, hints[field.name]) for field in dataclasses.fields(Options))


def _row(field: dataclasses.Field[Any], hint: Any) -> OptionRow:
    arms = get_args(hint) or (hint,)  # `Path | None` means: may be off
    kind = next(arm for arm in arms if arm is not type(None))
    values: tuple[str, ...]
    doc = field.metadata["doc"]
    if kind is BackendName:
        backends = _backends()
        values = (AUTO, *backends)
        doc = "; ".join([doc, *(f"`{name}` {of_backend}" for name, of_backend in backends.items() if of_backend)])
    elif issubclass(kind, StrEnum):
        values = tuple(member.value for member in kind)
    else:
        least = field.metadata["least"]
        values = {
            bool: ("0", "1"),
            int: (f"integer, at least {least}",),
            Path: ("path",),
            DimHints: ("NAME=SIZE,...",),
            InstructionSets: (f"{','.join(INSTRUCTION_SETS[:2])},...",),
            TraceTo: (OFF, LIVE, "path"),
        }[kind]
    default = field.metadata["shown_default"]
    if default is None:
        value: Any = field.default
        default = str(int(value) if kind is bool else value)
    return OptionRow(
        name=field.name,
        kind=kind,
        values=values,
        default=default,
        optional=type(None) in arms,
        least=field.metadata["least"],
        doc=doc,
    )


def _backends() -> dict[str, str]:
    """What each is called, and what it says of itself."""
    from xyntra_ep.tracea.backends import BACKENDS  # not before options are asked for

    return {backend.name: backend.doc for backend in BACKENDS}


def parse(given: Mapping[str, str]) -> Options:
    """Check the options of one session and fill in what was not given.

    >>> parse({"clam": "all"})
    Traceback (most recent call last):
    xyntra_ep.errors.ConfigError: XyntraEP: no provider option 'clam'. did you mean 'claim'?
    """
    for name in given:
        if name not in (DEVICE_ID, AHEAD_OF_TIME):
            _check_name(name, PROVIDER)
    file = _file()
    found = {row.name: _convert(row, text, where, base) for row, text, where, base in _settings(given, file)}
    return Options(**found)  # type: ignore[arg-type]  # each value was made by its own row


def _settings(given: Mapping[str, str], file: OptionsFile | None) -> Iterator[tuple[OptionRow, str, str, Path | None]]:
    """What is not left to the default: its text, where that stands, and the folder that a path is relative to."""
    environment = knobs.current()
    for row in rows():
        from_environment: str | None = getattr(environment, row.name)
        if row.name in given:
            yield row, str(given[row.name]), PROVIDER, None
        elif from_environment is not None:
            yield row, from_environment, row.variable, None
        elif file is not None and row.name in file.values:
            yield row, file.values[row.name], str(file.path), file.path.parent


def inspect() -> tuple[list[str], list[ConfigError]]:
    """Of a session that is given no options: the file that is read and each setting that is not the default, with where it
    stands; and all that is wrong with them."""
    lines: list[str] = []
    wrong: list[ConfigError] = []
    file = None
    try:
        file = _file()
    except ConfigError as error:
        wrong.append(error)
    if file is not None:
        lines.append(f"{file.path} is read")
    of_options = {row.variable for row in rows()}
    for row, text, where, base in _settings({}, file):
        try:
            _convert(row, text, where, base)
            lines.append(f"{row.name}={text} ({where})")
        except ConfigError as error:
            wrong.append(error)
    lines += [f"{name}={value}" for name, value in knobs.settings_now() if name not in of_options]
    return lines, wrong


def _check_name(name: str, where: str) -> None:
    known = [row.name for row in rows()]
    if name in known:
        return
    if name in LATER_OPTIONS:
        raise ConfigError(f"option {name!r} is not in this release", where=where, hint=f"there are {', '.join(known)}")
    raise ConfigError(f"no provider option {name!r}", where=where, hint=did_you_mean(name.lower(), known))


def _convert(row: OptionRow, text: str, where: str, base: Path | None = None) -> object:
    text = text.strip()
    if row.kind is Path:
        return _path(row, text, where, base)
    try:
        if row.kind is bool:
            return knobs.parse_flag(text)
        if row.kind is int:
            return knobs.parse_int(text, least=row.least)
        if row.kind in (DimHints, InstructionSets, TraceTo):
            return row.kind.parse(text)
    except ValueError as error:
        raise ConfigError(f"{row.name}={text!r} is not valid", where=where, hint=f"it {error}") from None
    folded = text.lower()
    if folded in row.values:
        return row.kind(folded)
    allowed = f"allowed: {', '.join(row.values)}"
    near = difflib.get_close_matches(folded, row.values, n=1)
    hint = f"did you mean {near[0]!r}? {allowed}" if near else allowed
    raise ConfigError(f"{row.name}={text!r} is not valid", where=where, hint=hint)


def _path(row: OptionRow, text: str, where: str, base: Path | None) -> Path | None:
    if not text:
        if row.optional:
            return None
        raise ConfigError(f"{row.name} is empty", where=where, hint="it wants a path")
    path = Path(text).expanduser()
    return base / path if base is not None else path


def unknown() -> list[str]:
    """What is set and read by nobody, in the environment and in the options file: a line for each."""
    lines = knobs.unknown_now()
    try:
        file = _file()
    except ConfigError:  # which no session survives: each of them says so
        return lines
    if file is not None:
        lines += [f"{file.path}: nobody reads {name!r}. options stand under [provider]" for name in file.unknown]
    return lines


def _file() -> OptionsFile | None:
    return read_file(knobs.current().config, [row.name for row in rows()], _check_name)
