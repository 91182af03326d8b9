"""How a person draws digits: lines through points of a square of side 1."""

from __future__ import annotations

import math
from collections.abc import Mapping

Point = tuple[float, float]


def _arc(x: float, y: float, width: float, height: float, begin: float, end: float) -> list[Point]:
    """Of an ellipse, in degrees from the right, clockwise."""
    steps = [begin + (end - begin) * i / 24 for i in range(25)]
    return [(x + width * math.cos(math.radians(a)), y + height * math.sin(math.radians(a))) for a in steps]


STROKES: Mapping[int, list[list[Point]]] = {
    0: [_arc(0.5, 0.5, 0.22, 0.36, -90, 270)],
    1: [[(0.38, 0.28), (0.53, 0.14), (0.53, 0.86)]],
    2: [[*_arc(0.5, 0.34, 0.2, 0.2, 190, 395), (0.3, 0.85), (0.72, 0.85)]],
    3: [[*_arc(0.47, 0.32, 0.2, 0.18, 200, 440), *_arc(0.47, 0.67, 0.22, 0.19, -80, 160)]],
    4: [[(0.58, 0.14), (0.27, 0.6), (0.75, 0.6)], [(0.6, 0.4), (0.6, 0.88)]],
    5: [[(0.7, 0.15), (0.36, 0.15), (0.33, 0.46), *_arc(0.47, 0.64, 0.22, 0.2, -120, 150)]],
    6: [[(0.6, 0.13), (0.42, 0.35), (0.32, 0.6), *_arc(0.5, 0.67, 0.19, 0.19, 180, -180)]],
    7: [[(0.28, 0.16), (0.72, 0.16), (0.45, 0.86)]],
    8: [[*_arc(0.5, 0.31, 0.17, 0.17, 90, 450), *_arc(0.5, 0.67, 0.2, 0.19, -90, 270)]],
    9: [[*_arc(0.5, 0.33, 0.18, 0.18, 0, -360), (0.67, 0.45), (0.6, 0.87)]],
}
