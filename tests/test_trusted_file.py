"""One rule in two languages: what may decide what is executed. Each case is a small world of files, links and folders."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from xyntra_ep import trusted_file
from xyntra_ep.trusted_file import Distrusted, distrust, load_trusted, read_trusted, seal

MOST_BYTES = 1000
STRANGER = 12345
OK, MISSING, DISTRUSTED, UNUSABLE = range(4)  # as native code numbers its verdicts
SETTLED = 0o600


@dataclass(frozen=True)
class Case:
    """``make`` gets an empty folder and gives the path to be asked for. ``said``: the end of the reason, after the place."""

    make: Callable[[Path], Path]
    verdict: int
    said: str = ""
    place: str = ""  # what is at fault, within the folder; "" when it lies outside


def file(path: Path, mode: int = SETTLED, data: bytes = b"text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)
    return path


def link(path: Path, target: str | Path) -> Path:
    path.symlink_to(target)
    return path


def opened(folder: Path, mode: int, name: str = "file") -> Path:
    """A file in a folder of this mode."""
    path = file(folder / name)
    folder.chmod(mode)
    return path


def given(path: Path, inner: Path | None = None) -> Path:
    """To a stranger; what it is about is ``inner``."""
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    return inner or path


def listening(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))
    return path


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def sticky(folder: Path) -> Path:
    """A folder like /tmp in which a stranger has a file."""
    path = given(file(folder / "tmp" / "file"))
    path.parent.chmod(0o1777)
    return path


def open_later(folder: Path) -> Path:
    """A link, in a folder that all may write to, to a file elsewhere."""
    made = link(opened(folder / "a", 0o700).parent / "l", file(folder / "f"))
    (folder / "a").chmod(0o777)
    return made


def way_through_open(folder: Path) -> Path:
    opened(folder / "a", 0o777)
    file(folder / "file")
    return folder / "a" / ".." / "file"


def up_again(folder: Path) -> Path:
    file(folder / "a" / "file")
    return folder / "a" / ".." / "a" / "file"


def link_up(folder: Path) -> Path:
    file(folder / "file")
    return link(opened(folder / "a", 0o700).parent / "l", "../file")


def link_to_folder(folder: Path) -> Path:
    file(folder / "a" / "file")
    return link(folder / "link", "a") / "file"


def foreign_link_to_folder(folder: Path) -> Path:
    return given(link_to_folder(folder).parent) / "file"


def foreign_above(folder: Path) -> Path:
    inner = file(folder / "a" / "b" / "file")
    return given(folder / "a", inner)


def of_root(folder: Path) -> Path:
    known = Path("/etc/hostname")
    return known if known.is_file() and known.stat().st_size <= MOST_BYTES else file(folder / "file")


def made(folder: Path) -> list[Path]:
    """All cases."""
    ways = []
    for number, case in enumerate(CASES.values()):
        (inner := folder / str(number)).mkdir()
        ways.append(case.make(inner))
    return ways


OPEN = "others may write to it (mode 777)"
CASES = {
    "a file": Case(lambda f: file(f / "file"), OK),
    "a file that others may read": Case(lambda f: file(f / "file", 0o644), OK),
    "an empty file": Case(lambda f: file(f / "file", data=b""), OK),
    "a file of the greatest size": Case(lambda f: file(f / "file", data=b"x" * MOST_BYTES), OK),
    "a file of root": Case(of_root, OK),
    "no file": Case(lambda f: f / "file", MISSING, "No such file or directory", "file"),
    "no folder": Case(lambda f: f / "none" / "file", MISSING, "No such file or directory", "none"),
    "a file for a folder": Case(lambda f: file(f / "file") / "below", MISSING, "Not a directory", "file"),
    "a link to nothing": Case(lambda f: link(f / "link", "nothing"), MISSING, "No such file or directory", "nothing"),
    "a link of ours": Case(lambda f: link(f / "link", file(f / "a" / "file")), OK),
    "a link of ours to a folder": Case(link_to_folder, OK),
    "a link that goes up": Case(link_up, OK),
    "links in links": Case(lambda f: link(f / "l3", link(f / "l2", link(f / "l1", file(f / "file")))), OK),
    "the way up": Case(up_again, OK),
    "a link to itself": Case(lambda f: link(f / "link", "link"), UNUSABLE, "Too many levels of symbolic links", "link"),
    "two links in a ring": Case(lambda f: link(f / "a", link(f / "b", "a")), UNUSABLE, "Too many levels of symbolic links", "a"),
    "a folder": Case(lambda f: file(f / "a" / "file").parent, UNUSABLE, "is not a regular file", "a"),
    "a folder, by a slash": Case(
        lambda f: link(f / "link", f"{file(f / 'a' / 'x').parent}/"), UNUSABLE, "is not a regular file", "a"
    ),
    "a pipe": Case(lambda f: pipe(f / "pipe"), UNUSABLE, "is not a regular file", "pipe"),
    "a link to a pipe": Case(lambda f: link(f / "l", pipe(f / "pipe")), UNUSABLE, "is not a regular file", "pipe"),
    "a socket": Case(lambda f: listening(f / "socket"), UNUSABLE, "is not a regular file", "socket"),
    "a device": Case(lambda f: Path("/dev/zero"), UNUSABLE, "is not a regular file"),
    "a link to a device": Case(lambda f: link(f / "link", "/dev/zero"), UNUSABLE, "is not a regular file"),
    "too large": Case(lambda f: file(f / "f", data=b"x" * (MOST_BYTES + 1)), UNUSABLE, f"is larger than {MOST_BYTES} bytes", "f"),
    "all may write": Case(lambda f: file(f / "file", 0o666), DISTRUSTED, "others may write to it (mode 666)", "file"),
    "a group may write": Case(lambda f: file(f / "file", 0o660), DISTRUSTED, "others may write to it (mode 660)", "file"),
    "strangers may write": Case(lambda f: file(f / "file", 0o602), DISTRUSTED, "others may write to it (mode 602)", "file"),
    "mode 777": Case(lambda f: opened(f / "a", 0o777), DISTRUSTED, OPEN, "a"),
    "mode 770": Case(lambda f: opened(f / "a", 0o770), DISTRUSTED, "others may write to it (mode 770)", "a"),
    "mode 777 further up": Case(lambda f: opened(f / "a", 0o777, "b/c/file"), DISTRUSTED, OPEN, "a"),
    "mode 777 behind a link": Case(lambda f: link(f / "l", opened(f / "a", 0o777)), DISTRUSTED, OPEN, "a"),
    "mode 777, and up again": Case(way_through_open, DISTRUSTED, OPEN, "a"),
    "mode 777, by a link": Case(open_later, DISTRUSTED, OPEN, "a"),
    "a sticky folder": Case(lambda f: opened(f / "a", 0o1777), OK),
    "a folder that others may read": Case(lambda f: opened(f / "a", 0o755), OK),
    "a folder that we may only pass": Case(lambda f: opened(f / "a", 0o300), OK),
}  # fmt: skip

FOREIGN = {
    "a stranger's file": Case(lambda f: given(file(f / "file", 0o644)), DISTRUSTED, f"belongs to user {STRANGER}", "file"),
    "a stranger's pipe": Case(lambda f: given(pipe(f / "pipe")), DISTRUSTED, f"belongs to user {STRANGER}", "pipe"),
    "a stranger's folder": Case(
        lambda f: given(f / "a", file(f / "a" / "file")), DISTRUSTED, f"belongs to user {STRANGER}", "a"
    ),
    "a stranger's folder further up": Case(foreign_above, DISTRUSTED, f"belongs to user {STRANGER}", "a"),
    "a stranger's link": Case(
        lambda f: given(link(f / "link", file(f / "file"))), DISTRUSTED, f"is a link of user {STRANGER}", "link"
    ),
    "a stranger's link to a folder": Case(foreign_link_to_folder, DISTRUSTED, f"is a link of user {STRANGER}", "link"),
    "a stranger's file where all have files": Case(lambda f: sticky(f), DISTRUSTED, f"belongs to user {STRANGER}", "tmp/file"),
    "a stranger's link to what is not there": Case(
        lambda f: given(link(f / "link", "nothing")), DISTRUSTED, f"is a link of user {STRANGER}", "link"
    ),
}  # fmt: skip


def cases() -> list[object]:
    rows: list[object] = [pytest.param(case, id=name) for name, case in CASES.items()]
    root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
    return rows + [pytest.param(case, id=name, marks=root) for name, case in FOREIGN.items()]


def in_python(path: Path) -> tuple[int, str]:
    try:
        read_trusted(path, most_bytes=MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError) as error:
        return MISSING, f"{error.filename}: {error.strerror}"
    except Distrusted as error:
        return DISTRUSTED, str(error)
    except OSError as error:
        return UNUSABLE, f"{error.filename}: {error.strerror}"
    return OK, ""


def in_native_code(path: Path) -> tuple[int, str]:
    from xyntra_ep.provider import registration

    ask = registration.library().xyntra_distrust
    ask.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint64]
    why = ctypes.create_string_buffer(4096)
    return ask(os.fsencode(path), MOST_BYTES, why, len(why)), os.fsdecode(why.value)


@pytest.mark.parametrize("case", cases())
@pytest.mark.parametrize("ask", [in_python, pytest.param(in_native_code, marks=pytest.mark.native)])
def test_verdicts(ask: Callable[[Path], tuple[int, str]], case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path.resolve()
    path = case.make(here)
    monkeypatch.chdir(here)
    for asked in (path, path.relative_to(here) if path.is_relative_to(here) else Path(os.path.relpath(path))):
        verdict, why = ask(asked)
        assert (verdict, why.partition(": ")[2]) == (case.verdict, case.said), why
        if case.place and "symbolic links" not in case.said:  # of a ring, what was asked for is said
            assert why.partition(": ")[0] == str(here / case.place)


@pytest.mark.native
def test_both_say_the_same_words(tmp_path: Path) -> None:
    for number, case in enumerate(CASES.values()):
        (folder := tmp_path / str(number)).mkdir()
        path = case.make(folder)
        assert in_python(path) == in_native_code(path)


def test_what_is_read_is_what_was_checked(tmp_path: Path) -> None:
    path = file(tmp_path / "file", data=b"ours")
    descriptor = trusted_file._open(path, None)
    file(tmp_path / "theirs", data=b"theirs").replace(path)
    with os.fdopen(descriptor, "rb") as checked:
        assert checked.read() == b"ours"


def library(folder: Path, name: str, number: int) -> bytes:
    source, made = folder / f"{name}.c", folder / f"{name}.made"
    source.write_text(f'__attribute__((visibility("default"))) int number(void) {{ return {number}; }}\n')
    subprocess.run(["gcc", "-shared", "-fPIC", "-nostartfiles", "-o", made, source], check=True)
    return seal(made.read_bytes())


@pytest.mark.compiler("gcc")
def test_code_comes_from_the_file_that_was_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another file takes the name between the check and the loader; and no number of a descriptor is taken for a file."""
    ours, theirs = library(tmp_path, "ours", 1), library(tmp_path, "theirs", 2)
    path = file(tmp_path / "kernel.so", 0o700, ours)
    real = trusted_file.intact

    def exchanged(data: bytes) -> bool:
        file(tmp_path / "evil", 0o700, theirs).replace(path)
        return real(data)

    monkeypatch.setattr(trusted_file, "intact", exchanged)
    first = load_trusted(path)
    monkeypatch.setattr(trusted_file, "intact", real)
    second = load_trusted(path)
    assert (first.number(), second.number()) == (1, 2)
    assert any(str(path) in line for line in Path("/proc/self/maps").read_text().splitlines()), "mappings have the file's name"


@pytest.mark.compiler("gcc")
def test_code_with_another_bit_is_not_loaded(tmp_path: Path) -> None:
    data = bytearray(library(tmp_path, "kernel", 1))
    data[len(data) // 2] ^= 1
    with pytest.raises(OSError, match="is damaged"):
        load_trusted(file(tmp_path / "kernel.so", data=bytes(data)))


def test_a_folder(tmp_path: Path) -> None:
    assert distrust(tmp_path) == ""
    tmp_path.chmod(0o777)
    assert distrust(tmp_path) == f"{tmp_path}: others may write to it (mode 777)"
    with pytest.raises(FileNotFoundError):
        distrust(tmp_path.parent / "none")


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    ways = made(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for path in ways:
        in_python(path)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.native
def test_no_descriptor_is_left_by_native_code(tmp_path: Path) -> None:
    ways = made(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for path in ways:
        in_native_code(path)
    assert len(os.listdir("/proc/self/fd")) == before
