"""`python -m xyntra_zoo list | build NAME [--weights FILE | --weights hub] | prune`."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from pathlib import Path

from xyntra_zoo.cache import model_path, prune
from xyntra_zoo.registry import RegistryError, zoo
from xyntra_zoo.weights import WeightsError, download


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m xyntra_zoo", description=__doc__)
    parser.add_argument("--version", action="version", version=f"zoo {_version()}")
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("list", help="names and families", epilog="example: python -m xyntra_zoo list")
    build = commands.add_parser(
        "build", help="build a model and print its path", epilog="example: python -m xyntra_zoo build bert-base"
    )
    build.add_argument("name", nargs="+")
    build.add_argument("--weights", help="a safetensors file, or 'hub' for the model's own checkpoint")
    commands.add_parser("prune", help="delete models built by older sources", epilog="example: python -m xyntra_zoo prune")
    arguments = parser.parse_args()
    if arguments.command is None:
        parser.print_help()
        return 2
    try:
        match arguments.command:
            case "list":
                for model in zoo:
                    print(f"{model.name:24} {model.family}")
            case "build":
                for name in arguments.name:
                    print(model_path(zoo[name], weights=_weights(name, arguments.weights)))
            case "prune":
                for path in prune():
                    print(path)
    except (RegistryError, WeightsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _version() -> str:
    try:
        return importlib.metadata.version("xyntra-ep")
    except importlib.metadata.PackageNotFoundError:
        return "of a checkout that is not installed"


def _weights(name: str, given: str | None) -> Path | None:
    if given != "hub":
        if given and not Path(given).is_file():
            raise WeightsError(f"{given}: no such file. give a safetensors file, or 'hub'")
        return Path(given) if given else None
    checkpoint = zoo[name].checkpoint
    if checkpoint is None:
        raise WeightsError(f"{name}: has no checkpoint of its own. give a file")
    return download(checkpoint)


if __name__ == "__main__":
    sys.exit(main())
