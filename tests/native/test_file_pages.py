"""Pages that go when a weight is packed: those of files, as they are in the file, and no others."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from xyntra_ep.provider import registration

PAGE = mmap.PAGESIZE
PAGES = 1500  # more than what is asked for at once
pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(not os.access("/proc/self/pagemap", os.R_OK), reason="the system does not tell which pages are a file's"),
]
Bytes = npt.NDArray[np.uint8]


def give_back(data: Bytes) -> int:
    return int(registration.library().xyntra_give_back_file_pages(data.ctypes.data, data.nbytes))


def resident(data: Bytes) -> int:
    """How many pages of the process there are at these addresses."""
    first, last = data.ctypes.data // PAGE, -(-(data.ctypes.data + data.nbytes) // PAGE)
    with open("/proc/self/pagemap", "rb") as file:
        entries = np.frombuffer(os.pread(file.fileno(), 8 * (last - first), 8 * first), np.uint64)
    return int((entries >> np.uint64(63)).sum())


@pytest.fixture
def content() -> Bytes:
    return np.random.default_rng(0).integers(0, 256, PAGES * PAGE, dtype=np.uint8)


@pytest.fixture
def file(tmp_path: Path, content: Bytes) -> Path:
    path = tmp_path / "weights.bin"
    content.tofile(path)
    return path


def mapped(path: Path, flags: int, protection: int = mmap.PROT_READ | mmap.PROT_WRITE) -> Bytes:
    with path.open("r+b") as opened:
        data = np.frombuffer(mmap.mmap(opened.fileno(), 0, flags, protection), np.uint8)
    assert int(data[::PAGE].sum(dtype=np.int64)) > 0  # so each page is there
    return data


@pytest.mark.parametrize("flags", [mmap.MAP_PRIVATE, mmap.MAP_SHARED], ids=["private", "shared"])
def test_what_was_only_read_goes_and_comes_again(file: Path, content: Bytes, flags: int) -> None:
    data = mapped(file, flags)
    assert resident(data) == PAGES
    assert give_back(data) == PAGES * PAGE
    assert resident(data) == 0
    np.testing.assert_array_equal(data, content)


def test_what_was_written_stays_where_the_mapping_is_private(file: Path, content: Bytes) -> None:
    data = mapped(file, mmap.MAP_PRIVATE)
    written = [*range(0, 3), 511, 512, *range(700, 900), PAGES - 1]
    for page in written:
        data[page * PAGE] ^= 255
        content[page * PAGE] ^= 255
    assert give_back(data) == (PAGES - len(written)) * PAGE
    np.testing.assert_array_equal(data, content)
    assert give_back(data) == (PAGES - len(written)) * PAGE
    np.testing.assert_array_equal(data, content)


def test_what_was_written_is_in_the_file_where_the_mapping_is_shared(file: Path, content: Bytes) -> None:
    data = mapped(file, mmap.MAP_SHARED)
    data[::PAGE] ^= 255
    content[::PAGE] ^= 255
    give_back(data)
    np.testing.assert_array_equal(data, content)


def test_memory_of_the_process_stays(content: Bytes) -> None:
    own = np.frombuffer(mmap.mmap(-1, content.nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
    own[:] = content
    shared = np.frombuffer(mmap.mmap(-1, content.nbytes, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS), np.uint8)
    shared[:] = content
    untouched = np.frombuffer(mmap.mmap(-1, content.nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
    assert int(untouched.sum()) == 0  # the page of zeros, as often as it is read
    heap = content.copy()
    assert give_back(own) == give_back(untouched) == give_back(heap) == 0
    give_back(shared)  # whatever goes, the content does not
    for data in (own, shared, heap):
        np.testing.assert_array_equal(data, content)


@pytest.mark.parametrize(("begin", "end", "pages"), [(0, PAGE * 20 + 1, 20), (1, PAGE * 21 - 1, 19), (PAGE, PAGE * 30, 29)])
def test_a_page_that_belongs_to_others_too_stays(file: Path, content: Bytes, begin: int, end: int, pages: int) -> None:
    data = mapped(file, mmap.MAP_PRIVATE)
    assert give_back(data[begin:end]) == pages * PAGE
    assert resident(data) <= PAGES - pages  # a huge page goes as a whole where the system has one there
    np.testing.assert_array_equal(data, content)


def test_addresses_without_memory_are_no_harm() -> None:
    library = registration.library()
    assert library.xyntra_give_back_file_pages(None, 0) == 0
    assert library.xyntra_give_back_file_pages(1 << 46, 1 << 20) == 0
