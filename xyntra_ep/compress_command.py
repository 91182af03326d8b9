"""The command `xyntra compress`: its arguments, and what it prints."""

from __future__ import annotations

import argparse
from pathlib import Path

from xyntra_ep.arguments import Parser, add_dims, add_feeds, add_options, given_feeds, given_sizes, pairs
from xyntra_ep.shown import fields_of, progress_line, show

TEXT = "write a model whose matrices are products of two smaller ones, where that costs little and pays"
_AUTO = "auto"
_NOTHING_PAYS = 1


def add_arguments(parser: Parser) -> None:
    parser.add_argument("model", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the model to write")
    parser.add_argument("--rank", type=_rank, metavar="N", help="of all matrices; auto: the least within --error (auto)")
    error = "the part that a matrix may lose: 1e-2 with --rank auto, any part with a rank, unless given"
    parser.add_argument("--error", type=float, metavar="PART", help=error)
    parser.add_argument("--seed", type=int, default=0, help="of the feeds that are made up")
    parser.add_argument("--force", action="store_true", help="write over a file that is there")
    add_feeds(parser)
    add_dims(parser, "of the inputs that are made up")
    add_options(parser, "as in a session")


def run(chosen: argparse.Namespace) -> int:
    """1 where nothing pays, and nothing was written."""
    from xyntra_ep.diagnostics.compressed.compress import compress

    with progress_line() as line:
        found = compress(
            chosen.model,
            chosen.output,
            rank=chosen.rank,
            error=chosen.error,
            feeds=given_feeds(chosen, "compress"),
            seed=chosen.seed,
            options=pairs(chosen.option, "-O"),
            force=chosen.force,
            hear=line,
            **given_sizes(chosen),
        )
    show(found, fields_of(found), chosen)
    return 0 if found.path is not None else _NOTHING_PAYS


def _rank(text: str) -> int | None:
    """
    >>> _rank("auto"), _rank("16")
    (None, 16)
    """
    if text == _AUTO:
        return None
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no rank; write a number, or auto") from None
