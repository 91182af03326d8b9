"""The machine as Tracea sees it: what it can do, where kernels are kept, who compiles them. One per session, or longer."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from xyntra_ep import knobs
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.backends import DeviceTarget
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import CoreOp, Program
from xyntra_ep.tracea.doctor import ceilings
from xyntra_ep.tracea.doctor.decision import Decision, Tuned
from xyntra_ep.tracea.doctor.policy import Policy
from xyntra_ep.tracea.doctor.profile import Ceilings, Machine, capabilities, this_machine
from xyntra_ep.tracea.doctor.variants import VariantTable, cpu_variants
from xyntra_ep.tracea.emitters.cpu import emit
from xyntra_ep.tracea.interface.kernel_texts import KernelTexts
from xyntra_ep.tracea.interface.plan_kernel import KernelPlan, plan_kernel
from xyntra_ep.tracea.interface.topology.kinds import OperatorTopology
from xyntra_ep.tracea.interface.topology.plan import TopologyPlan, plan_topology
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.optimizer.tuning_cache import (
    Expected,
    MachineClass,
    Question,
    TuningCache,
    Verdict,
    expected_sizes,
    island_question,
    signature,
    usual_sizes,
)
from xyntra_ep.tracea.planning.builder import OpBuilder, TunedFor
from xyntra_ep.tracea.planning.constants import constant_ops, live_ops
from xyntra_ep.tracea.planning.plan import PlannedProgram
from xyntra_ep.tracea.planning.planner import gpu_builder
from xyntra_ep.tracea.prebuilt.first import PrebuiltFirst
from xyntra_ep.tracea.prebuilt.library import PrebuiltKernels, PrebuiltLibrary, prebuilt_for
from xyntra_ep.tracea.runtime.cache_root import CacheRoot, open_root
from xyntra_ep.tracea.runtime.compilers import Compiler, find_compiler, target_flags
from xyntra_ep.tracea.runtime.kernel_cache import KernelCache
from xyntra_ep.tracea.runtime.kernel_files import Hash128, KernelCompiler
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities


class Context:
    """Everything is found on first use, so that a context costs nothing until it is asked.

    >>> Context().plan_kernel("gemm", m=256, n=256, k=256).op
    'gemm'
    """

    def __init__(
        self,
        *,
        cache_dir: Path | None = None,
        dump_dir: Path | None = None,
        hash128: Hash128 | None = None,
        caps: Capabilities | None = None,
        variants: VariantTable | None = None,
        device: DeviceTarget | None = None,
        strict: bool = False,
        policy: Policy | None = None,
        prebuilt_first: bool = False,
        texts: KernelTexts | None = None,
    ) -> None:
        """``prebuilt_first``: kernels that are prebuilt are used though there is a compiler, until it has made others. ``texts``:
        takes the texts of kernels, of which nobody here makes code."""
        self.device = device  # where kernels run; None: the CPU
        self.policy = policy or Policy()
        self._strict = strict
        self._cache_dir = cache_dir
        self._dump_dir = dump_dir
        self._caps = caps
        self._variants = variants
        self._prebuilt_first = prebuilt_first
        self._texts = texts
        self.hash128 = hash128

    def on(self, device: DeviceTarget | None) -> Context:
        """The same for another device, or for the processor."""
        return self if device is self.device else self._with(device, self._variants)

    def choosing(self, variants: VariantTable) -> Context:
        """The same with only these variants."""
        return self._with(self.device, variants)

    @property
    def anew(self) -> Context:
        """The same, which has found out nothing yet."""
        return self._with(self.device, self._variants)

    @cached_property
    def untuned(self) -> Context:
        """The same without what tuning has found."""
        policy = replace(self.policy, asks_tuning=False)
        return self._with(self.device, self._variants, policy) if self.policy.tuned else self

    def _with(self, device: DeviceTarget | None, variants: VariantTable | None, policy: Policy | None = None) -> Context:
        return Context(
            cache_dir=self._cache_dir,
            dump_dir=self._dump_dir,
            hash128=self.hash128,
            caps=self._caps,
            variants=variants,
            device=device,
            strict=self._strict,
            policy=policy or self.policy,
            prebuilt_first=self._prebuilt_first,
            texts=self._texts,
        )

    @cached_property
    def root(self) -> CacheRoot:
        """The cache directory; its ``reason`` says when another than the one asked for is used."""
        return open_root(self._cache_dir if self._cache_dir is not None else knobs.current().cache_root)

    @cached_property
    def machine(self) -> Machine:
        """As the doctor sees it, of the time when it was first asked for."""
        return this_machine()

    @cached_property
    def caps(self) -> Capabilities:
        """The machine's capabilities, with measured ceilings where there are some; those that prebuilt kernels are for."""
        if self.prebuilt is not None:
            return replace(self.prebuilt.caps, cores=self.machine.cores)
        return self._caps if self._caps is not None else capabilities(self.machine, self._ceilings)

    @cached_property
    def prebuilt(self) -> PrebuiltLibrary | None:
        """The kernels that serve where there is no compiler; None for a device, for another machine, and with a compiler, unless
        they serve first."""
        if self.device is not None or self._caps is not None or self._texts is not None:
            return None
        library = prebuilt_for(self.machine)  # first, since a compiler is asked for its version
        return library if library is not None and (self._prebuilt_first or not self._has_compiler) else None

    @property
    def _has_compiler(self) -> bool:
        try:
            self.compiler  # noqa: B018  # it is looked for
        except (UnsupportedError, OSError):  # the disk may be full
            return False
        return True

    @cached_property
    def successors(self) -> KernelCache | None:
        """What compiles kernels for a model's sizes while its session runs with prebuilt ones; None where these stay, or where
        there are none."""
        return self._compiled if self.prebuilt is not None and self._has_compiler else None

    @cached_property
    def _ceilings(self) -> Ceilings | None:
        return ceilings.load(self.root.path, self.machine)

    @property
    def has_ceilings(self) -> bool:
        """Whether this machine was measured, or what it reaches is assumed."""
        return self._caps is None and self._ceilings is not None

    @cached_property
    def compiler(self) -> Compiler:
        """Raises UnsupportedError when the machine has none that can be used."""
        return find_compiler(self.root)

    @property
    def halves(self) -> frozenset[DType]:
        """The 16-bit floats in which products are worth asking for."""
        if self.device is not None:
            return self.device.gpu.halves
        return frozenset({DType.BF16}) if self.caps.has_bf16 else frozenset()

    @property
    def multiplies_bytes_by_blocks(self) -> bool:
        """Whether there is a fast product of bytes by weights that are scaled in blocks."""
        return self.device is None and self.caps.multiplies_nibbles

    @property
    def device_identity(self) -> str:
        """As plans name it: empty for the CPU."""
        return self.device.identity if self.device is not None else ""

    @cached_property
    def kernels(self) -> KernelCache | PrebuiltKernels | PrebuiltFirst | KernelTexts:
        """Where compiled kernels come from. Raises UnsupportedError where they come from nowhere."""
        if self._texts is not None:
            return self._texts
        if self.prebuilt is None:
            return self._compiled
        assert self._library is not None
        return self._library if self.successors is None else PrebuiltFirst(self._library, self.successors)

    @cached_property
    def _library(self) -> PrebuiltKernels | None:
        return PrebuiltKernels(self.root, self.prebuilt, self.hash128) if self.prebuilt is not None else None

    @property
    def _compiled(self) -> KernelCache:
        compiler: KernelCompiler
        if self.device is not None:
            compiler, flags = self.device.compiler, self.device.flags
        else:
            caps = self.caps
            compiler, flags = self.compiler, target_flags(caps.isa, bf16=caps.avx512_bf16, vnni=caps.vnni)
        return KernelCache(
            self.root,
            compiler,
            flags,
            hash128=self.hash128,
            keep_sources=knobs.current().debug >= 4,
            dump_dir=self._dump_dir,
        )

    @cached_property
    def builder(self) -> OpBuilder:
        """Decides and builds; shared by all programs of this context, so that equal ops are built once."""
        if self.device is not None:
            chosen = self._variants if self._variants is not None else self.device.variants
            return gpu_builder(self.device.gpu, self.device.emit, self.caps, chosen, self._tuned_for, slack=self.policy.slack)
        variants = self._variants if self._variants is not None else cpu_variants()
        slack, library = self.policy.slack, self._library
        if library is None:
            return OpBuilder(self.caps, variants, emit, self._tuned_for, strict=self._strict, slack=slack)
        return OpBuilder(self.caps, variants, emit, strict=self._strict, slack=slack, general=True, is_checked=library.has)

    @property
    def _tuned_for(self) -> TunedFor | None:
        """What was found out about ops, where it counts: who names variants gets these as they are."""
        if not self.policy.tuned or self._variants is not None or not self.tuning.results:
            return None

        def tuned_for(op: CoreOp, context: BuildContext) -> Tuned | None:
            expected = expected_sizes((op,), context.program.assumed)
            for threads in dict.fromkeys((*self.policy.threads(self.caps.cores), 1)):
                found = self.tuning.find(self.question(op, context.constants, threads, expected), expected)
                if found is not None and found.best is not None:
                    return Tuned(variant=found.best.variant, config=found.best.config, ratio=found.ratio)
            return None

        return tuned_for

    @cached_property
    def tuning(self) -> TuningCache:
        """What tuning has found for this machine, or the device."""
        return TuningCache.load(self.root.path, self.machine_class)

    def island_question(self, planned: PlannedProgram) -> Question | None:
        """What verdicts on an island answer: its ops, whatever computes them. None for one that has nothing to do in a run."""
        return self._asked_of(planned)[0]

    def verdict(self, planned: PlannedProgram) -> Verdict | None:
        """On an island that was measured beside ONNX Runtime."""
        if not self.policy.tuned or not self.tuning.islands:
            return None
        asked, expected = self._asked_of(planned)
        return self.tuning.verdict(asked, expected) if asked is not None else None

    def _asked_of(self, planned: PlannedProgram) -> tuple[Question | None, Expected]:
        """`island_question`, and the sizes that are expected."""
        program = planned.program
        once, known = constant_ops(program, live_ops(program))
        ops = [program.ops[number] for number, _ in planned.decisions if number not in once]
        if not ops:
            return None, {}
        expected = expected_sizes(ops, program.assumed)
        asked = self.question(ops[0], known, max(1, self.caps.cores), expected)
        return island_question([signature(op, known) for op in ops], asked), expected

    @property
    def tuning_problem(self) -> str:
        """Why tuning results that are there are not used; nothing where they are not asked for."""
        return self.tuning.problem if self.policy.tuned else ""

    @cached_property
    def machine_class(self) -> MachineClass:
        if self.device is not None:
            return MachineClass(name=self.device.identity)
        machine = self.machine
        return MachineClass(name=machine.key, l1d=machine.l1d_bytes, l2=machine.l2_bytes, l3=machine.l3_bytes)

    def question(self, op: CoreOp, constants: frozenset[int], threads: int, expected: Expected) -> Question:
        """As the tuning cache knows an op. ``constants``: values that are known when the session is created; ``expected``: sizes,
        of which the usual ones are asked for."""
        from xyntra_ep import __version__

        return Question(
            op=signature(op, constants),
            compiler=self._made_by,
            release=__version__,
            threads=threads if self.device is None else 1,
            device=self.device_identity,
            sizes=usual_sizes(expected),
        )

    @cached_property
    def _made_by(self) -> str:
        """What makes kernels: a compiler of another version may make others the fastest."""
        if not isinstance(self.kernels, KernelCache):
            return self.kernels.made_by
        compiler, target = self.kernels.compiler, self.kernels.target
        return (
            " ".join((compiler.version, *target)) if isinstance(compiler, Compiler) else compiler.salt(target).replace("\0", " ")
        )

    def estimate(self, op: CoreOp, program: Program | None = None, constants: frozenset[int] = frozenset()) -> Decision:
        """Which variant would compute ``op``, and its cost in nanoseconds, on one core or on the device; nothing is built.

        ``constants``: values that are known when the session is created. Raises UnsupportedError when nothing
        admits it.
        """
        return self.builder.decide(op, self.build_context(program if program is not None else Program(), constants))

    def build_context(self, program: Program, constants: frozenset[int]) -> BuildContext:
        """What variants may look at, for ops of ``program``."""
        return BuildContext(
            caps=self.caps,
            program=program,
            gpu=self.device.gpu if self.device is not None else None,
            constants=constants,
            strict=self._strict,
        )

    def plan_kernel(
        self,
        op: str,
        *,
        precision: str = "FP32",
        backend: str | None = None,
        architecture: str | None = None,
        **sizes: int,
    ) -> KernelPlan:
        """What Tracea would do for one op, and why. See `plan_kernel.plan_kernel`."""
        return plan_kernel(self, op, precision=precision, backend=backend, architecture=architecture, sizes=sizes)

    def plan_topology(
        self, op: OperatorTopology, *, m: int, n: int, k: int, precision: str = "fp32", constant: bool = True
    ) -> TopologyPlan:
        """How a linear operation of this kind would be carried out, and why. See `topology/plan.py`."""
        return plan_topology(self, op, m=m, n=n, k=k, precision=precision, constant=constant)

    def launch(self, op: OperatorTopology, *operands: Any, out: Any = None) -> Any:
        """Carry it out on arrays, as `plan_topology` chooses: x and W, of a low-rank one x, A, B and perhaps W beside them. See
        `xyntra_ep.frameworks.ops.topology`."""
        above = import_module("xyntra_ep.frameworks.ops.topology")  # as `tracea.ops`: what runs arrays is no layer of ours
        return above.launch(self, op, operands, out=out)
