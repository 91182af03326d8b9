"""C with vectors and matrix tiles, which CPU kernels use in addition to scalars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.emitters.c_family import CPrinter, Target
from xyntra_ep.tracea.semantic_ir.matrix_nodes import (
    ClampedQuadDot,
    LoadWords,
    PackPairs,
    PairDot,
    QuadDot,
    ShortDot,
    StoreBytes,
    StoreWords,
    TileConfigure,
    TileDot,
    TileLoad,
    TileRelease,
    TileStatement,
    TileStore,
    TileZero,
)
from xyntra_ep.tracea.semantic_ir.nibble_nodes import Nibble
from xyntra_ep.tracea.semantic_ir.nodes import (
    COMPARE,
    Assign,
    Binary,
    Bitcast,
    Const,
    Convert,
    Elem,
    Fma,
    Gather,
    Iota,
    Let,
    Load,
    Prefetch,
    Reduce,
    Select,
    Shuffle,
    Splat,
    Statement,
    Store,
    Type,
    Unary,
    Var,
)
from xyntra_ep.tracea.semantic_ir.superstep_nodes import Arrive, Await, Claim, Reached
from xyntra_ep.tracea.semantic_ir.table_nodes import ByteLookup, LookupIn

_WIDENED = (DType.I32, DType.I16, DType.U16, DType.I8, DType.U8)  # as i64, what a load of them gives
_PLAIN = (DType.F32, DType.I64, *_WIDENED)  # one element needs no helper


class VectorTarget(Target, Protocol):
    """A target with vectors."""

    def storage(self, dtype: DType) -> str: ...
    def prefetch(self, address: str, locality: int, write: bool) -> str: ...
    def add_product(self, kind: Type, total: str, a: str, b: str) -> str | None:
        """The statement by which the variable ``total`` of ``kind`` takes a * b on in the register that it is in; None where the
        compiler's own choice is as good."""
        ...

    def nibble(self, kind: Type, words: str, position: int) -> str:
        """A signed 4-bit integer of each i32 lane, see `Nibble`."""
        ...

    def lookup_in(self, kind: Type) -> str:
        """Name of the helper that looks i32 lanes up in memory, see `LookupIn`."""
        ...

    def byte_lookup(self, vectors: int, kind: Type) -> str:
        """The same in vectors, see `ByteLookup`."""
        ...

    def store_bytes(self, dtype: DType, vectors: int) -> str:
        """Name of the helper that stores words as bytes, see `StoreBytes`."""
        ...

    def tile_configure(self, shapes: Sequence[tuple[str, str]]) -> str:
        """Rows and bytes of a row of each tile register, as text."""
        ...

    def tile_operation(self, name: str, tiles: Sequence[int], address: str = "", stride_bytes: str = "") -> str:
        """``name``: zero, load, pair_dot and quad_dot (c, a, b), store, release."""
        ...

    def superstep(self, name: str) -> str:
        """The helper by which threads share out supersteps: claim, reached, arrive, await."""
        ...


class VectorPrinter(CPrinter):
    """One kernel's text, values of any number of lanes by the GNU vector extension."""

    def __init__(self, target: VectorTarget) -> None:
        super().__init__(target)
        self.target = target
        self._foldable: frozenset[Var] = frozenset()
        self._visit |= {
            Splat: self._splat,
            Iota: lambda e: f"({self.target.type(e.to)}){{{', '.join(str(i) for i in range(max(1, e.to.lanes)))}}}",
            Gather: lambda e: (
                f"{self._helper('gather', e.type, self._dtype(e.pointer))}({self.address(e.pointer)}, {self.expr(e.index)})"
            ),
            Shuffle: self._shuffle,
            Reduce: lambda e: (
                self.expr(e.a) if e.a.type.lanes <= 1 else f"{self._helper('reduce_' + e.op, e.a.type)}({self.expr(e.a)})"
            ),
            LoadWords: self._load_words,
            PackPairs: lambda e: f"{self._helper('pack_pairs', e.type)}({self.expr(e.low)}, {self.expr(e.high)})",
            PairDot: lambda e: self._word_dot("pair_dot", e),
            ShortDot: lambda e: self._word_dot("short_dot", e),
            QuadDot: lambda e: self._word_dot("quad_dot", e),
            ClampedQuadDot: lambda e: self._word_dot("clamped_quad_dot", e),
            Nibble: lambda e: self.target.nibble(e.type, self.expr(e.words), e.position),
            LookupIn: lambda e: f"{self.target.lookup_in(e.type)}({self.address(e.pointer, e.first)}, {self.expr(e.index)})",
            ByteLookup: lambda e: (
                f"{self.target.byte_lookup(len(e.table), e.type)}({', '.join(map(self.expr, (*e.table, e.index)))})"
            ),
            Claim: lambda e: f"{self.target.superstep('claim')}({self.address(e.pointer, e.index)}, {self.expr(e.superstep)})",
            Reached: lambda e: f"{self.target.superstep('reached')}({self.address(e.pointer, e.index)})",
        }

    def block(self, statements: tuple[Statement, ...], depth: int) -> None:
        outer, self._foldable = self._foldable, _loaded_for_one_product(statements)
        super().block(statements, depth)
        self._foldable = outer

    def _statement(self, s: Statement, depth: int) -> None:
        match s:
            case Assign(var=total, value=Fma(a=Var() as a, b=Var() as b, c=c)) if c is total and not {a, b} & self._foldable:
                text = self.target.add_product(total.type, total.name, a.name, b.name)
                self._line(depth, text or f"{total.name} = {self.expr(s.value)};")
            case Prefetch():
                self._line(depth, self.target.prefetch(self.address(s.pointer, s.index), s.locality, s.write))
            case StoreWords():
                self._line(depth, self._store_words(s))
            case StoreBytes():
                values = ", ".join(map(self.expr, s.values))
                name = self.target.store_bytes(self._dtype(s.pointer), len(s.values))
                self._line(depth, f"{name}({self.address(s.pointer, s.index)}, {values});")
            case Arrive() | Await():
                helper = self.target.superstep("arrive" if isinstance(s, Arrive) else "await")
                self._line(depth, f"{helper}({self.address(s.pointer, s.index)}, {self.expr(s.number)});")
            case TileConfigure() | TileZero() | TileLoad() | TileDot() | TileStore() | TileRelease():
                self._line(depth, self._tile(s))
            case _:
                super()._statement(s, depth)

    # -- memory

    def _load(self, e: Load) -> str:
        dtype, kind = self._dtype(e.pointer), e.type
        address = self.address(e.pointer, e.index)
        if e.count is not None:
            return f"{self._helper('load_n', kind, dtype)}({address}, {self.expr(e.count)})"
        if e.lanes <= 1 and dtype in _PLAIN:
            return f"(({self.target.type(kind)})*({address}))"
        if dtype is DType.F32:
            return f"(*(const {self.target.type(kind)} *)({address}))"
        return f"{self._helper('load', kind, dtype)}({address})"

    def _store(self, s: Store) -> str:
        dtype, kind = self._dtype(s.pointer), s.value.type
        address, value = self.address(s.pointer, s.index), self.expr(s.value)
        if s.count is not None:
            return f"{self._helper('store_n', kind, dtype)}({address}, {value}, {self.expr(s.count)});"
        if kind.lanes <= 1 and dtype in _PLAIN:
            return f"*({address}) = ({self.target.storage(dtype)}){value};"
        if dtype is DType.F32:
            return f"*({self.target.type(kind)} *)({address}) = {value};"
        return f"{self._helper('store', kind, dtype)}({address}, {value});"

    def _word_dot(self, name: str, e: PairDot | ShortDot | QuadDot | ClampedQuadDot) -> str:
        return f"{self._helper(name, e.type)}({self.expr(e.a)}, {self.expr(e.b)}, {self.expr(e.c)})"

    def _load_words(self, e: LoadWords) -> str:
        address, dtype = self.address(e.pointer, e.index), self._dtype(e.pointer)
        if e.count is not None:
            return f"{self._helper('load_words_n', e.type, dtype)}({address}, {self.expr(e.count)})"
        return f"{self._helper('load_words', e.type, dtype)}({address})"

    def _store_words(self, s: StoreWords) -> str:
        address, value, kind = self.address(s.pointer, s.index), self.expr(s.value), s.value.type
        dtype = self._dtype(s.pointer)
        if s.count is not None:
            return f"{self._helper('store_words_n', kind, dtype)}({address}, {value}, {self.expr(s.count)});"
        return f"{self._helper('store_words', kind, dtype)}({address}, {value});"

    # -- tiles

    def _tile(self, s: TileStatement) -> str:
        match s:
            case TileConfigure():
                return self.target.tile_configure([(self.expr(t.rows), self.expr(t.row_bytes)) for t in s.shapes])
            case TileZero():
                return self.target.tile_operation("zero", (s.tile,))
            case TileDot():
                return self.target.tile_operation("quad_dot" if s.dot is QuadDot else "pair_dot", (s.c, s.a, s.b))
            case TileRelease():
                return self.target.tile_operation("release", ())
            case TileLoad() | TileStore():
                name = "load" if isinstance(s, TileLoad) else "store"
                stride = self.expr(s.stride * self._dtype(s.pointer).bytes)
                return self.target.tile_operation(name, (s.tile,), self.address(s.pointer, s.index), stride)

    # -- rvalues

    def _const(self, e: Const) -> str:
        literal = super()._const(e)
        if e.ctype.lanes <= 1:
            return literal
        if float(e.value) == 0.0 and not literal.startswith("(-"):
            return f"({self.target.type(e.ctype)}){{0}}"
        return f"({self.target.type(e.ctype)}){{{', '.join([literal] * e.ctype.lanes)}}}"

    def _binary(self, e: Binary) -> str:
        kind = e.a.type
        if e.op not in COMPARE or kind.lanes <= 1:
            return super()._binary(e)
        if kind.elem is Elem.I64:
            a, b = self.expr(e.a), self.expr(e.b)  # helpers are defined in the order in which they are asked for
            return f"{self._helper(e.op, kind)}({a}, {b})"
        relation = self.relation(e)
        return f"(({self.target.type(e.type)}){relation})"

    def _select(self, e: Select) -> str:
        if e.a.type.lanes <= 1:
            return super()._select(e)
        mask, a, b = self.expr(e.mask), self.expr(e.a), self.expr(e.b)
        return f"{self._helper('select', e.a.type)}({mask}, {a}, {b})"

    def _convert(self, e: Convert) -> str:
        if e.to.lanes <= 1:
            return super()._convert(e)
        if isinstance(e.a, Load) and (dtype := self._dtype(e.a.pointer)) in _WIDENED:
            # One step to the wanted type: as i64, what it is loaded as, a vector of bytes would take eight registers.
            address = self.address(e.a.pointer, e.a.index)
            if e.a.count is not None:
                return f"{self._helper('load_n', e.to, dtype)}({address}, {self.expr(e.a.count)})"
            return f"{self._helper('load', e.to, dtype)}({address})"
        if e.to.elem is Elem.I32 and isinstance(e.a, Unary) and e.a.op == "rint":
            return f"{self._helper('nearest', e.to)}({self.expr(e.a.a)})"
        return f"__builtin_convertvector({self.expr(e.a)}, {self.target.type(e.to)})"

    def _bitcast(self, e: Bitcast) -> str:
        if e.to.lanes <= 1:
            return super()._bitcast(e)
        return f"(({self.target.type(e.to)}){self.expr(e.a)})"

    def _splat(self, e: Splat) -> str:
        if isinstance(e.a, (Var, Const)):
            text = self.expr(e.a)
            return f"({self.target.type(e.to)}){{{', '.join([text] * e.to.lanes)}}}"
        return f"{self._helper('splat', e.to)}({self.expr(e.a)})"

    def _shuffle(self, e: Shuffle) -> str:
        return f"__builtin_shufflevector({self.expr(e.a)}, {self.expr(e.b)}, {', '.join(map(str, e.lanes))})"


def _loaded_for_one_product(statements: tuple[Statement, ...]) -> frozenset[Var]:
    """Vectors that a compiler loads by the instruction that multiplies with them."""
    products = [s.value for s in statements if isinstance(s, Assign) and isinstance(s.value, Fma)]
    uses = Counter(factor for product in products for factor in (product.a, product.b))
    return frozenset(s.var for s in statements if isinstance(s, Let) and isinstance(s.value, Load) and uses[s.var] == 1)
