"""`bench` and `python -m xyntra_bench`: the command, or what to install for it. A plain `pip install xyntra-ep` has it too."""

from __future__ import annotations

import sys

OURS = ("xyntra_bench", "xyntra_reports", "xyntra_zoo", "xyntra_ep", "xyntra_custom_ops")
MISUSED = 2


def main() -> None:
    try:
        from xyntra_bench.cli import main as run

        run()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package or package in OURS:
            raise
        print(f"bench: needs the package {package}. pip install 'xyntra-ep[bench]'", file=sys.stderr)
        sys.exit(MISUSED)


if __name__ == "__main__":
    main()
