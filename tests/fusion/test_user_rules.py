"""Rules of the user's: read, tried, refused with file, line and reason; used by a session and shown by `explain`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.models.model_text import cpu, normal, parse
from xyntra_ep import explain
from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.errors import ConfigError
from xyntra_ep.fusion.rules import RULES, algebra
from xyntra_ep.fusion.rules._user import read

SOFTPLUS = """
# softplus as it is written by hand
[[rule]]
name = "mine.softplus"
pattern = "log(1 + exp(x))"
replacement = "softplus(x)"
"""
PYTHON = """
from xyntra_ep.fusion.rules import Rule

NAMES = ["log(1 + exp(x))", "log(exp(x) + 1)"]
RULES = [Rule(name=f"mine.{k}", pattern=text, replacement="softplus(x)") for k, text in enumerate(NAMES)]
"""


HERE = "rules.toml:3: rule mine.softplus: "


def file(folder: Path, text: str, name: str = "rules.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def refusal(folder: Path, text: str, name: str = "rules.toml") -> str:
    with pytest.raises(ConfigError) as raised:
        algebra(file(folder, text, name), strict=False)
    return str(raised.value).replace(f"{folder}/", "")


class TestReading:
    def test_a_rule_knows_where_it_stands(self, tmp_path: Path) -> None:
        path = file(tmp_path, SOFTPLUS)
        [rule] = read(path)
        assert (rule.name, rule.pattern, rule.source) == ("mine.softplus", "log(1 + exp(x))", f"{path}:3")

    def test_python(self, tmp_path: Path) -> None:
        rules = read(file(tmp_path, PYTHON, "rules.py"))
        assert [rule.name for rule in rules] == ["mine.0", "mine.1"]

    def test_none_is_our_own(self) -> None:
        assert algebra(None, strict=False) is algebra(None, strict=False)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "[[rule]\n",
                "rules.toml: cannot be read (Expected",
            ),
            ("[rules]\n", "rules.toml: 'rules' is nothing that a file of rules has. write [[rule]]"),
            ("rule = 3\n", "rules.toml: 'rule' is no list of tables. write [[rule]]"),
            ('\n[[rule]]\nname = "a"\n', "rules.toml:2: a rule without pattern. it needs name, pattern, replacement"),
            (SOFTPLUS + "where = 3", "rules.toml:3: where = 3 is not valid. docs/rules.md shows each field"),
            (SOFTPLUS + "where = [3]", "rules.toml:3: where = [3] is not valid. it wants a list of texts"),
            (SOFTPLUS + "exakt = true", "rules.toml:3: no field 'exakt'. did you mean 'exact'?"),
            (SOFTPLUS + 'keeps = ["all"]', "rules.toml:3: keeps = 'all' is not valid. there are zero, infinity, nan"),
            (SOFTPLUS + "tolerance = 0.5", "rules.toml:3: tolerance = 0.5 is not valid. it is from 0 to 0.01"),
            (SOFTPLUS + "tolerance = true", "rules.toml:3: tolerance = True is not valid. docs/rules.md shows each field"),
            (
                SOFTPLUS.replace("softplus(x)", "softplus(y)"),
                f"{HERE}'y' of the replacement is not in the pattern",
            ),
            (SOFTPLUS.replace("log(1", "ln(1"), f"{HERE}no operation 'ln'."),
            (SOFTPLUS.replace("log(1 + exp(x))", "x"), f"{HERE}a pattern is an operation"),
            (
                SOFTPLUS.replace('"softplus(x)"', '"x < 1"'),
                f"{HERE}one side is a number and the other a condition",
            ),
            (
                SOFTPLUS + 'where = ["big(x)"]',
                f"{HERE}'big(x)' is no guard as in 'nonzero(K)'. there are",
            ),
            (SOFTPLUS + 'where = ["nonzero(y)"]', f"{HERE}'y' of a guard is not in the pattern"),
            (SOFTPLUS.replace("softplus(x)", "relu(x)"), "rules.toml:3: rule mine.softplus is not right: for x = "),
            (SOFTPLUS + SOFTPLUS, "rules.toml:9: rule mine.softplus is there twice"),
            (SOFTPLUS.replace("mine.softplus", "silu.sigmoid"), "rules.toml:3: rule silu.sigmoid is there twice"),
        ],
    )
    def test_a_wrong_rule_is_refused_with_line_and_reason(self, tmp_path: Path, text: str, message: str) -> None:
        assert refusal(tmp_path, text).startswith(message)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("x = 1\nx = = 2\n", "rules.py:2: SyntaxError: invalid syntax"),
            ("x = 1\n\ny = z\n", "rules.py:3: NameError: name 'z' is not defined. correct it"),
            ("RULES = [1]\n", "rules.py: there is no list RULES of Rule. from xyntra_ep.fusion.rules import Rule"),
            ("", "rules.py: there is no list RULES of Rule"),
        ],
    )
    def test_python_that_is_wrong(self, tmp_path: Path, text: str, message: str) -> None:
        assert refusal(tmp_path, text, "rules.py").startswith(message)

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="no file"):
            algebra(tmp_path / "rules.toml", strict=False)

    def test_what_somebody_else_can_write_is_not_run(self, tmp_path: Path) -> None:
        path = file(tmp_path, "raise SystemExit(3)\n", "rules.py")
        path.chmod(0o666)
        with pytest.raises(ConfigError, match="somebody else can have written it"):
            algebra(path, strict=False)


MODEL = "(float[N,8] x) => (float[N,8] y) <float one = {1.0}> { e = Exp(x) s = Add(one, e) l = Log(s) y = Mul(l, x) }"


class TestSessions:
    def test_it_is_applied_and_told(self, tmp_path: Path) -> None:
        model = parse(MODEL)
        options = {"claim": "all", "rules": str(file(tmp_path, SOFTPLUS)), "cache_dir": str(tmp_path / "cache")}
        x = normal(5, 8) * 10
        [got] = open_session(model.SerializeToString(), options).run(None, {"x": x})
        np.testing.assert_allclose(got, cpu(model, {"x": x})[0], rtol=1e-5, atol=1e-6)
        told = explain(model.SerializeToString(), options=options, passes=True)
        assert "rule mine.softplus" in str(told)
        assert "rule         mine.softplus: " in told.passes()
        plain = explain(model.SerializeToString(), options={**options, "rules": ""}, passes=True)
        assert "mine.softplus" not in str(plain) + plain.passes()

    def test_a_plan_made_with_rules_is_not_stored(self, tmp_path: Path) -> None:
        """What is in the file can change, and the plan's name does not know it."""
        model = parse(MODEL).SerializeToString()
        path = file(tmp_path, SOFTPLUS)
        options = {"claim": "all", "rules": str(path), "cache_dir": str(tmp_path / "cache")}
        for _ in range(2):
            assert not explain(model, options=options).graphs[0].stored
        file(tmp_path, SOFTPLUS.replace("mine.softplus", "mine.other"))
        assert "rule mine.other" in str(explain(model, options=options))

    def test_a_wrong_file_refuses_the_session(self, tmp_path: Path) -> None:
        path = file(tmp_path, SOFTPLUS.replace("softplus(x)", "relu(x)"))
        with pytest.raises(ConfigError) as raised:
            open_session(parse(MODEL).SerializeToString(), {"rules": str(path), "cache_dir": str(tmp_path / "cache")})
        assert f"{path}:3: rule mine.softplus is not right: for x = " in str(raised.value)

    def test_a_found_options_file_cannot_name_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from xyntra_ep.options import parse as parse_options

        (tmp_path / "fusion.toml").write_text(f'[provider]\nrules = "{file(tmp_path, PYTHON, "rules.py")}"\n')
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ConfigError, match="rules is not taken from a file that was merely found"):
            parse_options({})

    def test_ours_are_still_there(self, tmp_path: Path) -> None:
        found = algebra(file(tmp_path, SOFTPLUS), strict=False)
        assert len(found._goals) + len(found._forms) == len(list(RULES)) + 1
