"""Files that sessions asked for by the option `trace`: written when Python ends, for the whole process."""

from __future__ import annotations

import os
from pathlib import Path

from xyntra_ep.diagnostics.trace.names import Names
from xyntra_ep.diagnostics.trace.ring import Ring
from xyntra_ep.diagnostics.trace.tracing import write
from xyntra_ep.errors import XyntraError
from xyntra_ep.provider import registration

_WARNING = 2  # of ONNX Runtime's severities


def write_files() -> None:
    """What cannot be written is told to ONNX Runtime's log: nobody is left who could hear an exception."""
    ring = Ring.own()
    if ring is None:
        return
    names, batch = Names.of(ring.texts()), ring.read()
    for name in names.files:
        try:
            write(Path(name.replace("%p", str(os.getpid()))), ring, batch, names)
        except XyntraError as error:
            registration.say(_WARNING, f"XyntraEP: {error}")
