from __future__ import annotations

import pytest

from xyntra_bench.contenders import Contender, parse_contenders
from xyntra_bench.errors import BenchError


def test_specs() -> None:
    plain = Contender.parse("XyntraEP")
    assert (plain.provider, dict(plain.options), plain.label) == ("XyntraEP", {}, "XyntraEP")
    tuned = Contender.parse("XyntraEP:claim=all+precision=bf16")
    assert dict(tuned.options) == {"claim": "all", "precision": "bf16"}
    assert tuned.label == "XyntraEP:claim=all+precision=bf16"
    assert dict(Contender.parse("A:path=a=b").options) == {"path": "a=b"}


def test_a_precision_may_stand_alone() -> None:
    assert Contender.parse("OpenVINO:bf16") == Contender.parse("OpenVINO:precision=bf16")
    assert Contender.parse("X:claim=all+int8w").precision == "int8w"
    assert Contender.parse("X").precision == "fp32"


def test_commas_part_contenders_and_the_baseline_is_there_anyway() -> None:
    labels = [c.label for c in parse_contenders(["CPUExecutionProvider,XyntraEP, XyntraEP:bf16", "OpenVINO,XyntraEP"])]
    assert labels == ["XyntraEP", "XyntraEP:precision=bf16", "OpenVINO"]
    tuned = "CPUExecutionProvider:arena_extend_strategy=kNextPowerOfTwo"
    assert [c.label for c in parse_contenders([tuned])] == [tuned]


@pytest.mark.parametrize("spec", ["XyntraEP:claim", "XyntraEP:", "XyntraEP:=all", ":claim=all", "precision=bf16", ""])
def test_bad_specs_say_how_to_write_them(spec: str) -> None:
    with pytest.raises(BenchError, match=r"write NAME:key=value\+key=value"):
        Contender.parse(spec)


def test_a_misspelt_precision_is_told_the_near_one() -> None:
    with pytest.raises(BenchError, match=r"'bf17' is not key=value. did you mean 'bf16'\?"):
        Contender.parse("XyntraEP:bf17")


def test_a_reduced_precision_may_differ_more_but_never_less() -> None:
    assert Contender.parse("X").max_err(2e-5) == 2e-5
    assert Contender.parse("X:precision=bf16").max_err(2e-5) == 2e-2
    assert Contender.parse("X:precision=bf16").max_err(0.5) == 0.5
    assert Contender.parse("X:precision=bf17").max_err(2e-5) == 2e-5, "what is not known has no licence"
