from __future__ import annotations

import ctypes
import hashlib
import multiprocessing
import os
import stat
import time
from pathlib import Path

import pytest

from xyntra_ep import knobs
from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.runtime.cache_root import CacheRoot, open_root
from xyntra_ep.tracea.runtime.compilers import Compiler, Family, find_compiler
from xyntra_ep.tracea.runtime.kernel_cache import KernelCache
from xyntra_ep.tracea.runtime.kernel_files import CompiledKernel
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.trusted_file import intact

pytestmark = pytest.mark.compiler("cc")


EXPORT = '__attribute__((visibility("default")))'


def answer(number: int) -> KernelSource:
    text = f"{EXPORT} int answer{number}(void) {{ return {number}; }}\n"
    return KernelSource.of_text(f"answer{number}", text)


BROKEN = KernelSource.of_text("broken", "int broken(void) { return undeclared_name; }\n")


@pytest.fixture
def root(tmp_path: Path) -> CacheRoot:
    return open_root(tmp_path / "root")


def make(root: CacheRoot, compiler: Compiler | None = None) -> KernelCache:
    return KernelCache(root, compiler or find_compiler(root), ())


def script(folder: Path, body: str) -> Compiler:
    """A compiler that is a shell script."""
    path = folder / "fake-cc"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return Compiler(command=(str(path),), family=Family.OTHER, version="1", stamp="1")


def one(cache: KernelCache, source: KernelSource) -> CompiledKernel:
    [kernel] = cache.compile_many([source])
    assert isinstance(kernel, CompiledKernel), f"{kernel}\n{kernel.log}"
    return kernel


def refused(cache: KernelCache, source: KernelSource) -> CompileError:
    [error] = cache.compile_many([source])
    assert isinstance(error, CompileError)
    return error


def call(kernel: CompiledKernel) -> int:
    return int(getattr(ctypes.CDLL(str(kernel.path)), kernel.symbol)())


def test_compiled_once_then_found(root: CacheRoot) -> None:
    first = one(make(root), answer(1))
    assert not first.cached and call(first) == 1
    again = one(make(root), answer(1))
    assert again.cached and again.path == first.path
    assert stat.S_IMODE(first.path.stat().st_mode) == 0o700
    assert list(root.tmp.iterdir()) == []


def test_many_at_once_and_failures_beside_them(root: CacheRoot) -> None:
    sources = [answer(1), BROKEN, answer(2), answer(1)]
    results = make(root).compile_many(sources)
    assert [isinstance(r, CompileError) for r in results] == [False, True, False, False]
    assert results[0] == results[3]
    error = results[1]
    assert isinstance(error, CompileError)
    assert "undeclared_name" in error.log and error.source == BROKEN.text and error.where == "broken"
    good = results[2]
    assert isinstance(good, CompiledKernel) and call(good) == 2


def test_what_nothing_provides_is_found_when_linking(root: CacheRoot) -> None:
    source = KernelSource.of_text("f", f"int nowhere(void); {EXPORT} int f(void) {{ return nowhere(); }}")
    assert "nowhere" in refused(make(root), source).log


def test_libm_and_libc_are_there(root: CacheRoot) -> None:
    text = (
        f"float sinf(float);\n{EXPORT} int f(void)"
        " { char a[99]; __builtin_memset(a, 7, sizeof a); volatile float x = 0; return (int)sinf(x) + a[9]; }"
    )
    assert call(one(make(root), KernelSource.of_text("f", text))) == 7


def test_the_key_is_text_flags_and_compiler(root: CacheRoot) -> None:
    compiler = find_compiler(root)
    other = Compiler(command=compiler.command, family=compiler.family, version="99.0", stamp=compiler.stamp)
    keys = {
        KernelCache(root, compiler, ()).key("a"),
        KernelCache(root, compiler, ()).key("b"),
        KernelCache(root, compiler, ("-g",)).key("a"),
        KernelCache(root, other, ()).key("a"),
    }
    assert len(keys) == 4


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "gone"])
def test_a_damaged_file_is_made_anew(root: CacheRoot, damage: str) -> None:
    path = one(make(root), answer(3)).path
    data = path.read_bytes()
    assert intact(data)
    match damage:
        case "truncated":
            path.write_bytes(data[: len(data) // 2])
        case "flipped":
            path.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
        case "empty":
            path.write_bytes(b"")
        case "gone":
            path.unlink()
    again = one(make(root), answer(3))
    assert not again.cached and call(again) == 3
    assert path.read_bytes() == data


def long_answer(number: int) -> KernelSource:
    """Text enough for a compiler of its own."""
    source = answer(number)
    return KernelSource.of_text(source.symbol, source.text + "// padding\n" * 4000)


def test_compilers_start_while_kernels_are_still_added(root: CacheRoot, tmp_path: Path) -> None:
    compiler = script(tmp_path, f'touch "{tmp_path}/started"; exec cc "$@"')
    with make(root, compiler).compilation() as compilation:
        compilation.add(answer(1))
        compilation.add(long_answer(2))
        for _ in range(500):
            if (tmp_path / "started").exists():
                break
            time.sleep(0.01)
        else:
            raise AssertionError("nothing was started before all were known")
        results = compilation.finish([long_answer(2), answer(3), answer(1)])
    kernels = [r for r in results if isinstance(r, CompiledKernel)]
    assert [call(k) for k in kernels] == [2, 3, 1]
    assert list(root.tmp.iterdir()) == []


def test_what_was_started_ends_when_planning_fails(root: CacheRoot, tmp_path: Path) -> None:
    compiler = script(tmp_path, f'echo $$ > "{tmp_path}/pid"; exec sleep 60')
    with pytest.raises(ZeroDivisionError), make(root, compiler).compilation() as compilation:
        compilation.add(long_answer(1))
        for _ in range(500):
            if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
                break
            time.sleep(0.01)
        raise ZeroDivisionError
    assert not os.path.exists(f"/proc/{int((tmp_path / 'pid').read_text())}")
    assert list(root.tmp.iterdir()) == []


def test_a_compiler_that_crashes(root: CacheRoot, tmp_path: Path) -> None:
    error = refused(make(root, script(tmp_path, "echo internal error; kill -SEGV $$")), answer(1))
    assert "was ended by signal 11" in error.what and error.log == "internal error\n"
    assert list(root.kernels.iterdir()) == []


def test_a_compiler_that_hangs(root: CacheRoot, tmp_path: Path) -> None:
    begin = time.monotonic()
    with knobs.scope(compile_timeout_s=0.3, jobs=2):
        results = make(root, script(tmp_path, "sleep 60")).compile_many([answer(1), answer(2)])
    assert time.monotonic() - begin < 10
    assert all(isinstance(r, CompileError) and "did not end within 0.3 s" in r.what for r in results)


def test_a_compiler_that_lies(root: CacheRoot, tmp_path: Path) -> None:
    assert "wrote nothing" in refused(make(root, script(tmp_path, "exit 0")), answer(1)).what
    text = 'while [ "$1" != -o ]; do shift; done; echo garbage > "$2"'
    assert "not a shared object" in refused(make(root, script(tmp_path, text)), answer(1)).what


def test_a_full_disk_under_the_compiler(root: CacheRoot, tmp_path: Path) -> None:
    body = "echo 'warning: old' >&2; echo 'fatal error: error writing: No space left on device' >&2; exit 1"
    error = refused(make(root, script(tmp_path, body)), answer(1))
    assert "warning: old" in error.log
    assert error.what.endswith("ended with status 1: fatal error: error writing: No space left on device")


def test_a_full_disk_under_us(root: CacheRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    cache = make(root)
    monkeypatch.setattr(os, "link", full)
    monkeypatch.setattr("shutil.copy2", full)
    assert "No space left on device" in refused(cache, answer(1)).what
    monkeypatch.setattr(Path, "write_text", full)
    assert "No space left on device" in refused(cache, answer(1)).what
    monkeypatch.setattr("tempfile.mkdtemp", full)
    assert "No space left on device" in refused(cache, answer(1)).what
    assert list(root.tmp.iterdir()) == []


def test_sources_are_kept_when_asked(root: CacheRoot, tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    cache = KernelCache(root, find_compiler(root), (), keep_sources=True, dump_dir=dump)
    kernel = one(cache, answer(4))
    assert kernel.path.with_suffix(".c").read_text() == answer(4).text
    assert [p.name for p in dump.iterdir()] == [f"answer4-{kernel.key[:8]}.c"]


def test_a_dump_that_cannot_be_written_is_no_error(root: CacheRoot, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = KernelCache(root, find_compiler(root), (), dump_dir=tmp_path / "file")
    assert call(one(cache, answer(1))) == 1
    assert "dump_dir cannot be written" in cache.dump_problem and str(tmp_path / "file") in cache.dump_problem


def test_the_hash_of_the_file_is_given(root: CacheRoot) -> None:
    cache = KernelCache(root, find_compiler(root), (), hash128=lambda data: len(data).to_bytes(16, "little"))
    for kernel in (one(cache, answer(5)), one(cache, answer(5))):
        assert int.from_bytes(kernel.hash128, "little") == kernel.path.stat().st_size


@pytest.mark.parametrize("links", [True, False])
def test_what_two_publish_at_once_stays_as_the_first_has_it(
    root: CacheRoot, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """Other kernels lie beside it in the second's file, and the plan of the first names the first's file by its hash."""
    if not links:
        monkeypatch.setattr(os, "link", _no_links)
    both = [KernelCache(root, find_compiler(root), (), hash128=_digest) for _ in range(2)]
    with both[0].compilation() as first, both[1].compilation() as second:
        for number in (1, 2):
            first.add(answer(number))
        for number in (2, 3):
            second.add(answer(number))
        made = [*first.finish([answer(1), answer(2)]), *second.finish([answer(2), answer(3)])]
    assert [isinstance(kernel, CompiledKernel) for kernel in made] == [True] * 4
    for kernel in made:
        assert isinstance(kernel, CompiledKernel)
        assert kernel.hash128 == _digest(kernel.path.read_bytes()), kernel.symbol
        assert call(kernel) == int(kernel.symbol.removeprefix("answer"))


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]


def _no_links(*_: object) -> None:
    raise PermissionError("no links here")


def _compile_in_child(path: str, number: int) -> None:
    with knobs.scope(jobs=1):
        results = make(open_root(Path(path))).compile_many([answer(n) for n in range(6)])
    os._exit(0 if all(isinstance(r, CompiledKernel) for r in results) else 1)


def test_processes_may_share_a_root(root: CacheRoot) -> None:
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=_compile_in_child, args=(str(root.path), n)) for n in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(120)
    assert [c.exitcode for c in children] == [0, 0, 0]
    assert [call(one(make(root), answer(n))) for n in range(6)] == list(range(6))
    assert all(intact(p.read_bytes()) for p in root.kernels.glob("*.so"))
