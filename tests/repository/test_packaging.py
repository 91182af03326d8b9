"""What the package promises before anything runs: its face, its version, its weight."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import xyntra_ep

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"onnx", "onnx_ir", "onnxscript", "scipy", "skopt", "sklearn", "matplotlib", "rich", "typer", "torch"}


def test_importing_loads_nothing_heavy() -> None:
    code = f"import sys, xyntra_ep; print(sorted({HEAVY!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("name", xyntra_ep.__all__)
def test_every_public_name_is_there(name: str) -> None:
    if name in ("from_torch", "from_torchscript"):
        pytest.importorskip("torch")
    assert getattr(xyntra_ep, name)
    assert name in dir(xyntra_ep)


def test_a_wrong_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'xyntra_ep' has no attribute 'registr'"):
        xyntra_ep.registr  # noqa: B018


def test_the_page_about_uninstalling_names_what_is_installed() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    page = (ROOT / "docs" / "uninstall.md").read_text(encoding="utf-8")
    said = page.partition("installs five folders into")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", said))
    assert named == {*project["tool"]["scikit-build"]["wheel"]["packages"], *project["project"]["scripts"]}


def test_native_code_has_the_same_version() -> None:
    header = (ROOT / "native" / "version.h").read_text(encoding="utf-8")
    assert re.findall(r'"(\d+\.\d+\.\d+)"', header) == [xyntra_ep.__version__]


def test_extras_bring_onnxruntime_where_it_is_used() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]

    def leads_to_ort(extra: str) -> bool:
        inner = [names.split(",") for item in extras[extra] for names in re.findall(r"xyntra-ep\[([\w,]+)\]", item)]
        return extra == "ort" or any(leads_to_ort(name) for names in inner for name in names)

    assert {extra for extra in extras if not leads_to_ort(extra)} == {
        "cc",
        "cuda",
        "opencl",
        "peers",
        "release",
        "torch",
        "triton",
        "tune",
        "webgpu",
    }
