from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.reports.conftest import CEILINGS, INSIDE, case, contender, measurement, on_device, quantised, with_peer
from xyntra_bench.plan import Scenario, Target
from xyntra_bench.results import Run
from xyntra_bench.store import Stored, dump
from xyntra_reports import creation, render_report, reports
from xyntra_reports._kernels import cpu_roofs, groups
from xyntra_zoo.registry import RegistryError


@pytest.mark.parametrize("name", reports.names())
def test_every_report_renders_and_names_its_source(name: str, results: Path, run: Run) -> None:
    if on_a_device := name in ("gpu", "occupancy"):
        (results / "device.json").write_text(dump(on_device(run)))
    if of_served := name in ("wide", "wide-kernels"):
        (results / "served.json").write_text(dump(dataclasses.replace(run, target=Target.WIDE)))
    if of_bytes := name in ("quantised", "quantised-summary"):
        (results / "bytes.json").write_text(dump(dataclasses.replace(run, target=Target.QUANTISED)))
    if of_architectures := name == "architectures":
        (results / "made.json").write_text(dump(dataclasses.replace(run, target=Target.ARCHITECTURES)))
    if of_bare := name == "prebuilt":
        bare = dataclasses.replace(run, environment=dataclasses.replace(run.environment, compiler=""))
        (results / "bare.json").write_text(dump(bare))
    if of_modules := name == "torch":
        (results / "modules.json").write_text(dump(dataclasses.replace(run, target=Target.TORCH)))
    text = render_report(name, Stored.at(results))
    of_small_models = name in ("micro", "nets", "kernels")
    places = {
        "device": on_a_device,
        "other": of_small_models,
        "served": of_served,
        "bytes": of_bytes,
        "made": of_architectures,
        "bare": of_bare,
        "modules": of_modules,
    }
    source = f"`{next((place for place, there in places.items() if there), 'example')}.json`"
    if name == "ratios":  # the head of a document, whose tables name the rest
        assert "AVX2 (Example CPU, 2026-05-04): 1.30x to 1.30x in fp32 (2 rows, 0 of them slower, 1 without a ratio)" in text
        return
    for part in (source, "Example CPU", "quota 1.5 cores", "onnxruntime 1.31.1", "0123456789ab"):
        assert part in text
    assert ("2020-01-01" if of_small_models else "2026-05-04") in text and "A quick run" in text
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.replace("\\|", "").count("|") for line in lines}) <= 1, "every row has every column"
    assert text == render_report(name, Stored.at(results)), "a pure function"


def test_zoo_shows_wins_and_losses_alike(results: Path) -> None:
    rows = [line.split(" | ") for line in render_report("zoo", Stored.at(results)).splitlines() if line.startswith("| ")]
    header, wins, wrong, dies = rows
    by_name = dict(zip(header, wins, strict=True))
    assert by_name["speed-up [95 %]"].startswith("1.30x [1.30, 1.30")
    assert by_name["verdict"] == "faster" and by_name["max error"] == "1.0e-06"
    assert by_name["nodes |"] == "90/100 |" and by_name["p99 ms (n)"] == "101 (120)"
    assert dict(zip(header, wrong, strict=True))["speed-up [95 %]"] == "-"
    assert dict(zip(header, wrong, strict=True))["max error"] == "5.0e-01"
    assert dict(zip(header, dies, strict=True))["verdict"] == "crashed"


def test_openvino_has_columns_where_it_took_part(tmp_path: Path, run: Run) -> None:
    assert "| OpenVINO p50 ms" not in (text_of(run, "zoo", tmp_path))
    text = text_of(dataclasses.replace(run, cases=(with_peer("both"),)), "zoo", tmp_path)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    _, ours, alone = (dict(zip(rows[0], row, strict=True)) for row in rows)
    assert ours["provider"] == "XyntraEP:precision=bf16 (ran fp32)"
    assert ours["speed-up [95 %]"].startswith("2.00x") and ours["vs OpenVINO [95 %]"].startswith("1.20x")
    assert ours["OpenVINO p50 ms (error)"] == "78.5 (1.0e-06)"
    assert alone["provider"] == "OpenVINO:precision=int8w" and alone["vs OpenVINO [95 %]"] == "-"
    assert alone["verdict"] == "unavailable" and "2e-05 in bf16" in text


def test_quantised_models_have_a_column_about_their_float_models(tmp_path: Path, run: Run) -> None:
    assert "against float" not in text_of(run, "zoo", tmp_path)
    text = text_of(dataclasses.replace(run, cases=(quantised("q4"), with_peer("both"))), "zoo", tmp_path)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    assert len({len(row) for row in rows}) == 1
    assert rows[0][-2:] == ["CPU against float", "against float"]
    assert [row[-2:] for row in rows[1:]] == [["2.4e-01, 44 of 128 tokens", "2.3e-01, 45 of 128 tokens"], ["-", "-"], ["-", "-"]]
    assert "Bounds of the error: 2e-05 in bf16, 2e-05 in int8w, 0.03 in q4." in text


def text_of(run: Run, name: str, folder: Path) -> str:
    file = folder / "run.json"
    file.write_text(dump(run))
    return render_report(name, Stored.at(file))


@pytest.mark.parametrize("name", ["scaling", "specialised"])
def test_a_contender_against_itself_has_both_forms_in_a_row(name: str, results: Path) -> None:
    rows = [line for line in render_report(name, Stored.at(results)).splitlines() if line.startswith("| ")]
    (_, row) = rows
    assert row == "| self b1 s128 | XyntraEP | 2 | 101 | 50.3 | 2.00x [2.00, 2.00] |"


def test_offline_compares_throughput_with_the_cpu_and_with_one_call(results: Path) -> None:
    rows = [line for line in render_report("offline", Stored.at(results)).splitlines() if line.startswith("| busy")]
    assert rows[0].startswith("| busy b1 s128 | CPUExecutionProvider | 2 | - | 65.4 | - | - |")
    assert rows[1] == "| busy b1 s128 | A | 2 | 101 | 50.3 | 1.30x [1.30, 1.30] | 2.00x [2.00, 2.00] |"


def test_a_server_has_its_rate_and_says_when_none_held(results: Path) -> None:
    rows = [line for line in render_report("server", Stored.at(results)).splitlines() if line.startswith("| asked")]
    assert rows[0].startswith("| asked b1 s128 | CPUExecutionProvider | 1 | 65.0 | none holds |")
    assert rows[1] == "| asked b1 s128 | XyntraEP | 1 | 65.0 | 62 | 10.1 | 10.1 (120) | - | 2 |"
    assert "| batched | b1 s128 | 1 | XyntraEP |" in render_report("multi-stream", Stored.at(results))


def test_a_loop_has_first_and_later_tokens(results: Path) -> None:
    rows = [line for line in render_report("generate", Stored.at(results)).splitlines() if line.startswith("| writes")]
    assert rows[1].startswith("| writes b1 s128 | XyntraEP | 1 | 32 | 101 | 1.30x [1.30, 1.30] | 100 | 2.00x [2.00, 2.00] |")
    assert rows[2] == "| writes b1 s128 | B | 1 | failed | - | - | - | - | - | - |"


def test_creation_has_memory_and_imports(results: Path) -> None:
    text = render_report("creation", Stored.at(results))
    ours = next(line for line in text.splitlines() if "| XyntraEP |" in line)
    assert ours == "| wins b1 s128 | XyntraEP | 1 | 2000 | 1300 (2500) | 400 | 300 | +0 | 200 | 100 | 200 | 0.77x |"
    assert "`onnxruntime` 80.0 ms, `xyntra_ep` 40.0 ms" in text


def test_a_part_has_no_columns_that_nobody_fills(run: Run) -> None:
    without = tuple(dataclasses.replace(m, memory=None) for m in run.cases[0].measurements)
    case = dataclasses.replace(run.cases[0], baseline=without[0], contenders=without[1:])
    for shown, there in ((case, False), (run.cases[0], True)):
        section = creation.part(run, shown)
        assert section is not None and ("steady MiB" in section.text) is there and "planning ms" in section.text


def test_a_report_reads_the_newest_run_that_has_something_for_it(results: Path, run: Run) -> None:
    later = dataclasses.replace(run, started="2027-01-01", cases=run.cases[:1])
    (results / "later.json").write_text(dump(later))
    assert "`later.json`" in render_report("zoo", Stored.at(results))
    assert "`example.json`" in render_report("scaling", Stored.at(results))


def test_micro_has_the_worst_first_and_what_failed_last(results: Path, run: Run) -> None:
    slow = dataclasses.replace(case("slow", 1), contenders=(contender(200.0, measurement("CPUExecutionProvider", 130.0), 1e-6),))
    (results / "other.json").write_text(dump(dataclasses.replace(run, target=Target.MICRO, cases=(*run.cases[:3], slow))))
    rows = [line.split(" | ") for line in render_report("micro", Stored.at(results)).splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows[1:]] == ["| slow", "| wins", "| wrong", "| dies"]
    assert rows[1][5].startswith("0.65x") and rows[3][5] == "-" and rows[4][6] == "crashed"


def test_kernels_of_single_operators_stand_under_their_roofs(results: Path, run: Run) -> None:
    (results / "other.json").write_text(dump(dataclasses.replace(run, target=Target.MICRO, cases=run.cases[:1])))
    [header, row] = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in render_report("kernels", Stored.at(results)).splitlines()
        if line.startswith("| wins") or line.startswith("| point")
    ]
    found = dict(zip(header, row, strict=True))
    kernels = groups(INSIDE, cpu_roofs(CEILINGS))
    ns, flops, least_ns = (sum(getattr(g, name) for g in kernels) for name in ("ns", "flops", "roof_ns"))
    assert found["kernel"] == f"{kernels[0].variant} +{len(INSIDE.kernels) - 1}"
    assert found["GFLOP/s"] == f"{flops / ns:.3g}" and found["% of roof"] == f"{least_ns / ns:.0%}"
    assert found["roof"] == kernels[0].bound and found["speed-up [95 %]"].startswith("1.30x [")


def test_nets_stand_beside_themselves_and_the_cpu(results: Path, run: Run) -> None:
    [itself] = [c for c in run.cases if c.scenario is Scenario.SPECIALISED]
    theirs_fixed = measurement("CPUExecutionProvider fixed", 120.0)
    whole = dataclasses.replace(itself, model="unet/160x224", contenders=(theirs_fixed, *itself.contenders))
    (results / "other.json").write_text(dump(dataclasses.replace(run, target=Target.MICRO, cases=(whole,))))
    [header, row] = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in render_report("nets", Stored.at(results)).splitlines()
        if line.startswith("| ")
    ]
    found = dict(zip(header, row, strict=True))
    assert (found["net"], found["size"]) == ("unet", "160x224")
    assert (found["x ORT"], found["x ORT fixed"]) == ("1.30x", "2.40x") and found["gain by fixing [95 %]"].startswith("2.00x [")


def test_an_interrupted_run_is_called_one(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "half.json"
    file.write_text(dump(dataclasses.replace(run, finished="", planned=9)))
    assert "Interrupted after 9 of 9 cases" in render_report("zoo", Stored.at(file))


def test_an_unknown_report_is_refused(results: Path) -> None:
    with pytest.raises(RegistryError, match=r"no 'zo' in reports\. did you mean \['zoo'\]"):
        render_report("zo", Stored.at(results))
