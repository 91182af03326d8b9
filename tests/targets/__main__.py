"""python -m tests.targets            try every variant of every target here, and record what was seen
python -m tests.targets --write      write the table of docs/targets.md from the record"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.targets.collect import everything
from tests.targets.evidence import RECORD, read, updated, write
from tests.targets.pages import texts
from tests.targets.table import matrix


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.targets", description="Kinds of ops by targets.")
    parser.add_argument("--write", action="store_true", help="only refresh the pages from the record")
    if not parser.parse_args(arguments).write:
        with tempfile.TemporaryDirectory() as folder:
            found = everything(Path(folder))
        write(updated(read() if RECORD.exists() else [], found))
    found = read()
    for page, text in texts(found).items():
        page.write_text(text, encoding="utf-8")
    print(matrix(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
