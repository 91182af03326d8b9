"""A classifier of handwritten digits, from the 1797 that scikit-learn brings: `python examples/digits/train.py digits.onnx`.

Each is 8 x 8 numbers from 0 to 16: how many points of 4 x 4 are set in a bitmap of 32 x 32. What people draw with a mouse leans,
is wide or narrow and has another line width, so the network learns from digits that are changed in such ways. Needs scikit-learn
and onnx. The site: `xyntra web digits.onnx -o site --page digits`.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper, parser
from scipy import ndimage
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

Images = NDArray[np.float32]
SIDE, LEVELS = 8, 16
HIDDEN = (96, 64)
CHANGED = 9  # copies of each digit
ROUNDS = 15
HELD_BACK = 297  # digits that show how well it has learned
GRAPH = """<ir_version: 8, opset_import: ["": 17]> digits (float[N,64] pixels) => (float[N,10] probabilities) {
  scaled = Mul(pixels, scale)
  a = Gemm(scaled, w0, b0)  a_ = Relu(a)
  b = Gemm(a_, w1, b1)  b_ = Relu(b)
  c = Gemm(b_, w2, b2)
  probabilities = Softmax<axis=-1>(c)
}"""


def changed(images: Images, random: np.random.Generator) -> Images:
    """Each image turned, leaning, stretched, moved and with a wider or narrower line."""
    found = np.empty_like(images)
    for i, image in enumerate(images.reshape(-1, SIDE, SIDE)):
        angle, lean = random.uniform(-0.25, 0.25), random.uniform(-0.25, 0.25)
        stretch = np.diag(random.uniform(0.85, 1.15, 2))
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        matrix = stretch @ turn @ np.array([[1.0, 0.0], [lean, 1.0]])
        centre = np.full(2, (SIDE - 1) / 2)
        offset = centre - matrix @ centre + random.uniform(-0.7, 0.7, 2)
        moved = ndimage.affine_transform(image, matrix, offset, order=1)
        found[i] = np.clip(moved * random.uniform(0.7, 1.6), 0, LEVELS).reshape(-1)
    return found


def train(seed: int = 0) -> tuple[onnx.ModelProto, float]:
    """The model, and what part of the digits held back it knows."""
    random = np.random.default_rng(seed)
    digits = load_digits()
    order = random.permutation(len(digits.target))
    images, labels = digits.data[order].astype(np.float32), digits.target[order]
    kept, known = images[HELD_BACK:], labels[HELD_BACK:]
    seen = np.concatenate([kept, *(changed(kept, random) for _ in range(CHANGED))]) / LEVELS
    network = MLPClassifier(HIDDEN, random_state=seed, max_iter=ROUNDS, tol=0.0, n_iter_no_change=ROUNDS, alpha=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it has learned enough before it converges
        network.fit(seen, np.tile(known, CHANGED + 1))
    score = float(network.score(images[:HELD_BACK] / LEVELS, labels[:HELD_BACK]))
    model = parser.parse_model(GRAPH)
    weights = {"scale": np.array(1 / LEVELS)}
    for i, (w, b) in enumerate(zip(network.coefs_, network.intercepts_, strict=True)):
        weights |= {f"w{i}": w, f"b{i}": b}
    model.graph.initializer.extend(numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items())
    onnx.checker.check_model(model)
    return model, score


def main(file: Path) -> None:
    model, score = train()
    onnx.save(model, file)
    print(f"{file}: knows {score:.1%} of {HELD_BACK} digits that it has not seen")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "digits.onnx"))
