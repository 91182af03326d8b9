"""What is run: a model, its feeds, how the sessions are made. Everything that a child is told, and all that a finding needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from xyntra_ep import knobs

Array = NDArray[Any]
Feeds = Mapping[str, Array]


class Class(StrEnum):
    """What differs. The order is that of the table."""

    WRONG = "wrong number"
    SPECIAL = "different on special values"
    SHAPE = "wrong shape or dtype"
    MISSING_ERROR = "an error that ORT has and we have not"
    EXTRA_ERROR = "an error of ours that ORT has not"
    SESSION = "no session on our side"
    FAULT = "a fault of ours while planning"
    CRASH = "crash"
    HANG = "hang"
    UNREPEATABLE = "unrepeatable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """``kind`` says how the feeds were made; ``special``: with values on which results may differ without being wrong numbers."""

    feeds: Feeds
    kind: str
    special: bool = False
    bound: bool = False  # through IOBinding


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How our session is made."""

    claim: str = "all"
    fp32_strict: bool = False
    two_threads: bool = False  # a second session with two threads, whose results must be the same bits

    def provider_options(self) -> dict[str, str]:
        return {
            "claim": self.claim,
            "fp32_strict": str(int(self.fp32_strict)),
            "log_level": "error",
            "backend": knobs.current().backend or "cpu",
        }

    def names(self) -> list[str]:
        """The options under which the report counts."""
        return [f"claim={self.claim}", f"fp32_strict={int(self.fp32_strict)}", f"two_threads={int(self.two_threads)}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One model, several runs."""

    model: bytes
    runs: Sequence[Run]
    settings: Settings = Settings()
    name: str = ""

    def proto(self) -> onnx.ModelProto:
        model = onnx.ModelProto()
        model.ParseFromString(self.model)
        return model

    def with_model(self, model: onnx.ModelProto) -> Case:
        return replace(self, model=model.SerializeToString())

    def operators(self) -> tuple[str, ...]:
        """The set of operators, domains of others in front."""
        nodes = self.proto().graph.node
        return tuple(sorted({f"{n.domain}.{n.op_type}" if n.domain not in ("", "ai.onnx") else n.op_type for n in nodes}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``runs``: numbers of the runs that show it, in the order in which they must be run; the last one is the one that differs.
    ``text``: ours against ONNX Runtime's."""

    kind: Class
    text: str
    runs: tuple[int, ...] = ()


def sizes_of(feeds: Feeds) -> str:
    """As a person reads it.

    >>> sizes_of({"x": np.zeros((2, 3)), "k": np.int64(1)})
    'x[2, 3] k[]'
    """
    return " ".join(f"{name}{list(np.shape(value))}" for name, value in feeds.items())
