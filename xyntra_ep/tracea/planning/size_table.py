"""Sizes as a table of small operations: each row may refer to earlier rows, equal rows are one row."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Atom, DimOp, Size

_LEAST, _MOST = -(2**63), 2**63 - 1  # a constant beyond compares as the last one does
Row = tuple[int, int, int, int]  # op, a, b, c as in docs/plan-format.md


class SizeTable:
    """Rows are appended by ``add``; symbols are numbered by their position in ``symbols``, or
    stand for the row of their definition.

    >>> from xyntra_ep.tracea.core_ir.dims import symbol
    >>> table = SizeTable(["s"])
    >>> table.add(symbol("s") * 4 + 1), table.rows
    (4, [(1, 0, 0, 0), (0, 4, 0, 0), (4, 0, 1, 0), (0, 1, 0, 0), (2, 2, 3, 0)])
    """

    def __init__(self, symbols: Sequence[str], definitions: Sequence[tuple[str, Size]] = ()) -> None:
        self.rows: list[Row] = []
        self._symbols = {name: i for i, name in enumerate(symbols)}
        self._of_size: dict[Size, int] = {}
        self._of_row: dict[Row, int] = {}
        self._defined: dict[str, int] = {}
        for name, size in definitions:
            self._defined[name] = self.add(size)

    def add(self, size: Size) -> int:
        """The row whose value is ``size``."""
        found = self._of_size.get(size)
        if found is None:
            if isinstance(size, int):
                found = self._row(DimOp.CONST, max(_LEAST, min(size, _MOST)))
            else:
                found = self._polynomial(size.terms)
            self._of_size[size] = found
        return found

    def _polynomial(self, terms: Sequence[tuple[tuple[Atom, ...], int]]) -> int:
        # Positive terms first, so that intermediate values stay close to sizes and subtraction needs no
        # negation.
        ordered = sorted(terms, key=lambda term: term[1] < 0)
        total: int | None = None
        for monomial, coefficient in ordered:
            subtract = coefficient < 0 and total is not None
            row = self._monomial(monomial, -coefficient if subtract else coefficient)
            op = DimOp.SUB if subtract else DimOp.ADD
            total = row if total is None else self._row(op, total, row)
        assert total is not None, "a polynomial without terms is the integer 0"
        return total

    def _monomial(self, monomial: Sequence[Atom], coefficient: int) -> int:
        row: int | None = None
        for atom in monomial:
            factor = self._atom(atom)
            row = factor if row is None else self._row(DimOp.MUL, row, factor)
        if row is None:
            return self.add(coefficient)
        return row if coefficient == 1 else self._row(DimOp.MUL, row, self.add(coefficient))

    def _atom(self, atom: Atom) -> int:
        if atom.op is DimOp.SYMBOL and atom.key in self._defined:
            return self._defined[atom.key]
        if atom.op is DimOp.SYMBOL:
            return self._row(DimOp.SYMBOL, self._symbols[atom.key])
        return self._row(atom.op, *(self.add(a) for a in atom.args if not isinstance(a, str)))

    def _row(self, op: DimOp, a: int, b: int = 0, c: int = 0) -> int:
        row = (int(op), a, b, c)
        found = self._of_row.get(row)
        if found is None:
            found = self._of_row[row] = len(self.rows)
            self.rows.append(row)
        return found
