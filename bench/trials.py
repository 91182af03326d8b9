"""XyntraEP's trials of its kernels on a GPU, made once before anything is measured: `python -m xyntra_bench.trials BACKEND...`.

Trials decide which variants sessions choose, and whether `backend=auto` uses the GPU at all, so measured sessions must know the
results as any session does. They are kept in the user's cache and copied into the contenders' caches (`bench/known.py`).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

LIMIT_S = 300.0


def make_trials(backends: Sequence[str], environment: dict[str, str]) -> str:
    """Why they could not be made, empty when they are on record or have nothing to be made on. In a child process: a driver
    may take it along."""
    if not backends:
        return ""
    command = [sys.executable, "-P", "-m", "xyntra_bench.trials", *backends]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"trials on {', '.join(backends)}: not made within {LIMIT_S:.0f} s"
    last = (done.stderr.splitlines() or [f"exit status {done.returncode}"])[-1]
    return f"trials on {', '.join(backends)}: cannot be made: {last}" if done.returncode else ""


def main(backends: Sequence[str]) -> None:
    from xyntra_ep import options
    from xyntra_ep.errors import ConfigError
    from xyntra_ep.provider import registration
    from xyntra_ep.provider.placement import confirmed, place
    from xyntra_ep.tracea.runtime.hashing import hash128_of

    hash128 = hash128_of(registration.library())
    for backend in backends:
        asked = options.parse({"backend": backend})
        try:
            confirmed(place(asked, None, hash128), asked, hash128)
        except ConfigError:
            continue  # the contender's own session says it, and what to do


if __name__ == "__main__":
    main(sys.argv[1:])
