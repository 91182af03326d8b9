"""Kernels that are compiled together stay what they are alone."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.runtime.cache_root import CacheRoot, open_root
from xyntra_ep.tracea.runtime.compilers import Family, survey
from xyntra_ep.tracea.runtime.kernel_cache import KernelCache
from xyntra_ep.tracea.runtime.kernel_files import CompiledKernel
from xyntra_ep.tracea.runtime.kernel_source import SYMBOL, Definition, KernelSource
from xyntra_ep.tracea.runtime.translation_unit import in_common, merged, split
from xyntra_ep.trusted_file import intact

I64 = Definition(text="typedef __INT64_TYPE__ i64;\n", name="i64", is_type=True)
INLINE = "static inline __attribute__((always_inline))"


def out_of_line(signature: str, body: str, *, name: str) -> Definition:
    return Definition.function("static __attribute__((noinline))", signature, body, name=name, out_of_line=True)


def exported(body: str) -> Definition:
    return Definition(text=f'__attribute__((visibility("default")))\ni64 {SYMBOL}(void) {body}')


def kernel(number: int, length: int = 0) -> KernelSource:
    """All of them have helpers of the same names, and other numbers in them."""
    vector = "typedef float f32x4 __attribute__((vector_size(16), aligned(4), may_alias));\n"
    definitions = (
        I64,
        Definition(text=vector, name="f32x4", is_type=True),
        Definition(text=f"static const i64 table[2] = {{{number}, 1}};\n", name="table"),
        Definition.function(INLINE, "f32x4 one(f32x4 a)", f" {{ return a + {number}; }}\n", name="one"),
        out_of_line("i64 tile(const float *p)", " {\n  return (i64)one(*(const f32x4 *)p)[0];\n}\n", name="tile"),
        exported(f"{{ const float zero[4] = {{0}}; return tile(zero) + table[1]; }}\n//{'x' * length}\n"),
    )
    return KernelSource(symbol=f"kernel{number}", definitions=definitions, note=f"// number {number}\n")


@pytest.fixture
def root(tmp_path: Path) -> CacheRoot:
    return open_root(tmp_path / "root")


def call(compiled: object) -> int:
    assert isinstance(compiled, CompiledKernel), compiled
    return int(getattr(ctypes.CDLL(str(compiled.path)), compiled.symbol)())


@pytest.mark.compiler("cc")
@pytest.mark.parametrize("family", [Family.GCC, Family.CLANG])
def test_equal_names_do_not_meet(root: CacheRoot, family: Family) -> None:
    compiler = next((c.compiler for c in survey(root) if c.compiler is not None and c.compiler.family is family), None)
    if compiler is None:
        pytest.skip(f"no {family} here")
    sources = [kernel(n) for n in range(5)]
    results = KernelCache(root, compiler, ()).compile_many(sources)
    assert [call(r) for r in results] == [1, 2, 3, 4, 5]
    inodes = {r.path.stat().st_ino for r in results if isinstance(r, CompiledKernel)}
    assert len(inodes) == 1, "small kernels share a file"
    again = KernelCache(root, compiler, ()).compile_many(sources[3:])
    assert [call(r) for r in again] == [4, 5] and all(isinstance(r, CompiledKernel) and r.cached for r in again)
    assert list(root.tmp.iterdir()) == []


@pytest.mark.compiler("cc")
def test_without_links_each_has_a_file(root: CacheRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    compiler = next(c.compiler for c in survey(root) if c.compiler is not None)
    results = KernelCache(root, compiler, ()).compile_many([kernel(1), kernel(2)])
    assert [call(r) for r in results] == [2, 3]
    files = list(root.kernels.glob("*.so"))
    assert len({f.stat().st_ino for f in files}) == 2 and all(intact(f.read_bytes()) for f in files)
    assert all(os.access(f, os.X_OK) for f in files)


def test_the_note_is_for_readers_only(root: CacheRoot) -> None:
    assert kernel(1).readable.startswith("// number 1\ntypedef")
    assert "number" not in merged([kernel(1), kernel(2)])


def test_one_kernel_is_its_own_unit() -> None:
    assert merged([kernel(1)]) == kernel(1).text


def product(name: str, finish: str, length: int = 40_000) -> KernelSource:
    """A kernel whose tile calls a helper of its own beside one that all have, after ``length`` bytes of common text."""
    definitions = (
        I64,
        Definition.function(INLINE, "i64 finished(i64 a)", f" {{ return {finish}; }}\n", name="finished"),
        out_of_line("i64 tile(i64 a)", f" {{\n  return 10 * a;  //{'x' * length}\n}}\n", name="tile"),
        out_of_line("i64 last(i64 a)", " {\n  return finished(tile(a));\n}\n", name="last"),
        exported("{ return last(1); }\n"),
    )
    return KernelSource(symbol=name, definitions=definitions)


def test_what_kernels_have_in_common_is_compiled_once() -> None:
    text = merged([product("f", "a + 1"), product("g", "a + 2"), product("h", "a + 1")])
    assert text.count("return 10 * a") == 1
    assert text.count("return finished(") == 2, "equal text that calls another helper is another function"
    assert len(text) < 50_000


@pytest.mark.compiler("cc")
def test_kernels_with_functions_in_common_stay_apart(root: CacheRoot) -> None:
    compiler = next(c.compiler for c in survey(root) if c.compiler is not None)
    sources = [product("f", "a + 1"), product("g", "a + 2"), product("h", "a + 1")]
    assert [call(r) for r in KernelCache(root, compiler, ()).compile_many(sources)] == [11, 12, 11]


def test_units_that_are_linked_define_a_function_once() -> None:
    defined: set[str] = set()
    texts = [merged([product(name, finish)], defined) for name, finish in (("f", "a"), ("g", "a"), ("h", "-a"))]
    assert [text.count("return 10 * a") for text in texts] == [1, 0, 0]
    assert [text.count("return finished(") for text in texts] == [1, 0, 1], "only what calls the same helper is the same"


@pytest.mark.compiler("cc")
@pytest.mark.parametrize("family", [Family.GCC, Family.CLANG])
def test_kernels_that_are_added_one_by_one_are_linked(root: CacheRoot, family: Family) -> None:
    compiler = next((c.compiler for c in survey(root) if c.compiler is not None and c.compiler.family is family), None)
    if compiler is None:
        pytest.skip(f"no {family} here")
    sources = [product("f", "a"), product("g", "a + 1"), kernel(3, 40_000), product("h", "a + 1", length=50_000)]
    with KernelCache(root, compiler, ()).compilation() as compilation:
        for source in sources:
            compilation.add(source)
        results = compilation.finish(sources)
    assert [call(r) for r in results] == [10, 11, 4, 11]
    assert len({r.path.stat().st_ino for r in results if isinstance(r, CompiledKernel)}) == 1
    assert list(root.tmp.iterdir()) == []


@pytest.mark.compiler("cc")
def test_what_a_broken_kernel_was_to_define_is_defined_by_others(root: CacheRoot) -> None:
    compiler = next(c.compiler for c in survey(root) if c.compiler is not None)
    broken, good, other = product("f", "nothing"), product("g", "a + 1"), kernel(1, 40_000)
    with KernelCache(root, compiler, ()).compilation() as compilation:
        for source in (broken, good, other):
            compilation.add(source)
        failed, *results = compilation.finish([broken, good, other])
    assert isinstance(failed, CompileError) and "nothing" in failed.log
    assert [call(r) for r in results] == [11, 2]


def test_text_in_common_counts_once() -> None:
    alike = [product(name, "a") for name in "fgh"]
    units = split([*alike, kernel(1, 50_000), kernel(2, 60_000)], jobs=2)
    assert {frozenset(unit) & {0, 3, 4} for unit in units} >= {frozenset({0}), frozenset({3}), frozenset({4})}
    [unit] = split(alike, jobs=2, known={*in_common(alike[0])})
    assert sorted(unit) == [0, 1, 2]


def test_units_are_balanced_and_begin_with_the_longest() -> None:
    sizes = [400_000, 60_000, 60_000, 60_000, 60_000, 60_000, 60_000, *[1_000] * 40]
    sources = [kernel(n, size) for n, size in enumerate(sizes)]
    units = split(sources, jobs=2)
    assert sorted(i for unit in units for i in unit) == list(range(len(sources)))
    assert units[0] == [0], "the longest goes by itself and first"
    loads = [sum(len(sources[i].text) for i in unit) for unit in units]
    assert loads == sorted(loads, reverse=True) and len(units) == 6
    assert max(loads[1:]) < 2 * min(loads[1:])


def test_little_work_is_one_unit_and_equal_symbols_are_apart() -> None:
    [unit] = split([kernel(n) for n in range(20)], jobs=8)
    assert sorted(unit) == list(range(20))
    units = split([kernel(1), kernel(2), kernel(1, 50)], jobs=8)
    assert sorted(i for unit in units for i in unit) == [0, 1, 2] and not any({0, 2} <= {*unit} for unit in units)
    assert split([], jobs=2) == []
