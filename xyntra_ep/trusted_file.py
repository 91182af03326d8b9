"""Reads files that decide what is executed (kernels, plans, measurements, options), if only we or root can have written them.

Such a file is opened once, so that what was checked is what is used: each folder on the way is opened relative to the one before
it and checked through its descriptor, links are resolved step by step, and the file's owner, mode and bytes are read through its
own descriptor, from which code is loaded too. native/trusted_file.cc has the same rule in the same words:

- a folder, up to the root, belongs to us, to root or to the owner of "/", and nobody else may write to it, unless it has the
  sticky bit, with which others cannot rename or remove what is not theirs;
- a link belongs to one of these;
- the file belongs to us or to root, is a regular one, and nobody else may write to it.

The owner of "/" can replace anything below it. If that is not root, it is root as a user namespace shows it ("nobody").
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import itertools
import os
import stat
from pathlib import Path

# To look at what has a name, itself where it is a link, without opening it: macOS says it in other words.
_LOOK = os.O_CLOEXEC | (
    os.O_PATH | os.O_NOFOLLOW if hasattr(os, "O_PATH") else os.O_NONBLOCK | os.O_EVTONLY | os.O_SYMLINK  # type: ignore[attr-defined]
)
_FOLDER = _LOOK | os.O_DIRECTORY
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40  # as the kernel has it
_MAGIC = b"XYNTRA-SHA256:"  # known to native/kernel_loader.cc, too
_TRAILER_BYTES = len(_MAGIC) + hashlib.sha256().digest_size
_names = itertools.count(1)


class Distrusted(PermissionError):
    """Somebody else can have made the file, or can exchange it."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(errno.EPERM, why, path)

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def read_trusted(path: Path, *, most_bytes: int | None = None) -> bytes:
    """The bytes of a file. Raises FileNotFoundError and the like, `Distrusted`, or OSError for what is no file, a link without
    end, or larger than ``most_bytes``."""
    descriptor = _open(path, most_bytes)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def load_trusted(path: Path) -> ctypes.CDLL:
    """A sealed shared object. Raises as `read_trusted`, and OSError where its bytes are not those that were sealed."""
    descriptor = _open(path, None)
    with os.fdopen(descriptor, "rb") as file:
        if not intact(file.read()):
            raise OSError(errno.EBADMSG, "is damaged", str(path))
        # The loader knows what it has loaded by name, and the next file may get the same number: so no name comes twice.
        return ctypes.CDLL(f"/proc/self/fd{'/' * next(_names)}{descriptor}")


def seal(data: bytes) -> bytes:
    """``data`` with its checksum behind it, where loaders of shared objects do not look."""
    return data + _MAGIC + hashlib.sha256(data).digest()


def intact(data: bytes) -> bool:
    """Whether ``data`` ends in the checksum of what precedes it."""
    body, trailer = data[:-_TRAILER_BYTES], data[-_TRAILER_BYTES:]
    return trailer == _MAGIC + hashlib.sha256(body).digest()


def distrust(folder: Path) -> str:
    """Why what is in ``folder`` is not to be used, "" when nothing speaks against it. Raises OSError where nobody gets there."""
    try:
        os.close(_Walk(folder / ".").folder)
    except Distrusted as error:
        return str(error)
    return ""


def _open(path: Path, most_bytes: int | None) -> int:
    found = _Walk(path)
    try:
        _check_file(found.status, found.where)  # before it is opened: to open a device can do something
        descriptor = os.open(found.name, _READ, dir_fd=found.folder)
    finally:
        os.close(found.folder)
    try:
        status = os.fstat(descriptor)
        _check_file(status, found.where)
        if most_bytes is not None and status.st_size > most_bytes:
            raise OSError(errno.EFBIG, f"is larger than {most_bytes} bytes", found.where)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_file(status: os.stat_result, where: str) -> None:
    if status.st_uid not in (os.geteuid(), 0):
        raise Distrusted(where, f"belongs to user {status.st_uid}")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", where)
    if status.st_mode & _OTHERS_WRITE:
        raise Distrusted(where, _writable(status))


class _Walk:
    """The way to a file. ``folder``: that it is in, an open descriptor for the caller to close; ``name``: of the file there;
    ``where``: its whole path without links; ``status``: what it is, which may have changed."""

    def __init__(self, path: Path) -> None:
        self.name, self.where, self.status = "", "", os.stat("/")
        self._asked = path
        self._links = 0
        self._owners = {os.geteuid(), 0, self.status.st_uid}
        self._todo = str(path).split("/") if path.is_absolute() else [*os.getcwd().split("/"), *str(path).split("/")]
        self._todo.reverse()
        self.folder = os.open("/", _FOLDER)
        try:
            self._check_folder(os.fstat(self.folder))
            while self._todo:
                self._step(self._todo.pop())
        except BaseException:
            os.close(self.folder)
            raise
        self.where = self.where or "/"

    def _step(self, name: str) -> None:
        name = name or "."
        inner = self.where if name == "." else os.path.dirname(self.where) if name == ".." else f"{self.where}/{name}"
        try:
            found = os.open(name, _LOOK, dir_fd=self.folder)
        except OSError as error:
            error.filename = inner
            raise
        try:
            self.status = os.fstat(found)
            if stat.S_ISLNK(self.status.st_mode):
                self._follow(name, inner)
                return
            self.where = inner
            if not self._todo and not stat.S_ISDIR(self.status.st_mode):
                self.name = name
                return
            if not stat.S_ISDIR(self.status.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), inner)
            self._check_folder(self.status)
            self.folder, found = found, self.folder
            self.name = "."
        finally:
            os.close(found)

    def _follow(self, link: str, where: str) -> None:
        """By its name: nobody else can exchange a link of ours in a folder that has been checked."""
        self._links += 1
        if self.status.st_uid not in self._owners:
            raise Distrusted(where, f"is a link of user {self.status.st_uid}")
        if self._links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(self._asked))
        target = os.readlink(link, dir_fd=self.folder)
        self._todo += reversed(target.split("/"))
        if target.startswith("/"):
            root = os.open("/", _FOLDER)
            os.close(self.folder)
            self.folder, self.where = root, ""

    def _check_folder(self, status: os.stat_result) -> None:
        where = self.where or "/"
        if status.st_uid not in self._owners:
            raise Distrusted(where, f"belongs to user {status.st_uid}")
        if status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
            raise Distrusted(where, _writable(status))


def _writable(status: os.stat_result) -> str:
    return f"others may write to it (mode {stat.S_IMODE(status.st_mode):o})"
