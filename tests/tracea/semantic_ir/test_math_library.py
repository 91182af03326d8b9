"""Logarithms of the math library against float64, over all exponents and where they have no value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.programs.elementwise import Array, elementwise
from tests.support.run_program import run_program
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import call
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, -1, 1, 1e-45, -1e-45, 2.0**-126, 2.0**-149, 2.0**-127, 3.4e38, 2**-0.5, 2**0.5],
    np.float32,
)


def arguments() -> Array:
    """Of all exponents and signs, about 1, about 0, and special ones; no number of whole vectors."""
    rng = np.random.default_rng(0)
    every = rng.integers(0, 2**32, 200_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    about_one, about_zero = (1 + rng.standard_normal((2, 50_000)) * [[0.05], [8]]).astype(np.float32)
    return np.concatenate([every, about_one, about_zero, SPECIAL])


def softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


@pytest.mark.parametrize("caps", [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, SCALAR)])
@pytest.mark.parametrize(("name", "exact", "most"), [("log", np.log, 0.9), ("softplus", softplus, 1.9)])
def test_logarithms(name: str, exact: Callable[[Array], Array], most: float, caps: Capabilities) -> None:
    x = arguments()
    program, _ = elementwise(x.shape, lambda value: call(name, value), DType.F32)
    [y] = run_program(program, [x], [], caps)
    with np.errstate(all="ignore"):
        wanted = exact(x.astype(np.float64))
        rounded = wanted.astype(np.float32)
    numbers = np.isfinite(rounded)
    np.testing.assert_array_equal(y[~numbers], rounded[~numbers])
    ulps = np.abs(y[numbers] - wanted[numbers]) / np.spacing(np.maximum(np.abs(rounded[numbers]), np.float32(2.0**-126)))
    assert ulps.max() <= most
