"""Resize to the nearest element where sizes are known: nothing, an axis that keeps its extent, whole multiples."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.models.model_text import check, normal, parse

Ints = tuple[int, ...]


@pytest.mark.parametrize(
    ("shape", "scales"),
    [
        ((1, 2, 0, 4), (1, 1, 2, 2)),
        ((0, 2, 3, 4), (2, 1, 1, 1)),
        ((1, 2, 3, 9), (1, 1, 2, 1.05)),  # 9 of 9
        ((1, 2, 5, 7), (1, 1, 4, 3)),
        ((1, 2, 5, 7), (1, 1, 0.5, 8)),
    ],
)
def test_nearest(shape: Ints, scales: tuple[float, ...]) -> None:
    model = parse(
        f'(float[{",".join(map(str, shape))}] x) => (float[] y) {{ y = Resize <mode = "nearest"> (x, none, scales) }}',
        none=np.zeros(0, np.float32),
        scales=np.array(scales, np.float32),
    )
    check(model, {"x": normal(*shape)})
