"""Nodes by which the threads of a CPU kernel share out supersteps of work that follow from each other: a time step after the
other.

A piece of memory of i64 counts supersteps, all zero when the kernel begins. ``Claim`` gives a part of a superstep to one thread,
``Arrive`` says that parts are done, ``Await`` lets a thread wait until all are. No thread waits for what nobody has begun: a part
that is not claimed is claimed by whoever would wait for it, and one that is claimed is being done by a thread that runs. So one
thread alone comes to the end, and another may join in at any time.

What was written before an ``Arrive`` is seen after the ``Await`` or ``Reached`` that saw it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Pointer, Rvalue, Statement, Type


@dataclass(frozen=True, slots=True)
class Claim(Rvalue):
    """1 if the count at pointer + index was ``superstep`` and is now superstep + 1 by this thread's doing, else 0."""

    pointer: Pointer
    index: Rvalue
    superstep: Rvalue

    @property
    def type(self) -> Type:
        return INDEX


@dataclass(frozen=True, slots=True)
class Reached(Rvalue):
    """The count at pointer + index."""

    pointer: Pointer
    index: Rvalue

    @property
    def type(self) -> Type:
        return INDEX


@dataclass(frozen=True, slots=True)
class Arrive(Statement):
    """Add ``number`` to the count at pointer + index."""

    pointer: Pointer
    index: Rvalue
    number: Rvalue


@dataclass(frozen=True, slots=True)
class Await(Statement):
    """Go on when the count at pointer + index is ``number`` or more."""

    pointer: Pointer
    index: Rvalue
    number: Rvalue
