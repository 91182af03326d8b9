"""Run by `make test-bench` after the commands themselves: is every file that they wrote what it should be?"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from jsonschema import Draft202012Validator

from tests.support import site as files_of_a_site
from xyntra_bench.store import SCHEMA_FILE, dump, load


def main(results: Path, site: Path) -> None:
    Draft202012Validator(json.loads(SCHEMA_FILE.read_text())).validate(json.loads(results.read_text()))
    run = load(results)
    assert dump(run) == results.read_text(), "a stored run comes back as it was"
    assert run.finished and len(run.cases) == run.planned and run.ceilings and run.imports_ns
    for case in run.cases:
        for m in case.measurements:
            assert m.latency and m.creation and m.placement and m.latency.n == len(m.samples_ns), f"{case.label} {m.label}"
        assert all(m.ratio and m.inside and m.inside.kernels for m in case.contenders), case.label
    assert not (wrong := files_of_a_site.problems(site)), "\n".join(wrong)
    models = {f"{case.model}.html" for case in run.cases}
    assert {path.name for path in (site / "models").iterdir()} == models
    assert list((site / "figures").glob("roofline-*.svg")) and list((site / "figures").glob("latency-*.svg"))
    print(f"{results}: {len(run.cases)} cases; {site}: {sum(file.is_file() for file in site.rglob('*'))} files, all good")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
