"""What native code holds at the moment, counted (native/live.h), and how long it keeps what nobody uses (native/quiet.h)."""

from __future__ import annotations

import ctypes
import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager

from xyntra_ep.provider import registration


def counts() -> dict[str, int]:
    gc.collect()
    room = ctypes.create_string_buffer(1 << 12)
    size = registration.library().xyntra_counts(room, len(room))
    counted: dict[str, int] = json.loads(room.raw[:size])
    return counted


def grown(before: dict[str, int]) -> dict[str, int]:
    """What there is more of, or less, than ``before``."""
    return {name: more for name, now in counts().items() if (more := now - before[name]) != 0}


@contextmanager
def quiet(milliseconds: int) -> Iterator[None]:
    """Memory that was not used for so long goes when a run ends."""
    library = registration.library()
    usual = library.xyntra_quiet_ms(milliseconds)
    try:
        yield
    finally:
        library.xyntra_quiet_ms(usual)
