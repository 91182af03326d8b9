"""A snapshot as `xyntra top` draws it, with rich."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xyntra_ep.diagnostics.trace.snapshot import Snapshot
from xyntra_ep.errors import ConfigError
from xyntra_ep.wording import counted


def need_rich() -> None:
    """Raises ConfigError without it, before anything is started."""
    try:
        import rich  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "the live view needs rich", where="top", hint="pip install 'xyntra-ep[bench]', or `--json`, which needs nothing"
        ) from error


def drawn(shot: Snapshot) -> Any:
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    a = shot.activity
    lines = [
        f"process {shot.pid}   {a.runs_a_second:.1f} runs/s   p50 {_ms(a.p50_ns)}   p99 {_ms(a.p99_ns)}",
        f"{counted(a.threads, 'thread')}   {counted(a.sessions, 'session')}   memory {_mb(shot.resident_bytes)}, "
        f"of it weights {_mb(shot.weights_bytes)} and other blocks of ours {_mb(shot.blocks_bytes)}",
    ]
    head = Text("\n".join(lines), style="bold")
    table = Table(box=box.SIMPLE_HEAD, expand=True, pad_edge=False)
    for name, options in _COLUMNS:
        table.add_column(name, **options)
    for k in a.kernels:
        ceiling = "-" if k.of_ceiling is None else f"{k.of_ceiling:.0%}"
        figures = [f"{k.share:.1%}", f"{k.ns / max(k.calls, 1) / 1e3:.1f}", f"{k.gflops:.1f}", f"{k.gbs:.1f}", ceiling]
        table.add_row(Text(k.label), *figures, f"{k.threads:.1f}", Text(_some(k.nodes)))
    notes = [f"the last {a.seconds:.1f} s"]
    if not shot.measured_ceilings:
        notes.append("ceilings are assumed: `xyntra doctor --measure`")
    if a.failed:
        notes.append(f"{a.failed} runs failed")
    if a.lost:
        notes.append(f"{a.lost} records were overwritten before they were seen: look more often")
    return Group(head, table, Text("; ".join(notes), style="dim"))


_RIGHT: dict[str, Any] = {"justify": "right", "no_wrap": True}
_COLUMNS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("kernel", {"no_wrap": True, "ratio": 2, "overflow": "ellipsis"}),
    ("share", _RIGHT),
    ("time us", _RIGHT),
    ("GFLOP/s", _RIGHT),
    ("GB/s", _RIGHT),
    ("ceiling", _RIGHT),
    ("threads", _RIGHT),
    ("nodes of the model", {"no_wrap": True, "ratio": 3, "overflow": "ellipsis"}),
)


def _some(nodes: Sequence[str]) -> str:
    return ", ".join(nodes[:8])


def _ms(ns: int | None) -> str:
    return "-" if ns is None else f"{ns / 1e6:.3f} ms"


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
