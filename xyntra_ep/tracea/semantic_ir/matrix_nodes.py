"""Nodes for matrix products in narrow types: products of words in vector lanes, and products of whole tiles.

words    two or four neighbours along k in one i32 lane, the first in the low bits: pairs of bfloat16 or of 16-bit integers,
         quads of bytes. ``LoadWords`` takes them from memory as they lie, ``PackPairs`` makes pairs of two f32 vectors;
         ``PairDot``, ``ShortDot`` and ``QuadDot`` multiply: lane l gains the sum over i of a[l][i] * b[l][i];
         ``ClampedQuadDot`` does so where no two neighbours have a sum that is large
tiles    eight registers, each of at most 16 rows of at most 64 bytes (Intel AMX). ``TileConfigure`` says how large they are, for
         all that follows until ``TileRelease``; a register is named by its number

``TileDot(c, a, b, dot)`` with a of M rows of 4 K bytes, b of K rows of 4 N bytes and c of M rows of 4 N bytes, for all k < K:

    c[m][n] = dot(a[m][k], b[k][n], c[m][n])        of words, sums of floats in any order

so the rows of a lie as in a row-major matrix, and a row of b holds the words of two or four rows (k-major panels of words).
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue, Statement, Type, i32

TILES = 8
TILE_ROWS = 16
TILE_ROW_BYTES = 64


@dataclass(frozen=True, slots=True)
class LoadWords(Rvalue):
    """``lanes`` words from pointer + index (in elements) on, as i32 lanes; those from ``count`` words on are 0."""

    pointer: Pointer
    index: Rvalue
    lanes: int
    count: Rvalue | None = None

    @property
    def type(self) -> Type:
        return i32(self.lanes)


@dataclass(frozen=True, slots=True)
class PackPairs(Rvalue):
    """Two f32 values or vectors rounded to bfloat16 (nearest even), side by side in i32 lanes."""

    low: Rvalue
    high: Rvalue

    @property
    def type(self) -> Type:
        return i32(self.low.type.lanes)


@dataclass(frozen=True, slots=True)
class PairDot(Rvalue):
    """c + a.lo * b.lo + a.hi * b.hi per lane, in f32. Numbers too small for a normal f32 may count as 0."""

    a: Rvalue
    b: Rvalue
    c: Rvalue

    @property
    def type(self) -> Type:
        return self.c.type


@dataclass(frozen=True, slots=True)
class ShortDot(Rvalue):
    """c + a.lo * b.lo + a.hi * b.hi per lane, of pairs of signed 16-bit integers, in i32 (which wraps)."""

    a: Rvalue
    b: Rvalue
    c: Rvalue

    @property
    def type(self) -> Type:
        return self.c.type


@dataclass(frozen=True, slots=True)
class QuadDot(Rvalue):
    """c + the sum over i of a[i] * b[i] per lane, of quads of unsigned (a) and signed (b) bytes, in i32 (which wraps)."""

    a: Rvalue
    b: Rvalue
    c: Rvalue

    @property
    def type(self) -> Type:
        return self.c.type


@dataclass(frozen=True, slots=True)
class ClampedQuadDot(Rvalue):
    """c + clamp(a[0] * b[0] + a[1] * b[1]) + clamp(a[2] * b[2] + a[3] * b[3]) per lane, of quads of unsigned (a) and signed (b)
    bytes, in i32 (which wraps). clamp: to the nearest signed 16-bit integer. The same as ``QuadDot``, and faster where bytes have
    no other product, if |b[0] + b[1]| and |b[2] + b[3]| are at most 128: a sum of both signs is no larger than its parts, and one
    of equal signs at most 255 * 128."""

    a: Rvalue
    b: Rvalue
    c: Rvalue

    @property
    def type(self) -> Type:
        return self.c.type


@dataclass(frozen=True, slots=True)
class StoreWords(Statement):
    """Store i32 lanes (those below ``count``) as words at pointer + index (in elements)."""

    pointer: Pointer
    index: Rvalue
    value: Rvalue
    count: Rvalue | None = None


@dataclass(frozen=True, slots=True)
class StoreBytes(Statement):
    """Store two to four vectors of 16 words side by side at pointer + index, each word as the nearest byte of the type
    (AVX-512)."""

    pointer: Pointer
    index: Rvalue
    values: tuple[Rvalue, ...]


@dataclass(frozen=True, slots=True)
class TileShape:
    """``rows`` may be 0: the register is not used."""

    rows: Rvalue
    row_bytes: Rvalue


@dataclass(frozen=True, slots=True)
class TileConfigure(Statement):
    """Tile register i has shape i; what the registers held is lost."""

    shapes: tuple[TileShape, ...]


@dataclass(frozen=True, slots=True)
class TileZero(Statement):
    tile: int


@dataclass(frozen=True, slots=True)
class TileLoad(Statement):
    """Fill ``tile`` with rows that follow ``stride`` elements apart; f32 or i32 for sums, bfloat16 or bytes for factors."""

    tile: int
    pointer: Pointer
    index: Rvalue
    stride: Rvalue


@dataclass(frozen=True, slots=True)
class TileDot(Statement):
    """See the module's docstring. The three are different registers."""

    c: int
    a: int
    b: int
    dot: type[PairDot] | type[QuadDot] = PairDot


@dataclass(frozen=True, slots=True)
class TileStore(Statement):
    """Write the rows of sums of ``tile`` ``stride`` elements apart."""

    tile: int
    pointer: Pointer
    index: Rvalue
    stride: Rvalue


@dataclass(frozen=True, slots=True)
class TileRelease(Statement):
    """Tiles are no longer needed: threads that change place on the core need not carry them along."""


TileStatement = TileConfigure | TileZero | TileLoad | TileDot | TileStore | TileRelease
