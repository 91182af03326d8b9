"""The file `fusion.toml`: options of a project, under `[provider]`. It is read where the process works, or where XYNTRA_CONFIG
says, and only if nobody else can have written it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from xyntra_ep import knobs
from xyntra_ep.errors import ConfigError
from xyntra_ep.trusted_file import Distrusted, read_trusted

CONFIG_FILE = "fusion.toml"
_MOST_CONFIG_BYTES = 1 << 20
_NOT_IN_FILES = ("compiled_digest",)  # native code reads it where there is no Python, and no file of options
# Code comes from there, or a file is written there: a downloaded folder with models must not be able to say so.
_NOT_FOUND = ("cache_dir", "rules", "trace")


@dataclass(frozen=True, slots=True)
class OptionsFile:
    path: Path
    values: dict[str, str]
    unknown: tuple[str, ...]  # names that nobody reads


def read_file(named: Path | None, known: Sequence[str], check_name: Callable[[str, str], None]) -> OptionsFile | None:
    """The file that is ``named``, or found where the process works; None where there is none. ``known``: names of options, and
    ``check_name`` raises ConfigError for a name that is none of them, with where it stands. Raises ConfigError for a file that
    cannot be used."""
    path = named if named is not None else Path.cwd() / CONFIG_FILE
    try:
        table = tomllib.loads(read_trusted(path, most_bytes=_MOST_CONFIG_BYTES).decode())
    except (FileNotFoundError, NotADirectoryError):
        if named is None:
            return None
        raise ConfigError(f"no file {named}", where=knobs.variable_of("config"), hint="create it or unset it") from None
    except Distrusted as error:
        if named is None:  # merely found: who wrote it decides about sessions of others no more than about code
            return None
        hint = "make it your own, or unset it"
        raise ConfigError(f"somebody else can have written it ({error})", where=str(path), hint=hint) from None
    except OSError as error:
        raise ConfigError(f"cannot be read ({error.strerror})", where=str(path), hint="correct it or take it away") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot be read ({error})", where=str(path), hint="correct it or take it away") from None
    for name in table:
        if name in known:
            raise ConfigError(f"{name!r} stands outside a table", where=str(path), hint="put it under [provider]")
    provider = table.get("provider", {})
    if not isinstance(provider, dict):
        raise ConfigError("'provider' is not a table", where=str(path), hint="write [provider] and options under it")
    for name in provider:
        check_name(name, str(path))
    for name in _NOT_IN_FILES:
        if name in provider:
            hint = f"give it as a provider option, or set {knobs.variable_of(name)}"
            raise ConfigError(f"{name} is not taken from a file", where=str(path), hint=hint)
    for name in _NOT_FOUND if named is None else ():
        if name in provider:
            raise ConfigError(
                f"{name} is not taken from a file that was merely found",
                where=str(path),
                hint=f"set XYNTRA_CONFIG to the file, or {knobs.variable_of(name)}",
            )
    unknown = tuple(name for name in table if name != "provider")
    return OptionsFile(path, {name: str(value) for name, value in provider.items()}, unknown)


def unread_file() -> str:
    """Why `fusion.toml` in the working directory is not read though it is there; "" where it is, or nobody looks for it."""
    if knobs.current().config is not None:
        return ""
    try:
        read_trusted(Path(CONFIG_FILE), most_bytes=_MOST_CONFIG_BYTES)
    except Distrusted as error:
        return f"{CONFIG_FILE} is not read, because somebody else can have written it: {error}"
    except OSError:
        pass
    return ""
