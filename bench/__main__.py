"""`bench` and `python -m bench`: the command, or what to install for it. A plain `pip install xyntra-ep` has the script too."""

from __future__ import annotations

import sys

OURS = ("bench", "reports", "zoo", "xyntra_ep", "custom_ops")
MISUSED = 2


def main() -> None:
    try:
        from bench.cli import main as run

        run()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package or package in OURS:
            raise
        print(f"bench: needs the package {package}. pip install 'xyntra-ep[bench]'", file=sys.stderr)
        sys.exit(MISUSED)


if __name__ == "__main__":
    main()
