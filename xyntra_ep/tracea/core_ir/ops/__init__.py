"""Core IR: what is computed, in a few big ops over strided operands.

    Program = values, ops in execution order, symbol bindings, guards, checks
    op      = Pointwise | RowReduce | Gemm | LowRankGemm | BlockGemm | Conv | Attention | Scan | TopK | Recurrence

An ``Operand`` is a strided view of a value, so transposes, slices, broadcasts (stride 0) and most reshapes cost nothing; every
kernel states which strides it takes. Inputs are numbered per op: ``Load(j, ...)`` in an expression reads ``op.inputs[j]``.
A kind of op is one file here, with its meaning in float64; what it has to say is in `core_op.py`, and others ask it.
"""

from xyntra_ep.tracea.core_ir.ops.attention import Attention, NoSoftmax
from xyntra_ep.tracea.core_ir.ops.block_gemm import BlockGemm
from xyntra_ep.tracea.core_ir.ops.conv import Conv
from xyntra_ep.tracea.core_ir.ops.core_op import CoreOp
from xyntra_ep.tracea.core_ir.ops.gemm import Gemm
from xyntra_ep.tracea.core_ir.ops.low_rank_gemm import LowRankGemm
from xyntra_ep.tracea.core_ir.ops.operand import Operand, Value, ValueKind, contiguous_strides
from xyntra_ep.tracea.core_ir.ops.pointwise import Pointwise
from xyntra_ep.tracea.core_ir.ops.product import PRODUCT_OF, Product, ProductOp
from xyntra_ep.tracea.core_ir.ops.program import Applied, Binding, Program, Range, SymbolKind
from xyntra_ep.tracea.core_ir.ops.recurrence import Recurrence, RecurrentStage
from xyntra_ep.tracea.core_ir.ops.row_reduce import ReduceKind, RowOutput, RowReduce, Stage
from xyntra_ep.tracea.core_ir.ops.scan import Scan
from xyntra_ep.tracea.core_ir.ops.top_k import TopK

__all__ = [
    "PRODUCT_OF", "Applied", "Attention", "Binding", "BlockGemm", "Conv", "CoreOp", "Gemm", "LowRankGemm", "NoSoftmax", "Operand",
    "Pointwise", "Product", "ProductOp",
    "Program", "Range", "Recurrence", "RecurrentStage", "ReduceKind", "RowOutput", "RowReduce", "Scan", "Stage", "SymbolKind",
    "TopK", "Value", "ValueKind", "contiguous_strides",
]  # fmt: skip
