"""Reads the arguments of the `xyntra` command. A wrong one is answered with what is wrong and the nearest valid one."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from xyntra_ep.errors import ConfigError, did_you_mean

MISUSED = 2
_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as errors do."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # What begins as a negative number is the value of an option, and not one of its own: `--max-age -1d`.
        self._negative_number_matcher = re.compile(r"-\d")

    def error(self, message: str) -> NoReturn:
        if found := re.match(r"argument (.+): invalid choice: '(.*)' \(choose from (.+)\)", message):
            choices = [choice.strip(" '") for choice in found[3].split(",")]
            message = f"{found[1]}: there is no {found[2]!r}. {did_you_mean(found[2], choices)}"
        self.exit(MISUSED, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def refuse(self, rest: Sequence[str]) -> NoReturn:
        """What is left over, by its first word."""
        wrong = rest[0].partition("=")[0]
        if wrong.startswith("-"):
            self.error(f"there is no option {wrong!r}. {did_you_mean(wrong, list(self._option_string_actions))}")
        self.error(f"nothing is done with {wrong!r}")


def pairs(given: Sequence[str], option: str, form: str = "NAME=VALUE") -> dict[str, str]:
    """Of an option that is repeated. One name with two values is a mistake: which of them was meant?

    >>> pairs(["claim=all", "precision=bf16"], "-O")
    {'claim': 'all', 'precision': 'bf16'}
    """
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ConfigError(f"{text!r} is not {form}", where=option)
        if found.get(name, value) != value:
            raise ConfigError(f"{name}={found[name]} and {name}={value}", where=option, hint="give one of them")
        found[name] = value
    return found


def sizes(given: Sequence[str], option: str) -> dict[str, int]:
    """
    >>> sizes(["batch=4"], "--dim")
    {'batch': 4}
    """
    found = {}
    for name, value in pairs(given, option, "NAME=SIZE").items():
        try:
            found[name] = int(value)
        except ValueError:
            raise ConfigError(f"{name}={value} is no size", where=option, hint="it wants an integer") from None
    return found


def shapes(given: Sequence[str], option: str) -> dict[str, tuple[int, ...]]:
    """
    >>> shapes(["x=64x20", "scale="], "--shape")
    {'x': (64, 20), 'scale': ()}
    """
    found = {}
    for name, value in pairs(given, option, "INPUT=64x20").items():
        parts = value.split("x") if value else []
        if not all(part.isdecimal() for part in parts):
            hint = "write it as INPUT=64x20, that of a scalar as INPUT="
            raise ConfigError(f"{name}={value} is no shape", where=option, hint=hint)
        found[name] = tuple(map(int, parts))
    return found


def add_options(parser: Parser, note: str) -> None:
    text = f"a provider option; {note}"
    parser.add_argument("-O", "--option", action="append", default=[], metavar="NAME=VALUE", help=text)


def add_dims(parser: Parser, use: str) -> None:
    parser.add_argument(
        "--dim", action="append", default=[], metavar="NAME=SIZE", help=f"size of a symbolic dimension, {use}; repeat"
    )
    parser.add_argument("--shape", action="append", default=[], metavar="INPUT=64x20", help=f"shape of an input, {use}; repeat")


def add_feeds(parser: Parser) -> None:
    parser.add_argument("--feed", action="append", default=[], metavar="NAME=FILE", help="an input from a .npy or .pb; repeat")
    together = "inputs from a .npz, or a folder with input_0.pb, input_1.pb ..."
    parser.add_argument("--feeds", type=Path, metavar="FILE", help=together)


def given_feeds(chosen: argparse.Namespace, where: str) -> Path | dict[str, Path]:
    """What `add_feeds` has added."""
    if chosen.feed and chosen.feeds:
        raise ConfigError("--feed and --feeds together", where=where, hint="give one of them")
    return chosen.feeds or {name: Path(file) for name, file in pairs(chosen.feed, "--feed", "NAME=FILE").items()}


def given_sizes(chosen: argparse.Namespace) -> dict[str, Any]:
    return {"sizes": sizes(chosen.dim, "--dim"), "shapes": shapes(chosen.shape, "--shape")}


def size_bytes(text: str) -> int:
    """
    >>> size_bytes("500M")
    500000000
    """
    try:
        return int(_positive(text[:-1]) * _UNITS[text[-1:].lower()])
    except (ValueError, KeyError):
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write it as 500M or 2G") from None


def age_s(text: str) -> float:
    """
    >>> age_s("12h")
    43200.0
    """
    try:
        return _positive(text[:-1]) * _SECONDS[text[-1:].lower()]
    except (ValueError, KeyError):
        raise argparse.ArgumentTypeError(f"{text!r} is no age; write it as 30d or 12h") from None


def _positive(text: str) -> float:
    """Of what is below 0, or no number, everything would be too much."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError
    return value
