"""Copies what XyntraEP has measured of this machine into the contenders' caches.

Each contender has an otherwise empty cache. Ceilings (`xyntra doctor --measure`), tuning results and trials decide which nodes a
session claims and which kernels it uses, so a contender gets those of the user's cache and is measured as sessions here run.
Without the trials its first session would make them, and they would count as session creation.
"""

from __future__ import annotations

import os
from pathlib import Path


def give_known(cache_dir: Path) -> None:
    """To a contender's cache, which is made where there is something to give."""
    from xyntra_ep.provider.registration import default_cache_dir
    from xyntra_ep.tracea.doctor import ceilings
    from xyntra_ep.tracea.optimizer.tuning_cache import PREFIX
    from xyntra_ep.tracea.runtime.cache_root import TRIALS, atomic_write, open_root
    from xyntra_ep.trusted_file import read_trusted

    own = default_cache_dir()
    for name in (ceilings.FILE, TRIALS, *(path.name for path in own.glob(f"{PREFIX}-*.json"))):
        known = own / name
        try:
            data, changed = read_trusted(known), known.stat()
        except OSError:  # it is not there, or a session would not read it either
            continue
        root = open_root(cache_dir)
        atomic_write(root.path / name, data, root.tmp)
        os.utime(root.path / name, ns=(changed.st_atime_ns, changed.st_mtime_ns))  # trials that failed count for a day
