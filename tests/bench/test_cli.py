from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

from xyntra_bench import cli, execute, inventory
from xyntra_bench.chains import CHAINS
from xyntra_bench.errors import BenchError
from xyntra_bench.plan import MIN_N_P99, Case, Plan, Scenario
from xyntra_bench.publish import missed
from xyntra_bench.record import result_of
from xyntra_bench.results import CaseResult, Status
from xyntra_bench.show import COLUMNS
from xyntra_bench.store import Stored, load
from xyntra_reports import render_report
from xyntra_zoo import model_path, zoo

FAST = ["--quick", "--min-time", "0", "-e", "CPUExecutionProvider"]


def invoke(*arguments: str, code: int = 0) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["bench", *arguments])
        result = CliRunner().invoke(cli.app, list(arguments))
    assert result.exit_code == code, result.output + repr(result.exception)
    return result.output


def test_run_zoo_prints_plain_columns_and_stores_them(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    output = invoke("run", "zoo", "-m", "resnet50-tiny", "--threads", "1", *FAST, "--json", str(file))
    lines = output.splitlines()
    [at] = [i for i, line in enumerate(lines) if line.split()[:3] == list(COLUMNS[:3])]
    header, base, contender = lines[at : at + 3]
    assert base.split()[:4] == ["resnet50-tiny", "b1", "1", "CPUExecutionProvider"]
    assert contender[: header.index("error") + len("error")].endswith("0.0e+00") and "\x1b" not in output and "\t" not in output
    assert "[0/1] resnet50-tiny b1 t1\n[1/1] resnet50-tiny b1 t1: CPUExecutionProvider again " in output
    assert f"results: {file}" in output and "quick: rows end with 100 runs of each session" in output
    assert ("keeps the rules of publishing" in output) is (missed(load(file), Scenario.SINGLE_STREAM) == ())
    run = load(file)
    assert run.finished and run.quick and len(run.cases) == 1 and run.within_s is None
    for m in run.cases[0].measurements:
        assert m.latency is not None and m.latency.n >= MIN_N_P99, "also of a quick run"


def test_a_wide_run_is_one_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    output = invoke("run", "zoo", "--wide", "-m", "mobilenetv2-tiny", "--threads", "1", *FAST, "--json", str(file))
    run = load(file)
    assert run.target == "wide" and [case.shape for case in run.cases] == ["b2", "b3"]
    assert "publish" in output, "the rules are those of the zoo"
    stored = Stored.at(tmp_path)
    assert len(re.findall(r"^\| mobilenetv2-tiny \| b", render_report("wide", stored), flags=re.MULTILINE)) == 2
    with pytest.raises(BenchError, match="no stored results"):
        render_report("zoo", stored)


def test_a_run_of_quantised_models_is_one_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Plan] = []
    monkeypatch.setattr(cli, "execute", lambda plan, file, *, resume: plans.append(plan))
    invoke("run", "zoo", "--quantised", "--threads", "1")
    [plan] = plans
    assert plan.target == "quantised" and {"bert-base-dq8", "resnet50-qdq"} <= {case.model for case in plan.cases}
    assert all(case.float_model for case in plan.cases), "and no float model"
    error = CliRunner().invoke(cli.app, ["run", "zoo", "--quantised", "-m", "resnet50"]).exception
    assert isinstance(error, BenchError) and "--quantised: resnet50 is no quantised model. there are bert-base-dq8" in str(error)


@pytest.mark.parametrize(
    "option", [["--batch", "2"], ["--seq", "16"], ["--scenario", "offline"], ["--tokens", "4"], ["--quantised"]]
)
def test_a_wide_run_has_sizes_of_its_own(option: list[str]) -> None:
    error = CliRunner().invoke(cli.app, ["run", "zoo", "--wide", *option]).exception
    said = f"--wide and {option[0]} together: the selection has sizes and a scenario of its own. give one of them"
    assert isinstance(error, BenchError) and str(error) == said


def test_run_model_takes_a_file_and_shapes(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    model = str(model_path(zoo["bert-base-tiny"]))
    invoke("run", "model", model, "--shape", "input_ids=2x8", "--threads", "1", *FAST, "--json", str(file))
    (case,) = load(file).cases
    assert case.model == Path(model).name and "input_ids=2x8" in case.shape
    assert str(Path(model).parent) not in file.read_text(), "results name no folder of this machine"
    assert f"bench run model {Path(model).name} --shape" in load(file).command


def test_run_model_takes_feeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Strings, of which none can be made up, through a classifier whose probabilities are maps."""
    ml: dict[str, Any] = {"domain": "ai.onnx.ml"}
    nodes = [
        helper.make_node("LabelEncoder", ["s"], ["x"], keys_strings=["a", "b"], values_floats=[1.0, 2.0], **ml),
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["l", "p"],
            coefficients=[0.5, -1.0],
            intercepts=[0.0, 0.1],
            classlabels_strings=["n", "y"],
            **ml,
        ),
        helper.make_node("ZipMap", ["p"], ["maps"], classlabels_strings=["n", "y"], **ml),
    ]
    maps = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    outputs = [
        helper.make_tensor_value_info("l", TensorProto.STRING, [None]),
        helper.make_value_info("maps", helper.make_sequence_type_proto(maps)),
    ]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("s", TensorProto.STRING, [None, 1])], outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 2)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "words.onnx")
    np.savez(tmp_path / "words.npz", s=np.array([["a"], ["b"], ["b"]]))
    monkeypatch.chdir(tmp_path)
    invoke("run", "model", "words.onnx", "--feeds", "words.npz", "--threads", "1", *FAST, "--json", "r.json")
    (case,) = load(Path("r.json")).cases
    assert case.shape == "s=3x1" and case.contenders[0].check is not None and case.contenders[0].check.output == "maps"
    for given, message in (
        ([], "input s: cannot make up tensor(string). `bench run model` takes --feed s=FILE"),
        (["--feed", "s"], "--feed: 's' is not NAME=FILE"),
        (["--feed", "t=words.npz"], "words.npz: .npz is no kind of array that can be read. give .npy or .pb"),
        (["--feeds", "words.npz", "--feed", "s=s.npy"], "--feed and --feeds together. give one of them"),
        (
            ["--feeds", "words.npz", "--shape", "s=2x1"],
            "--shape s: it is given as a feed, which has its own shape. leave one of them out",
        ),
    ):
        error = CliRunner().invoke(cli.app, ["run", "model", "words.onnx", *given, *FAST]).exception
        assert isinstance(error, BenchError) and str(error) == message


def test_micro_measures_single_operators_and_says_which_lose(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    output = invoke("micro", "softmax/rows1536*", "--quick", "-e", "CPUExecutionProvider", "--json", str(file))
    run = load(file)
    assert run.target == "micro" and [case.model for case in run.cases] == ["softmax/rows1536-n128"]
    assert "CPUExecutionProvider again: faster in " in output and "unsure in " in output
    assert (
        render_report("micro", Stored.at(file))
        .splitlines()[2]
        .startswith("| softmax/rows1536-n128 | CPUExecutionProvider again | 1 |")
    )


def test_a_model_that_does_not_run_is_found_before_anything_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench"])
    file = tmp_path / "r.json"
    model = str(model_path(zoo["bert-base-tiny"]))
    shapes = ["--shape", "input_ids=1x8", "--shape", "attention_mask=1x4"]
    result = CliRunner().invoke(cli.app, ["run", "model", model, *shapes, *FAST, "--json", str(file)])
    assert isinstance(result.exception, BenchError) and not file.exists()
    said = str(result.exception)
    assert said.startswith(f"{Path(model).name}: the CPU provider, which all are compared with, cannot run it: ")
    assert said.endswith(". do the shapes given with --shape fit each other?")
    assert "\n" not in said and "ONNXRuntimeError" not in said
    weights = onnx.TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1])
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="gone.data")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [weights])
    opsets = [helper.make_opsetid("", 17)]
    (tmp_path / "bare.onnx").write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    result = CliRunner().invoke(cli.app, ["run", "model", str(tmp_path / "bare.onnx"), *FAST, "--json", str(file)])
    assert "gone.data" in str(result.exception) and str(result.exception).startswith("bare.onnx: the CPU provider, ")


def test_a_failing_case_sets_the_exit_code_and_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "check_runs", lambda cases: None)
    file = tmp_path / "r.json"
    model = str(model_path(zoo["bert-base-tiny"]))
    shapes = ["--shape", "input_ids=1x8", "--shape", "attention_mask=1x4"]
    output = invoke("run", "model", model, *shapes, "--threads", "1", *FAST, "--json", str(file), code=1)
    assert "failed: the CPU provider, which all are compared with, cannot run it: " in output
    assert "Traceback" not in output
    assert load(file).cases[0].status == "failed" and "\n" not in load(file).cases[0].error


def test_a_shape_that_is_lacking_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    model = str(model_path(zoo["bert-base-tiny"]))
    result = CliRunner().invoke(cli.app, ["run", "model", model, *FAST, "--json", str(tmp_path / "r.json")])
    assert isinstance(result.exception, BenchError)
    assert str(result.exception) == "input input_ids: dim sequence is dynamic. give --shape input_ids=1x128"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command", [("run", "zoo"), ("run", "model", "MODEL", "--shape", "input_ids=1x8"), ("micro", "softmax*"), ("determinism",)]
)
def test_a_contender_that_cannot_be_measured_ends_the_command_before_anything_is(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is there, and would be measured for hours."""
    for later in ("execute", "micro_cases", "configurations"):
        monkeypatch.setattr(cli, later, None)
    model = str(model_path(zoo["bert-base-tiny"]))
    asked = [model if part == "MODEL" else part for part in command]
    specs = ["-e", "CPUExecutionProvider:arena_extend_strategy=kSameAsRequested,XyntraEP:precison=bf16"]
    error = CliRunner().invoke(cli.app, [*asked, *specs, "--json", str(tmp_path / "r.json")]).exception
    assert isinstance(error, BenchError)
    assert str(error) == "XyntraEP: no provider option 'precison'. did you mean 'precision'?"
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_run_keeps_what_it_has_and_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    interrupts = [2]

    def written(case: Case, plan: Plan) -> CaseResult:
        if case.threads in interrupts:
            raise KeyboardInterrupt
        measured.append(case.label)
        return result_of(case, Status.OK)

    monkeypatch.setattr(execute, "run_case", written)
    monkeypatch.setattr(execute, "measure_imports", lambda contenders: {"onnxruntime": 1})
    file = tmp_path / "r.json"
    asked = ["run", "zoo", "-m", "resnet50-tiny", *FAST, "--json", str(file)]
    output = invoke(*asked, code=130)
    assert "[0/2] resnet50-tiny b1 t1\n" in output and output.count("\nmodel ") == 1, "what there is, is shown"
    assert f"interrupted: 1 of 2 cases are kept in {file}" in output and "--resume goes on" in output
    assert len(load(file).cases) == 1 and not load(file).finished
    interrupts.clear()
    assert "1 cases are there, 1 are left" in invoke(*asked, "--resume")
    assert measured == ["resnet50-tiny b1 t1", "resnet50-tiny b1 t2"], "none twice"
    assert len(load(file).cases) == 2 and load(file).finished
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["bench", *asked, "--resume", "--max-time", "9"])
        error = CliRunner().invoke(cli.app, [*asked, "--resume", "--max-time", "9"]).exception
    assert isinstance(error, BenchError)
    assert "cannot be resumed: options: it was" in str(error) and "budget max_time_s: 12.0, now 9.0" in str(error)


def test_a_run_that_is_interrupted_before_its_first_case_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(contenders: object) -> dict[str, int]:
        raise KeyboardInterrupt

    monkeypatch.setattr(execute, "measure_imports", interrupted)
    output = invoke("run", "zoo", "-m", "resnet50-tiny", *FAST, "--json", str(tmp_path / "r.json"), code=130)
    assert "interrupted: 0 of 2 cases are kept in" in output and load(tmp_path / "r.json").planned == 2


def test_a_file_that_cannot_be_written_is_said_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(execute, "run_case", None)
    result = CliRunner().invoke(
        cli.app, ["run", "zoo", "-m", "resnet50-tiny", *FAST, "--json", str(tmp_path / "file" / "r.json")]
    )
    assert isinstance(result.exception, BenchError)
    assert "r.json: cannot be written (" in str(result.exception) and "name another file with --json" in str(result.exception)


def test_a_model_that_cannot_be_kept_says_which_folder_to_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XYNTRA_ZOO_DIR", str(tmp_path / "file"))
    result = CliRunner().invoke(cli.app, ["run", "zoo", "-m", "resnet50-tiny", *FAST, "--json", str(tmp_path / "r.json")])
    assert isinstance(result.exception, BenchError)
    assert "file: resnet50-tiny cannot be written there (" in str(result.exception)
    assert "name another folder with XYNTRA_ZOO_DIR" in str(result.exception)


def test_list_names_everything_and_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = {"OpenVINO": "OpenVINO: not here"}
    monkeypatch.setattr(inventory, "probe", lambda contender: missing.get(contender.provider, ""))
    output = invoke("list")
    assert all(model.name in output for model in zoo) and all(chain.name in output for chain in CHAINS)
    assert all(scenario in output for scenario in Scenario)
    assert "OpenVINO: not here" in output and "CPUExecutionProvider         installed, onnxruntime" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "zoo", "-m", "brt-base"], "error: no 'brt-base' in zoo. did you mean ['bert-base'"),
        (["run", "zoo", "--threads", "no"], "error: --threads 'no': not a list of positive numbers"),
        (["run", "zoo", "--scenario", "servant"], "error: --scenario 'servant': no such scenario"),
        (["run", "zoo", "-e", "NoSuchEP"], "error: NoSuchEP: not in onnxruntime"),
        (["run", "zoo", "-e", "XyntraEP:precision=bf17"], "error: XyntraEP: precision='bf17' is not valid. did you mean 'bf16'?"),
        (["run", "model", "absent.onnx"], "error: absent.onnx: no such file"),
        (["run", "zoo", "--resume"], "error: --resume: which run? give its file with --json"),
        (["run", "zoo", "-e", "CPUExecutionProvider", "--resume", "--json", "absent.json"], "error: absent.json: no such file"),
        (["run", "zoo", "--p99-bound", "-1"], "error: --p99-bound -1: not a time"),
        (["compare", "absent.json", "b.json"], "error: absent.json: no such file"),
        (["report", "--readme", "absent.md", "--results", "."], "error: absent.md: no such file"),
    ],
)
def test_mistakes_print_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    root, here = Path(__file__).parents[2], tmp_path / "here"
    here.mkdir()
    command = [sys.executable, "-m", "xyntra_bench", *arguments]
    environment = {"PYTHONPATH": str(root), "HOME": str(tmp_path), "PATH": ""}
    done = subprocess.run(command, capture_output=True, text=True, cwd=here, env=environment, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(message) and done.stderr.count("\n") == 1, done.stderr
    assert list(here.iterdir()) == []
