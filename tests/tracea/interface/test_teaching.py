"""`plan_kernel`: what would be done with one op, for this machine and for GPUs that are not here."""

from __future__ import annotations

from pathlib import Path

import pytest

from xyntra_ep.errors import ConfigError, UnsupportedError
from xyntra_ep.tracea.backends.opencl import OpenCl
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Attention, Conv, Product
from xyntra_ep.tracea.interface import Context
from xyntra_ep.tracea.interface.named_ops import OPS, Draft, op_named, table
from xyntra_ep.tracea.runtime import cuda, opencl
from xyntra_ep.tracea.runtime.cuda import CudaSurvey
from xyntra_ep.tracea.runtime.opencl import OpenClSurvey
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "gpu.md"


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without any device."""
    monkeypatch.setattr(cuda, "at_hand", lambda library: False)
    monkeypatch.setattr(cuda, "survey", lambda library: CudaSurvey(missing="there is no CUDA device", remedy="r"))
    monkeypatch.setattr(opencl, "gpu_at_hand", lambda: False)


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_the_processor_is_taken_and_the_reasons_are_there(tmp_path: Path) -> None:
    plan = Context(cache_dir=tmp_path, caps=AVX2).plan_kernel("flash_attention_2", precision="BF16")
    assert (plan.variant, plan.backend, plan.precision) == ("attention.fused", "cpu", "fp32")
    for row in (
        ("backend cuda", "there is no CUDA device"),
        ("backend metal", "this is no machine with Metal"),
        ("backend opencl", "there is no GPU with a driver of OpenCL"),
        ("precision bf16", "precision=bf16 needs AMX, or AVX512_BF16 on AMD: computed in fp32"),
    ):
        assert row in plan.rejected
    assert plan.assumed == ("batch", "heads", "s", "t", "d_head") and not plan.launches
    text = str(plan)
    assert text.startswith("flash_attention_2 batch=16 heads=16 s=1024 t=1024 d_head=128: attention.fused on cpu (")
    assert "not given: batch, heads, s, t, d_head; taken from a sequence of" in text
    assert "not backend cuda: there is no CUDA device" in text and "us on one core (estimate)" in text


def test_what_a_device_cannot_count_is_not_planned_for_it(tmp_path: Path) -> None:
    device = OpenCl().target(OpenClSurvey(devices=(a_gpu(),)))
    with pytest.raises(UnsupportedError, match="a tensor of 2147483648 elements is too large for a device"):
        Context(cache_dir=tmp_path, device=device).plan_kernel("add", n=1 << 31)


@pytest.mark.usefixtures("no_gpu")
def test_a_backend_without_a_device_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"^plan_kernel: backend=cuda cannot be had: there is no CUDA device. .*architecture='h200'"
    ):
        Context(cache_dir=tmp_path).plan_kernel("gemm", backend="cuda")


def test_a_device_of_the_context_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenCL's kernels are not compiled for an answer."""
    device = OpenCl().target(OpenClSurvey(devices=(a_gpu(),)))
    monkeypatch.setattr(cuda, "at_hand", lambda library: pytest.fail("nobody asked for CUDA"))
    plan = Context(cache_dir=tmp_path, device=device).plan_kernel("gemm", m=256, precision="fp16")
    assert (plan.variant, plan.backend, plan.device, plan.precision) == ("gemm.block_tiles", "opencl", "a GPU", "fp16")
    assert plan.launches and all(launch.kernel.threads > 0 and launch.kernel.report is None for launch in plan.launches)
    assert Context(cache_dir=tmp_path, device=device).plan_kernel("gemm", backend="cpu").backend == "cpu"


def a_gpu(*, is_cpu: bool = False) -> opencl.OpenClDevice:
    return opencl.OpenClDevice(
        identity="i", place=(0, 0), name="a GPU", platform="p", version="3", is_cpu=is_cpu, compute_units=32, max_threads=256,
        shared_bytes=32 << 10, memory_bytes=1 << 33, divides_exactly=True, has_half=True,
        vendor="v", clock_mhz=1000,
    )  # fmt: skip


@pytest.mark.compiler("nvrtc")
@pytest.mark.parametrize(
    ("op", "architecture", "precision", "variant"),
    [
        ("flash_attention_2", "sm_80", "BF16", "attention.fragments"),
        ("matmul", "sm_80", "fp32", "gemm.block_tiles"),
        ("conv2d", "rtx 4090", "fp16", "conv.fragments"),
    ],
)
def test_a_gpu_that_is_not_here_is_planned_and_compiled_for(
    op: str, architecture: str, precision: str, variant: str, tmp_path: Path
) -> None:
    plan = Context(cache_dir=tmp_path).plan_kernel(op, architecture=architecture, precision=precision)
    assert (plan.variant, plan.backend, plan.precision) == (variant, "cuda", precision.lower())
    assert "by data sheet" in plan.device and all(name.split(".")[0] == variant.split(".")[0] for name, _ in plan.rejected)
    launch = plan.launches[0]
    kernel = launch.kernel
    assert kernel.report is not None and kernel.occupancy is not None and kernel.report.spilled_bytes == 0
    assert kernel.occupancy.blocks >= 1 and launch.waves == launch.blocks / (launch.units * kernel.occupancy.blocks) > 1
    assert f"{kernel.report.registers} registers" in str(plan) and " on a multiprocessor, " in str(plan)


@pytest.mark.compiler("nvrtc")
def test_a_kernel_whose_blocks_stay_fills_a_gpu_once(tmp_path: Path) -> None:
    """Products and attention by warpgroups: a block for each multiprocessor, which it has to itself."""
    for op, variant in (("flash_attention_2", "attention.wgmma"), ("matmul", "gemm.wgmma")):
        plan = Context(cache_dir=tmp_path).plan_kernel(op, architecture="h200", precision="BF16")
        [launch] = plan.launches
        assert plan.variant == variant and launch.blocks == launch.units and launch.waves == 1
        assert launch.kernel.occupancy is not None and launch.kernel.occupancy.blocks == 1


@pytest.mark.parametrize("op", [op.name for op in OPS])
def test_each_op_has_an_answer(op: str, tmp_path: Path) -> None:
    for caps in (AVX512, AVX2):
        plan = Context(cache_dir=tmp_path, caps=caps).plan_kernel(op, backend="cpu")
        assert plan.cost_ns > 0 and not any(name.startswith("backend") for name, _ in plan.rejected)
        assert Context(cache_dir=tmp_path, caps=caps).plan_kernel(op, backend="cpu") == plan, "the answer is not stable"


def test_ops_are_as_sessions_have_them() -> None:
    """What is multiplied narrow is stored narrow, weights are as models bring them, and channels are neighbours."""
    conv, attention = (op_named(name) for name in ("convolution", "SDPA"))
    made = conv.build(Draft(Product.BF16), **conv.complete({"c": 8, "k": 1}))
    assert isinstance(made, Conv) and made.product is Product.BF16 and made.inputs[0].strides[1] == 1 and made.pads == (0, 0)
    assert [o.dtype for o in (*made.inputs, made.output)] == [DType.BF16, DType.F32, DType.BF16]
    made = attention.build(Draft(Product.F32), **attention.complete({"s": 7}))
    assert isinstance(made, Attention) and made.inputs[1].shape == (16, 16, 7, 128)


def test_the_names_are_in_the_document() -> None:
    assert table() in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("op", "given", "message"),
    [
        ("gem", {}, "plan_kernel: no op 'gem'. did you mean 'gemm'?"),
        ("flash_attention_3", {}, "plan_kernel: no op 'flash_attention_3'. did you mean 'flash_attention_2'?"),
        ("zzz", {}, "plan_kernel: no op 'zzz'. there are gemm, conv, attention, softmax, add"),
        ("gemm", {"precision": "fp99"}, "plan_kernel: no precision 'fp99'. there are fp32, tf32, bf16, fp16, int8w"),
        ("gemm", {"precision": "bf61"}, "plan_kernel: no precision 'bf61'. did you mean 'bf16'?"),
        ("add", {"m": 1}, "plan_kernel('add'): no size 'm'. it takes n"),
        ("gemm", {"m": 0}, "plan_kernel('gemm'): m=0 is no size. it wants an integer of at least 1"),
        ("gemm", {"m": 2.5}, "plan_kernel('gemm'): m=2.5 is no size. it wants an integer of at least 1"),
        ("gemm", {"m": "128"}, "plan_kernel('gemm'): m='128' is no size. it wants an integer of at least 1"),
        ("conv", {"pad": -1}, "plan_kernel('conv'): pad=-1 is no size. it wants an integer of at least 0"),
        ("conv", {"c": 7, "group": 2}, "plan_kernel('conv'): c=7 channels cannot be shared out to group=2 groups"),
        ("conv", {"c": 8, "m": 9, "group": 4}, "plan_kernel('conv'): m=9 channels cannot be shared out to group=4 groups"),
        (
            "conv",
            {"h": 9, "w": 2, "k": 7, "pad": 2},
            "plan_kernel('conv'): a kernel of k=7 is larger than w=2 with pad=2 on both sides",
        ),
        ("gemm", {"backend": "cudda"}, "plan_kernel: no backend 'cudda'. did you mean 'cuda'?"),
        ("gemm", {"architecture": "h300"}, "architecture: no GPU 'h300' is known. did you mean 'h200'?"),
        (
            "gemm",
            {"backend": "opencl", "architecture": "h100"},
            "plan_kernel: architecture='h100' is not for backend='opencl'. leave one of them out, or say backend='cuda'",
        ),
    ],
)
def test_a_wrong_question_is_answered_with_what_there_is(op: str, given: dict[str, object], message: str, tmp_path: Path) -> None:
    given = {"backend": "cpu"} | given if "architecture" not in given else given
    with pytest.raises(ConfigError) as caught:
        Context(cache_dir=tmp_path, caps=AVX512).plan_kernel(op, **given)  # type: ignore[arg-type]  # that is the point
    assert str(caught.value) == message
