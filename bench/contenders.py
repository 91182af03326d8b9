"""Who is measured: a provider of ONNX Runtime or another runtime, with its options."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xyntra_bench.errors import BenchError

BASELINE = "CPUExecutionProvider"
OPENVINO = "OpenVINO"  # its own runtime, through its own package; ONNX Runtime is not asked

TORCH = "torch"  # PyTorch on the GPU, with models of the zoo written for it (bench/torch_models)
PEERS = (OPENVINO, TORCH)  # each is a contender's peer in the same precision

# What `bench run torch` compares: a module as it is, and compiled by torch.compile with the backend of that name.
EAGER, INDUCTOR, XYNTRA = "eager", "inductor", "xyntra"
TORCH_BACKENDS = (EAGER, INDUCTOR, XYNTRA)

# Where a provider that ONNX Runtime does not bring along comes from.
PLUGINS = {"XyntraEP": "xyntra_ep"}

AUTO_BACKEND = "auto"
CPU_BACKEND = "cpu"  # of XyntraEP unless its contender says otherwise: a table of the CPU is of the CPU, also beside a GPU
FP32 = "fp32"
# What a reduced precision may cost, relative to max|b|: 8 bits of mantissa through the depth of the zoo's
# models (4e-3 to 1e-2 measured with bf16), and quantised weights.
PRECISION_MAX_ERR = {FP32: 0.0, "bf16": 2e-2, "fp16": 5e-3, "tf32": 5e-3, "int8w": 5e-2}
DEFAULT_MAX_ERR = 2e-5

HOW = "write NAME:key=value+key=value, contenders apart by commas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A provider with its options. A precision may stand alone.

    >>> Contender.parse("XyntraEP:claim=all+precision=bf16").options
    {'claim': 'all', 'precision': 'bf16'}
    >>> Contender.parse("OpenVINO:bf16").label
    'OpenVINO:precision=bf16'
    """

    provider: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, spec: str) -> Contender:
        provider, colon, rest = spec.partition(":")
        if not provider or "=" in provider:
            raise BenchError(f"provider '{spec}': the name is missing. {HOW}")
        options = {}
        for part in rest.split("+") if colon else ():
            key, equals, value = part.partition("=")
            if part in PRECISION_MAX_ERR:
                key, equals, value = "precision", "=", part
            if not (key and equals):
                raise BenchError(f"provider '{spec}': '{part}' is not key=value. {did_you_mean(part, PRECISION_MAX_ERR) or HOW}")
            options[key.strip()] = value.strip()
        return cls(provider=provider, options=options)

    @property
    def label(self) -> str:
        options = "+".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.provider}:{options}" if options else self.provider

    @property
    def precision(self) -> str:
        """What was asked for; a runtime may have fallen back."""
        return self.options.get("precision", FP32)

    def max_err(self, fp32_max_err: float) -> float:
        return max(fp32_max_err, PRECISION_MAX_ERR.get(self.precision, 0.0))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known name that somebody who wrote this one may have meant, as a hint; empty where none is near.

    >>> did_you_mean("openvino", ["OpenVINO", "torch"])
    "did you mean 'OpenVINO'?"
    """
    by_folded = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), by_folded, n=1)
    return f"did you mean '{by_folded[near[0]]}'?" if near else ""


def is_on_device(backend: str) -> bool:
    """Whether that is another place than the processor.

    >>> is_on_device("cuda"), is_on_device("cpu"), is_on_device("")
    (True, False, False)
    """
    return backend not in (CPU_BACKEND, AUTO_BACKEND, "")


def device_backends(contenders: Sequence[Contender]) -> tuple[str, ...]:
    """Where XyntraEP is asked to run, other than on the CPU or where it pleases.

    >>> device_backends(parse_contenders(["XyntraEP,XyntraEP:backend=cuda,XyntraEP:backend=cuda+bf16,XyntraEP:backend=auto"]))
    ('cuda',)
    """
    return tuple(filter(is_on_device, asked_backends(contenders)))


def devices_tried(contenders: Sequence[Contender]) -> tuple[str, ...]:
    """Backends whose sessions may ask for a device, and `auto` where one leaves it to the machine."""
    return tuple(backend for backend in asked_backends(contenders) if backend != CPU_BACKEND)


def asked_backends(contenders: Sequence[Contender]) -> tuple[str, ...]:
    """What XyntraEP's contenders say about it, each once."""
    asked = [contender.options.get("backend", "") for contender in contenders if contender.provider in PLUGINS]
    return tuple(dict.fromkeys(filter(None, asked)))


def backend_of(device: str) -> str:
    """Of a device as XyntraEP names it, empty for the CPU.

    >>> backend_of("CUDA / Example / sm_90 / driver 12.8"), backend_of("")
    ('cuda', 'cpu')
    """
    return device.partition(" / ")[0].lower() if device else CPU_BACKEND


def parse_contenders(specs: Sequence[str], reference: str = BASELINE) -> tuple[Contender, ...]:
    """Each text may hold several, apart by commas.

    The ``reference`` takes part in every comparison, so naming it beside others changes nothing; named alone it is
    measured against itself, which is the noise of the machine.

    >>> [c.label for c in parse_contenders(["CPUExecutionProvider,XyntraEP", "OpenVINO:bf16"])]
    ['XyntraEP', 'OpenVINO:precision=bf16']
    >>> [c.label for c in parse_contenders(["CPUExecutionProvider"])]
    ['CPUExecutionProvider']
    >>> [c.label for c in parse_contenders(["eager,xyntra,CPUExecutionProvider"], "eager")]
    ['xyntra', 'CPUExecutionProvider']
    """
    parsed = [Contender.parse(part.strip()) for spec in specs for part in spec.split(",")]
    unique = list({contender.label: contender for contender in parsed}.values())
    others = [contender for contender in unique if contender.label != reference]
    return tuple(others or unique)
