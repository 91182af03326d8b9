"""What a build server may do: as little as each job needs, with actions that nobody can exchange. A change never writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[2] / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))
PINNED = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40}  # v\d+(\.\d+)*$")
# What a job that may write runs: nothing that a change could have written, neither make nor anything of the checkout.
PUBLISHING = (
    "actions/checkout@",
    "actions/download-artifact@",
    "actions/attest-build-provenance@",
    "pypa/gh-action-pypi-publish@",
)
HARMLESS = {"gh", "git", "cat", "cp", "test", "mkdir", "echo", "if", "fi", "then", "else"}
WRITES = "write"


def parsed(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text())
    assert isinstance(found, dict)
    return found


def jobs(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from parsed(path)["jobs"].items()


def writing_jobs() -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{path.name}: {name}", job)
        for path in FILES
        for name, job in jobs(path)
        if WRITES in job.get("permissions", {}).values()
    ]


def test_there_are_workflows() -> None:
    assert {path.name for path in FILES} >= {"ci.yml", "bench.yml", "release.yml"} and len(list(FOLDER.iterdir())) == len(FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_workflow_reads_and_a_job_says_what_it_needs_more(path: Path) -> None:
    assert parsed(path)["permissions"] == {"contents": "read"}
    for name, job in jobs(path):
        asked = job.get("permissions", {})
        assert isinstance(asked, dict), f"{name}: {asked!r} is more than anybody needs"
        more = [key for key, value in asked.items() if (key, value) != ("contents", "read")]
        text = path.read_text().partition(f"\n  {name}:")[2]
        for key in more:
            assert re.search(rf"^ +{key}: \w+  # \w", text, re.MULTILINE), f"{path.name}: {name}: {key} does not say what for"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_actions_are_pinned_by_their_content(path: Path) -> None:
    uses = [line.strip().removeprefix("- ") for line in path.read_text().splitlines() if re.match(r"\s*(- )?uses:", line)]
    assert uses and not [line for line in uses if not PINNED.match(line)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_strangers_change_never_runs_with_our_rights(path: Path) -> None:
    triggers = parsed(path)[True]  # YAML 1.1 reads `on` as a truth
    assert "pull_request_target" not in triggers and "workflow_run" not in triggers


def test_who_writes_runs_no_code_of_a_change() -> None:
    found = writing_jobs()
    assert found, "the comment and the commit are written by somebody"
    for name, job in found:
        for step in job["steps"]:
            if "run" not in step:
                assert step["uses"].startswith(PUBLISHING), f"{name}: {step['uses']}"
                continue
            assert "${{" not in step["run"], f"{name}: text of others belongs into the environment, not into a command"
            for line in re.sub(r"\\\n", " ", step["run"]).splitlines():
                for command in re.split(r"&&|\|\||;|\|", line):
                    word = command.split()[0] if command.split() else "echo"
                    assert word in HARMLESS, f"{name}: {command.strip()}"


def test_who_runs_a_change_keeps_no_credentials() -> None:
    for path in FILES:
        for name, job in jobs(path):
            if WRITES in job.get("permissions", {}).values():
                continue
            for step in job["steps"]:
                if step.get("uses", "").startswith("actions/checkout@"):
                    assert step.get("with", {}).get("persist-credentials") is False, f"{path.name}: {name}"


def test_nothing_is_published_but_what_a_tag_names_and_was_tried() -> None:
    steps = dict(jobs(FOLDER / "release.yml"))
    assert steps["publish"]["if"] == "github.event_name == 'push' && github.ref_type == 'tag'"
    assert set(steps["publish"]["needs"]) == {"wheels", "installed"} and steps["page"]["needs"] == "publish"
    assert [name for name, job in steps.items() if "id-token" in job.get("permissions", {})] == ["publish"]


def test_reports_are_kept() -> None:
    for path in FILES:
        assert any("actions/upload-artifact@" in step.get("uses", "") for _, job in jobs(path) for step in job["steps"]), (
            path.name
        )
