"""Kernels of the user on the processor: as Triton's interpreter has them; what is not read is told with its line."""

from __future__ import annotations

import importlib.util
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.frameworks.triton.interpreted import needs_triton, run_child
from xyntra_ep.errors import ConfigError, UnsupportedError
from xyntra_ep.frameworks.triton.on_cpu import CpuKernel, on_cpu
from xyntra_ep.frameworks.triton.reading.programs import program_of
from xyntra_ep.frameworks.triton.reading.reader import TensorArgument, read
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm, Pointwise, Product, RowReduce

pytestmark = [*needs_triton, pytest.mark.native, pytest.mark.compiler("cc")]
HALVES = {"f16": 1e-3, "bf16": 8e-3}
F32 = TensorArgument(DType.F32)


@pytest.fixture
def launches() -> ModuleType:
    from tests.frameworks.triton import launches

    return launches


@pytest.fixture
def kernels() -> ModuleType:
    from tests.frameworks.triton import kernels

    return kernels


def test_as_tritons_interpreter(launches: ModuleType, tmp_path: Path) -> None:
    import torch

    names = list(launches.LAUNCHES)
    wrong = []
    for name, wanted in zip(names, run_child(names, tmp_path), strict=True):
        assert not isinstance(wanted, str), (name, wanted)
        for got, right in zip(launches.LAUNCHES[name](on_cpu), wanted, strict=True):
            right = torch.from_numpy(right)
            right = (right.view(torch.bfloat16) if got.dtype is torch.bfloat16 else right).double()
            got = got.double()
            finite = right.isfinite()
            assert finite.any()
            if not torch.equal(got[~finite].nan_to_num(1.5), right[~finite].nan_to_num(1.5)) or not got[finite].isfinite().all():
                wrong.append(f"{name}: NaN and infinity")
                continue
            error = float((got - right)[finite].abs().max() / right[finite].abs().max())
            if error > HALVES.get(name.split()[-1], 2e-6):
                wrong.append(f"{name}: {error:.2g}")
    assert wrong == []


def test_what_it_becomes(kernels: ModuleType) -> None:
    """Blocked loops are the operations that they stand for, without masks or padding."""
    added = read(kernels.vector_add, (8,), {"x_ptr": F32, "y_ptr": F32, "out_ptr": F32, "n": 1000, "BLOCK": 128})
    [op] = program_of(added, [1000, 1000, 1000]).program.ops
    assert isinstance(op, Pointwise)
    assert (op.domain, str(op.bodies[0])) == ((1000,), "add(in0[i0], in1[i0])")

    given = {"out_ptr": F32, "in_ptr": F32, "in_stride": 103, "out_stride": 100, "columns": 100, "BLOCK": 128}
    [op] = program_of(read(kernels.softmax, (9,), given), [900, 924]).program.ops
    assert isinstance(op, RowReduce)
    assert (op.outer, op.inner, [str(s.kind) for s in op.stages]) == ((9,), (100,), ["max", "sum"])

    half = TensorArgument(DType.BF16)
    numbers = dict(zip(("M", "N", "K", "stride_am", "stride_ak", "stride_bk", "stride_bn", "stride_cm", "stride_cn"),
                       (70, 50, 90, 90, 1, 50, 1, 50, 1), strict=True))  # fmt: skip
    blocks = {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 32, "GROUP": 3, "ACTIVATION": "leaky_relu"}
    found = read(kernels.matmul, (10,), {"a_ptr": half, "b_ptr": half, "c_ptr": half, **numbers, **blocks})
    [op] = program_of(found, [6300, 4500, 3500]).program.ops
    assert isinstance(op, Gemm)
    assert (op.domain, op.inputs[0].shape, op.product) == ((70, 50), (70, 90), Product.BF16)


def test_numpy_arrays_and_kept_compilations(kernels: ModuleType) -> None:
    add = on_cpu(kernels.vector_add)
    x, out = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
    add[(1,)](x, x, out, 10, BLOCK=16)
    assert out.tolist() == (2 * x).tolist()
    add[(1,)](x, x + 1, out, n=10, BLOCK=16, num_warps=4)
    assert out.tolist() == (2 * x + 1).tolist()
    assert len(add._compiled) == 1
    add[(1,)](x, x, out, 9, BLOCK=16)  # the last stays as it was
    assert out.tolist() == [*(2 * x[:9]), 19.0]
    assert len(add._compiled) == 2


def test_an_autotuner_is_its_first_configuration(kernels: ModuleType) -> None:
    softsign = on_cpu(kernels.softsign)
    x, out = np.linspace(-3, 3, 90, dtype=np.float32), np.zeros(90, np.float32)
    grids = []

    def grid(meta: Mapping[str, int]) -> tuple[int]:
        grids.append(meta["BLOCK"])
        return (3,)

    softsign[grid](x, out, 90)
    assert grids == [32]
    np.testing.assert_allclose(out, x / (1 + np.abs(x)), rtol=1e-6)


HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"


def written(body: str, folder: Path, parameters: str = "x_ptr, out_ptr, n, BLOCK: tl.constexpr") -> CpuKernel:
    path = folder / "user.py"
    path.write_text(
        f"{HEAD}def kernel({parameters}):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n", encoding="utf-8"
    )
    spec = importlib.util.spec_from_file_location("user", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return on_cpu(module.kernel)


INDEX = "i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
REFUSED = {
    "while": (f"{INDEX}while n > 0:\n    n -= 1", 8, "a statement of the kind While"),
    "atomic": (f"{INDEX}tl.atomic_add(out_ptr + i, 1.0, mask=i < n)", 8, "the function atomic_add"),
    "scatter": (f"{INDEX}j = tl.load(x_ptr + i, mask=i < n, other=0).to(tl.int32)\ntl.store(out_ptr + j, 1.0, mask=i < n)", 9,
                "a store to places that are computed"),
    "same place": (f"{INDEX}tl.store(out_ptr + i % 4, 1.0, mask=i < n)", 8, "a store to places that are computed"),
    "overlap": (f"{INDEX}tl.store(out_ptr + i // BLOCK, tl.load(x_ptr + i))", 8, "a store to places that are computed"),
    "all programs": ("tl.store(out_ptr, 1.0)", 7,
                     "a store by several programs to the same places, or by none to some between them"),
    "data mask": (f"{INDEX}x = tl.load(x_ptr + i, mask=i < n)\ntl.store(out_ptr + i, x, mask=x > 0)", 9,
                  "a store whose mask says more than where axes end"),
    "hidden sum": ("i = tl.arange(0, BLOCK)\nx = tl.load(x_ptr + i, mask=i < 9, other=1.0)\ns = tl.sum(x, axis=0)\n"
                   "tl.store(out_ptr + tl.program_id(0) * BLOCK + i, x / s, mask=i < 9)", 10,
                   "a store of rows of another length than what is summed up for them"),
    "online": ("i = tl.arange(0, BLOCK)\nm = -float('inf')\ns = 0.0\nfor k in range(0, n, BLOCK):\n"
               "    x = tl.load(x_ptr + k + i)\n    new = tl.maximum(m, tl.max(x, axis=0))\n"
               "    s = s * tl.exp(m - new) + tl.sum(tl.exp(x - new), axis=0)\n    m = new\n"
               "tl.store(out_ptr + tl.program_id(0), s)", 10,
               "s is carried from iteration to iteration, and is no sum, maximum or minimum"),
    "if": ("x = tl.load(x_ptr)\nif x > 0:\n    tl.store(out_ptr + tl.program_id(0), x)", 8,
           "an `if` about what only a run knows"),
    "unknown": (f"{INDEX}tl.store(out_ptr + i, nothing)", 8, "the name nothing, which is nothing here"),
    "beyond": (f"{INDEX}tl.store(out_ptr + i + 1, 1.0)", 8, "a store to elements 1 to 32 of a tensor that has 32"),
    "iteration before": ("i = tl.arange(0, BLOCK)\nfor k in range(0, n - BLOCK, BLOCK):\n"
                         "    tl.store(out_ptr + BLOCK + k + i, tl.load(out_ptr + k + i))", 9,
                         "a load from what the kernel has stored to"),
    "last of a loop": ("i = tl.arange(0, BLOCK)\nx = tl.load(x_ptr + i)\nfor k in range(0, n, BLOCK):\n"
                       "    x = tl.load(x_ptr + k + i)\ntl.store(out_ptr + tl.program_id(0) * BLOCK + i, x)", 11,
                       "what a loop carries is used before the loop ends"),
    "a choice": (f"{INDEX}x = tl.load(x_ptr)\ny = 1.0 if x > 0 else 2.0", 9, "an `if` about what only a run knows"),
    "return": ("for k in range(n):\n    return", 7, "a `return` in a loop"),
    "reads back": (f"{INDEX}tl.store(out_ptr + i, 1.0)\ntl.store(x_ptr + i, tl.load(out_ptr + i))", 9,
                   "a load from what the kernel has stored to"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, tmp_path: Path) -> None:
    body, line, reason = REFUSED[name]
    x, out = np.zeros(32, np.float32), np.zeros(32, np.float32)
    with pytest.raises(UnsupportedError) as raised:
        written(body, tmp_path)[(2,)](x, out, 32, BLOCK=16)
    assert str(raised.value) == f"user.py:{line}: {reason}. docs/triton.md says what is read"


def _wrong_count(kernel: CpuKernel, x: Any) -> None:
    kernel[(1,)](x, x, 3, 4, 5)


def _missing(kernel: CpuKernel, x: Any) -> None:
    kernel[(1,)](x, x, 3)


def _unknown(kernel: CpuKernel, x: Any) -> None:
    kernel[(1,)](x, x, 3, BLOK=16)


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        (_wrong_count, "kernel: 5 arguments for 4 parameters"),
        (_missing, "kernel: nothing is given for 'BLOCK'"),
        (_unknown, "kernel: no parameter 'BLOK'"),
    ],
)
def test_arguments_that_do_not_fit(launch: Callable[[CpuKernel, Any], None], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        launch(written("tl.store(out_ptr, 1.0)", tmp_path), np.zeros(4, np.float32))


def test_what_is_no_kernel() -> None:
    with pytest.raises(UnsupportedError, match="int is no Triton kernel"):
        on_cpu(3)
