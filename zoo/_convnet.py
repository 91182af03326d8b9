"""What convolutional networks share: Conv and BatchNormalization as separate nodes, and statistics that fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import onnx

from xyntra_zoo.graph_builder import GraphBuilder, Value
from xyntra_zoo.layers import linear_2d
from xyntra_zoo.model import Feeds
from xyntra_zoo.params import F32, Init, OverlayParams, Params

BN_EPS = 1e-5


class ConvNet(ABC):
    """One construction of the graph. With `measure`, each BatchNormalization normalises by the statistics of
    its own batch and returns them as outputs, so one run yields the statistics of all layers."""

    def __init__(self, name: str, params: Params, *, measure: bool) -> None:
        self.g = GraphBuilder(name, opset=13)
        self.p = params
        self.measure = measure
        self.measured: list[tuple[str, Value]] = []

    @abstractmethod
    def model(self) -> onnx.ModelProto: ...

    def pixels(self, image: int) -> Value:
        return self.g.input("pixel_values", np.float32, ["batch", 3, image, image])

    def classified(self, x: Value, classifier: str, channels: int, classes: int) -> onnx.ModelProto:
        """The finished model: global pooling and one linear layer on the last feature map."""
        g = self.g
        x = g.Flatten(g.GlobalAveragePool(x), axis=1)
        g.output("logits", linear_2d(g, self.p, x, classifier, channels, classes), ["batch", classes])
        for name, value in self.measured:
            g.output(name, value, ["channels"])
        return g.model()

    def conv_bn(
        self,
        x: Value,
        conv: str,
        norm: str,
        n_in: int,
        n_out: int,
        *,
        kernel: int,
        stride: int,
        group: int = 1,
        residual: bool = False,
    ) -> Value:
        g = self.g
        name = f"{conv}.weight"
        weight = g.weight(name, self.p(name, (n_out, n_in // group, kernel, kernel), Init.CONV))
        pad = kernel // 2
        x = g.Conv(
            x,
            weight,
            dilations=[1, 1],
            group=group,
            kernel_shape=[kernel, kernel],
            pads=[pad] * 4,
            strides=[stride] * 2,
        )
        gain = g.weight(f"{norm}.weight", self.p(f"{norm}.weight", (n_out,), Init.RESIDUAL_GAIN if residual else Init.GAIN))
        bias = g.weight(f"{norm}.bias", self.p(f"{norm}.bias", (n_out,), Init.BIAS))
        mean, variance = self._statistics(x, norm, n_out)
        return g.BatchNormalization(x, gain, bias, mean, variance, epsilon=BN_EPS, momentum=0.9)

    def _statistics(self, x: Value, norm: str, n: int) -> tuple[Value, Value]:
        g = self.g
        names = (f"{norm}.running_mean", f"{norm}.running_var")
        if not self.measure:
            inits = (Init.BIAS, Init.VARIANCE)
            mean, variance = (g.weight(name, self.p(name, (n,), init)) for name, init in zip(names, inits, strict=True))
            return mean, variance
        mean = g.ReduceMean(x, axes=[0, 2, 3], keepdims=1)
        centred = g.Sub(x, mean)
        variance = g.ReduceMean(g.Mul(centred, centred), axes=[0, 2, 3], keepdims=0)
        mean = g.Reshape(mean, g.ints(-1))
        self.measured += zip(names, (mean, variance), strict=True)
        return mean, variance


def calibrated(network: Callable[[Params, bool], ConvNet], params: Params, image: int) -> onnx.ModelProto:
    """With random weights the statistics are measured first: unfitting ones give zeros or infinities."""
    if params.synthetic:
        params = OverlayParams(params, _measured_statistics(network(params, True).model(), image))
    return network(params, False).model()


def _measured_statistics(network: onnx.ModelProto, image: int) -> dict[str, F32]:
    import onnxruntime as ort  # building other models does not need a runtime

    session = ort.InferenceSession(network.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()][1:]
    values = session.run(names, image_feeds(4, 1, 0, image=image))
    # Rounded, so that machines whose sums differ in the last bits still build the same model nearly always.
    return {name: value.astype(np.float16).astype(np.float32) for name, value in zip(names, values, strict=True)}


def image_feeds(batch: int, seq: int, seed: int, *, image: int) -> Feeds:
    """Normalised pixels: a coarse pattern, so that neighbours correlate as in photographs, plus noise."""
    rng = np.random.default_rng(seed)
    coarse = rng.standard_normal((batch, 3, image // 8, image // 8), dtype=np.float32)
    pixels = np.kron(coarse, np.ones((8, 8), np.float32))
    pixels += 0.3 * rng.standard_normal(pixels.shape, dtype=np.float32)
    return {"pixel_values": pixels.astype(np.float32)}
