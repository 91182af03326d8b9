"""Expressions of core IR as Triton computes them: at a block of points at once.

    Space    which points: variables of the kernel that run over groups of axes, each with the mask of those that there are
    Bodies   what is computed there: loads with their masks, arithmetic between names

A load states the mask of the variables that its address depends on. An index that cannot be proven to stay inside is masked by
the conditions of the choices around it (a window's edge, padding), or else moved to the nearest element, as other targets do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xyntra_ep.frameworks.triton.kernel_text import KernelText, filled, operand
from xyntra_ep.frameworks.triton.scalar_functions import BOOLEAN_FORMS, FLOAT_FORMS, INTEGER_FORMS
from xyntra_ep.tracea.core_ir.dims import Size, known_nonnegative, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, call, walk
from xyntra_ep.tracea.core_ir.index_range import affine, clamped, stays_inside
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.shared.index import Group

_LONGEST = 88  # of a text that stays without a name
_WIDER = {DType.F16: "float32", DType.BF16: "float32"} | dict.fromkeys((DType.I8, DType.U8, DType.I16, DType.U16), "int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A variable of the kernel that counts the axes of ``group``, row-major; ``mask``: "" where all of its points are there;
    ``is_block``: whether a program has many values of it, or one."""

    group: Group
    name: str
    mask: str = ""
    is_block: bool = True

    @property
    def extents(self) -> Iterable[tuple[int, Size]]:
        return zip(self.group.axes, self.group.extents, strict=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Elements of a view: offset + sum of coordinates times strides + what is not linear in them: (index, stride, the extent that
    it is not proven to stay below, or None)."""

    offset: Size
    linear: Mapping[int, Size]
    others: tuple[tuple[Expr, Size, Size | None], ...]

    @property
    def inside(self) -> bool:
        """Whether every index is proven to be."""
        return all(extent is None for _, _, extent in self.others)


@dataclass(slots=True)
class Space:
    """The variables that the axes of ``domain`` are counted by; coordinates are written where they are first needed, at the place
    where the variables are."""

    kernel: KernelText
    domain: tuple[Size, ...]
    running: list[Running]
    _outer: Space | None = None
    _parts: dict[str, str] = field(default_factory=dict)
    _place: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self._place = self.kernel.place()

    def of_axis(self, number: int) -> Running:
        return next(r for r in self.running if number in r.group.axes)

    def coordinate(self, number: int) -> str:
        return self._part(self.of_axis(number), (number,))

    def _part(self, running: Running, axes: tuple[int, ...]) -> str:
        """What counts some neighbours of the axes that ``running`` counts."""
        if self._outer is not None and running in self._outer.running:
            return self._outer._part(running, axes)
        every = dict(running.extents)
        inner = product(n for i, n in every.items() if running.group.axes.index(i) > running.group.axes.index(axes[-1]))
        outer = [n for i, n in every.items() if running.group.axes.index(i) < running.group.axes.index(axes[0])]
        extent = product(every[i] for i in axes)
        if extent == 1:
            return "0"
        text = running.name if inner == 1 else f"{running.name} // {operand(self.kernel.size(inner))}"
        if any(n != 1 for n in outer):
            text = f"{operand(text)} % {operand(self.kernel.size(extent))}"
        if text not in self._parts:
            name = text if text == running.name else self.kernel.name(f"i{''.join(map(str, axes))}")
            if name != text:
                self._place.append(f"{name} = {text}")
            self._parts[text] = name
        return self._parts[text]

    def within(self, running: Running, extent: Sequence[Size] = ()) -> Space:
        """These variables and one more, where the kernel is now: in a loop."""
        return Space(self.kernel, (*self.domain, *extent), [*self.running, running], self)

    def linear(self, form: Mapping[int, Size], offset: Size = 0) -> list[str]:
        """offset + the sum of coordinates times their factors, term by term; axes that step as one are counted as one."""
        terms = [self.kernel.size(offset)] if offset != 0 else []
        for running in self.running:
            for axes in _runs(running.group, form):
                extents = tuple(running.group.extents[running.group.axes.index(i)] for i in axes)
                step = Group(axes=axes, extents=extents).merged(form)
                assert step is not None
                if step != 0 and (name := self._part(running, axes)) != "0":
                    terms.append(name if step == 1 else f"{name} * {operand(self.kernel.size(step))}")
        return terms

    def idle(self, form: Mapping[int, Size], numbers: Iterable[int], used: Iterable[int] = ()) -> list[str]:
        """Terms that give an address the shape of the block, where it does not depend on lanes that count ``numbers``."""
        moved = {i for i, step in form.items() if step != 0} | set(used)
        wanted = [r for r in self.running if r.is_block and set(r.group.axes) & set(numbers)]
        return [f"{r.name} * 0" for r in wanted if all(n == 1 or i not in moved for i, n in r.extents)]

    def masks(self, numbers: Iterable[int]) -> list[str]:
        used = set(numbers)
        return [r.mask for r in self.running if r.mask and used & set(r.group.axes)]

    def address_of(self, view: Operand, indices: Sequence[Expr]) -> Address:
        """Of one element, an index for each axis of the view."""
        offset, linear, others = view.offset, dict[int, Size](), list[tuple[Expr, Size, Size | None]]()
        for index, stride, extent in zip(indices, view.strides, view.shape, strict=True):
            if stride == 0 or extent == 1:
                continue
            if not stays_inside(index, extent, self.domain):
                others.append((index, stride, extent))
                continue
            parts = affine(index)
            if parts.rest.kind in ("const", "size"):
                offset = offset + parts.rest.attr * stride
            else:
                others.append((parts.rest, stride, None))
            for number, factor in parts.coefficients.items():
                linear[number] = linear.get(number, 0) + factor * stride
        return Address(offset=offset, linear=linear, others=tuple(others))

    def view_address(self, view: Operand) -> Address:
        """Of a view that is indexed by the axes themselves, from the first on."""
        linear = {i: s for i, (s, n) in enumerate(zip(view.strides, view.shape, strict=True)) if n != 1}
        return Address(offset=view.offset, linear=linear, others=())


def _runs(group: Group, form: Mapping[int, Size]) -> list[tuple[int, ...]]:
    """The axes of ``group`` in as few parts as step evenly in ``form``, from the outermost on."""
    found: list[tuple[tuple[int, ...], tuple[Size, ...]]] = []
    for number, extent in zip(reversed(group.axes), reversed(group.extents), strict=True):
        if found:
            axes, extents = (number, *found[0][0]), (extent, *found[0][1])
            if Group(axes=axes, extents=extents).merged(form) is not None:
                found[0] = axes, extents
                continue
        found.insert(0, ((number,), (extent,)))
    return [axes for axes, _ in found]


class Bodies:
    """Writes expressions over ``space`` into its kernel. ``acc``: names of what the op computed before, which differs along the
    axes ``acc_lanes``. One of these is for one scope: what it has written once is not written again."""

    def __init__(
        self,
        space: Space,
        inputs: Sequence[Operand],
        roots: Sequence[Expr],
        pointers: dict[int, str],
        acc: Mapping[int, str] | None = None,
        acc_lanes: Iterable[int] = (),
    ) -> None:
        self.space, self._kernel = space, space.kernel
        self._inputs, self._pointers = inputs, pointers
        self.acc = dict(acc or {})
        self._acc_lanes = frozenset(acc_lanes)
        self._uses = Counter(a for e in walk(*roots) for a in e.args)
        self._surely = _unconditional(roots)
        self._done: dict[tuple[Expr, tuple[Expr, ...]], str] = {}
        self._loads: dict[str, str] = {}

    def write(self, root: Expr, stem: str = "y") -> str:
        """The text of its value: a name, a number or an expression of names."""
        return self._value(root, (), stem)

    def named(self, root: Expr, stem: str) -> str:
        return self._kernel.let(stem, self.write(root, stem))

    def store(self, view: Operand, pointer: str, value: str) -> None:
        """Write ``value`` to a view that is indexed by the axes themselves."""
        address = self.space.view_address(view)
        numbers = range(len(view.shape))
        terms = self.space.linear(address.linear, address.offset)
        terms += self.space.idle(address.linear, numbers)
        self._kernel.line(f"tl.store({_sum([pointer, *terms])}, {value}{_mask(self.space.masks(numbers))})")

    def _value(self, e: Expr, conditions: tuple[Expr, ...], stem: str = "t") -> str:
        if not any(x.kind == "load" for x in walk(e)):
            conditions = ()
        key = (e, () if e in self._surely else conditions)
        found = self._done.get(key)
        if found is None:
            text = self._text(e, conditions)
            if e.kind == "call" and (self._uses[e] > 1 or len(text) > _LONGEST):
                text = self._kernel.let(stem, text)
            found = self._done[key] = text
        return found

    def _text(self, e: Expr, conditions: tuple[Expr, ...]) -> str:
        match e.kind:
            case "const":
                return _literal(e)
            case "size":
                return operand(self._kernel.size(e.attr))
            case "axis":
                return self.space.coordinate(e.attr)
            case "acc":
                return self.acc[e.attr]
            case "load":
                return self.load(e, conditions)
        return self._call(e, conditions)

    def _call(self, e: Expr, conditions: tuple[Expr, ...]) -> str:
        if e.attr == "where":
            condition, yes, no = e.args
            held, not_held = (*conditions, condition), (*conditions, call("not", condition))
            branches = [self._value(yes, held), self._value(no, not_held)]
            args = [self._value(condition, conditions), *branches]
        else:
            args = [self._value(a, conditions) for a in e.args]
        takes = e.args[-1].dtype
        forms = {DType.F32: FLOAT_FORMS, DType.I64: INTEGER_FORMS, DType.BOOL: BOOLEAN_FORMS}[takes]
        form = forms[e.attr]
        if e.attr == "to_i" and takes is DType.F32 and e.args[0].kind == "call" and e.args[0].attr == "quantise":
            form = "{0}.to(tl.int32)"
        if e.attr in ("mod", "fmod") and takes is DType.I64 and _is_natural(e):
            form = "{0} % {1}"
        if e.attr == "mul" and e.args[1].kind == "const" and e.args[1].attr == -1.0:
            form = "-{0}"
        if ".to(" in form and e.args[0].kind in ("size", "axis", "const"):  # may be a number of Python
            form = f"tl.cast({{0}}, {form.rsplit('(', 1)[1][:-1]})"
        return filled(form, args)

    def load(self, e: Expr, conditions: tuple[Expr, ...] = (), *, as_stored: bool = False, whole: Sequence[int] = ()) -> str:
        """The element that ``e`` reads, where the ``conditions`` hold; 0 elsewhere. ``as_stored``: not widened. ``whole``: axes
        that the block has in any case."""
        view = self._inputs[e.attr]
        address = self.space.address_of(view, e.args)
        used = self._lanes_of_address(address)
        guards: tuple[Expr, ...] = ()
        if not address.inside and e not in self._surely and all(self.lanes(c) and self.lanes(c) <= used for c in conditions):
            guards = conditions
        terms = self.space.linear(address.linear, address.offset)
        nothing = next((f"{r.name} * 0" for r in self.space.running if r.is_block and used & set(r.group.axes)), "0")
        may_be_none = []  # a view of no elements has no nearest one
        for index, stride, extent in address.others:
            if extent is not None and not guards:
                index = clamped(index, extent)
                may_be_none += [] if known_nonnegative(extent - 1) else [f"({nothing} < {operand(self._kernel.size(extent))})"]
            text = self._value(index, conditions, "at")
            terms.append(text if stride == 1 else f"{operand(text)} * {operand(self._kernel.size(stride))}")
        terms += self.space.idle(address.linear, whole, used)
        masks = self.space.masks(used | set(whole))
        masks += [self._guard(c) for c in guards] + may_be_none
        if e.attr not in self._pointers:
            free = [stem for stem in _STEMS if f"{stem}_ptr" not in self._pointers.values()]
            self._pointers[e.attr] = self._kernel.pointer(view, free[0] if free else _STEMS[-1])
        pointer = self._pointers[e.attr]
        other = ", other=0.0" if view.dtype.is_float else ", other=0"
        text = f"tl.load({_sum([pointer, *terms])}{_mask(masks)}{other if masks else ''})"
        if view.dtype in _WIDER and not as_stored:
            text += f".to(tl.{_WIDER[view.dtype]})"
        if text not in self._loads:
            self._loads[text] = self._kernel.let(pointer.removesuffix("_ptr"), text)
        return self._loads[text]

    def _lanes_of_address(self, address: Address) -> frozenset[int]:
        """The axes that tell elements of a block apart there."""
        linear = frozenset(i for i, step in address.linear.items() if step != 0 and self.space.domain[i] != 1)
        return linear.union(*(self.lanes(index) for index, _, _ in address.others))

    def lanes(self, e: Expr) -> frozenset[int]:
        """The axes that ``e`` differs along."""
        if e.kind == "axis":
            return frozenset([e.attr] if self.space.domain[e.attr] != 1 else [])
        if e.kind == "acc":
            return self._acc_lanes
        if e.kind == "load":
            return self._lanes_of_address(self.space.address_of(self._inputs[e.attr], e.args))
        return frozenset().union(*(self.lanes(a) for a in e.args))

    def _guard(self, condition: Expr) -> str:
        """A condition under a name, which the choice itself uses too."""
        name = self._kernel.let("seen", self._value(condition, ()))
        self._done[condition, ()] = name
        return name


_STEMS = ("x", "y", "z", "u", "v", "w", "r")


def _unconditional(roots: Sequence[Expr]) -> set[Expr]:
    """What is computed whatever the choices are."""
    found: set[Expr] = set()
    waiting = list(roots)
    while waiting:
        e = waiting.pop()
        if e not in found:
            found.add(e)
            waiting += e.args[:1] if e.kind == "call" and e.attr == "where" else e.args
    return found


def _is_natural(e: Expr) -> bool:
    """Whether no part of it can be negative: it counts."""
    counting = ("add", "mul", "div", "mod")
    return all(
        x.kind in ("axis", "size") or (x.kind == "const" and x.attr >= 0) or (x.kind == "call" and x.attr in counting)
        for x in walk(e)
    )


def _literal(e: Expr) -> str:
    if e.dtype is DType.F32:
        value = float(e.attr)
        if math.isfinite(value):
            return repr(value)
        return f'float("{value}")'
    return repr(e.attr)


def _sum(terms: Sequence[str]) -> str:
    return " + ".join(terms)


def _mask(masks: Sequence[str]) -> str:
    return f", mask={' & '.join(dict.fromkeys(masks))}" if masks else ""
