"""Shared memory as the hardware serves it: 32 banks of 4 bytes, one word of each at a time.

A warp's access goes in phases: 32 threads of at most 4 bytes, 16 of 8 bytes, 8 of 16 bytes (CUDA C++ Programming Guide,
"Shared Memory" of compute capabilities 5.x and later; the phases of wide accesses are how the profiler counts them). Threads
that want the same word get it together; different words of one bank wait for each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

BANKS = 32
BANK_BYTES = 4
WARP = 32


def lanes_of_phase(access_bytes: int) -> int:
    """Threads that are served together when each moves so many bytes."""
    return WARP * BANK_BYTES // max(BANK_BYTES, access_bytes)


def conflicts(addresses: Sequence[int], access_bytes: int) -> int:
    """Rounds beyond the fewest possible, for the byte addresses of a warp's threads in their order."""
    extra = 0
    lanes = lanes_of_phase(access_bytes)
    for first in range(0, len(addresses), lanes):
        words: dict[int, set[int]] = defaultdict(set)
        for address in addresses[first : first + lanes]:
            assert address % access_bytes == 0, f"{address} is not aligned to {access_bytes}"
            for word in range(address // BANK_BYTES, -(-(address + access_bytes) // BANK_BYTES)):
                words[word % BANKS].add(word)
        extra += max(map(len, words.values())) - 1
    return extra
