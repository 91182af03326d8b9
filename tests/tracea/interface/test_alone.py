"""What an op by itself has computed is compared as memory has it."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Product, Program, Value, ValueKind
from xyntra_ep.tracea.interface.alone import difference
from xyntra_ep.tracea.interface.trial_jobs import TrialJobs


class Written:
    """Jobs that have come to their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def output(self, number: int, i: int) -> bytes:
        return self._data


@pytest.mark.parametrize(
    ("dtype", "wanted", "got", "is_right"),
    [
        (DType.BOOL, [True, False], [True, False], True),
        (DType.BOOL, [True, False], [True, True], False),
        (DType.I64, [1, 2], [1, 3], False),
        (DType.F32, [1.0, -1e39], [1.0, -np.inf], True),  # more than the type holds
        (DType.F32, [1.0, -1e39], [1.0, 1.0], False),
        (DType.F16, [1.0, 7e4], [1.0, np.inf], True),
        (DType.F32, [1.0, 2.0], [1.0, np.inf], False),
        (DType.F32, [1.0, 2.0], [1.0, np.nan], False),
    ],
)
def test_what_is_right(dtype: DType, wanted: list[Any], got: list[Any], is_right: bool) -> None:
    value = Value(kind=ValueKind.OUTPUT, dtype=dtype, shape=(2,))
    program = Program(values=[value], ops=[], sources=[], constants=[], bindings=[])
    jobs = cast(TrialJobs, Written(np.array(got, dtype.numpy).tobytes()))
    why = difference(jobs, 0, program, [np.array(wanted)], Product.F32)
    assert (why == "") is is_right and (is_right or why.startswith("computes something else"))
