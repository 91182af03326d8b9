"""ONNX Runtime's own quantisers, called as people call them: a recipe reads a float model's file and writes a quantised one."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx

from xyntra_zoo.model import Feeds, ZooModel
from xyntra_zoo.params import Params

Recipe = Callable[[Path, Path, ZooModel], None]

# Inputs that activations are calibrated with: other ones than those that a row is measured with.
CALIBRATION_SEEDS = (1000, 1001, 1002, 1003)
CALIBRATION_BATCH = 4
BLOCK = 32  # weights that share a scale


def quantised(params: Params, *, float_model: ZooModel, recipe: Recipe) -> onnx.ModelProto:
    """What the recipe makes of the float model with the same weights."""
    with tempfile.TemporaryDirectory(prefix="xyntra-zoo-") as folder, _quiet():
        source, target = Path(folder) / "float.onnx", Path(folder) / "quantised.onnx"
        onnx.save(float_model.build(params), source)
        recipe(source, target, float_model)
        return onnx.load(target)


def dynamic_int8(source: Path, target: Path, model: ZooModel) -> None:
    """`quantize_dynamic` with signed weights and all else as it comes: a scale for each weight matrix and each embedding table;
    activations are quantised as they come, by the extremes of the whole tensor."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(source, target, weight_type=QuantType.QInt8)


def static_qdq(source: Path, target: Path, model: ZooModel) -> None:
    """`quantize_static` behind `quant_pre_process`: unsigned activations, signed weights with a scale for each channel."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared = source.with_name("prepared.onnx")
    quant_pre_process(source, prepared)
    quantize_static(
        prepared,
        target,
        Calibration(model.feeds(CALIBRATION_BATCH, 1, seed) for seed in CALIBRATION_SEEDS),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        per_channel=True,
    )


def blocks_of_4_bits(source: Path, target: Path, model: ZooModel) -> None:
    """`MatMulNBitsQuantizer`, symmetric, with accuracy level 4, which lets a provider multiply in int8.

    It replaces products by constant matrices only. So the runtime's basic optimisations first fold the transposed table that is
    GPT-2's head, and Gemm nodes become MatMul and Add, as in the other two quantisers. `quant_pre_process` is no help: its
    symbolic shapes fail at GPT-2, and without them some versions write the model that was not optimised."""
    import onnxruntime as ort
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    from onnxruntime.quantization.onnx_model import ONNXModel

    folded, options = source.with_name("folded.onnx"), ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folded)
    ort.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    products = ONNXModel(onnx.load(folded))
    products.replace_gemm_with_matmul()
    quantiser = MatMulNBitsQuantizer(products.model, bits=4, block_size=BLOCK, is_symmetric=True, accuracy_level=4)
    quantiser.process()
    quantiser.model.save_model_to_file(target)


class Calibration:
    """What the static quantiser takes: an object that gives one batch after the other, and None at the end."""

    def __init__(self, batches: Iterable[Feeds]) -> None:
        self._batches = iter(batches)

    def get_next(self) -> Feeds | None:
        return next(self._batches, None)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the quantisers' log: they write advice to the root logger, and the import of one of them configures it."""
    root = logging.getLogger()
    handlers, level, disabled = list(root.handlers), root.level, root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(disabled)
        root.setLevel(level)
        root.handlers[:] = handlers
