"""Examples in Markdown: what a document shows, and whether running it prints that.

python     a program, complete in itself
sh         commands for bash; the first that fails fails the block
console    lines `$ command`, each with what it prints; a status other than 0 is shown by a following `$ echo $?`
output     what the python or sh block before it prints

`...` stands for any text in a line, and a line of `...` for any lines; numbers need not be equal. A block that cannot run has
`<!-- not run: why -->` on the line above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

RUN = ("python", "sh", "console")
SHOWN = ("output", "text", "toml", "dockerfile", "c++", "csharp")  # nothing to run
_FENCE = re.compile(r"^```([\w+-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXCUSE = re.compile(r"<!-- not run: (.+) -->\n\Z")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
END = "-- end of command --"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block. ``line`` is that of the fence, from 1; ``output`` what should be printed, None where nothing is shown."""

    line: int
    language: str
    text: str
    output: str | None = None
    excuse: str = ""


def blocks(document: str) -> list[Block]:
    """All blocks but outputs, which are part of the block before them.

    >>> blocks("```python\\nprint(1)\\n```\\n\\n```output\\n1\\n```\\n")
    [Block(line=1, language='python', text='print(1)\\n', output='1\\n', excuse='')]
    """
    found: list[Block] = []
    for match in _FENCE.finditer(document):
        line = document.count("\n", 0, match.start()) + 1
        if match[1] == "output":
            last = found.pop() if found else None
            if last is None or last.language not in ("python", "sh") or last.output is not None:
                raise ValueError(f"line {line}: an output without a python or sh block before it")
            found.append(Block(line=last.line, language=last.language, text=last.text, output=match[2], excuse=last.excuse))
            continue
        excuse = _EXCUSE.search(document, 0, match.start())
        found.append(Block(line=line, language=match[1], text=match[2], excuse=excuse[1] if excuse else ""))
    return found


def commands(block: Block) -> list[tuple[str, str]]:
    """Each command of a console block with what it prints."""
    found: list[tuple[str, str]] = []
    for line in block.text.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].rstrip("\n"), ""))
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + line)
        else:
            raise ValueError(f"line {block.line}: a console block begins with a command")
    return found


def script(block: Block) -> str:
    """Bash for a console block: commands with a line between what they print, each with the status of the one before in `$?`."""
    lines = [f'{command}\n_status=$?; printf "\\n{END} %d\\n" $_status; (exit $_status)\n' for command, _ in commands(block)]
    return "".join(lines)


def problems(block: Block, printed: str) -> Iterator[str]:
    """What a console block's script printed, command by command: what differs, and which failed without a word."""
    parts = re.split(rf"\n{END} (\d+)\n", printed)
    shown = commands(block)
    for number, (command, wanted) in enumerate(shown):
        if 2 * number + 1 >= len(parts):
            yield f"$ {command}: not reached"
            return
        got, status = parts[2 * number], parts[2 * number + 1]
        told = number + 1 < len(shown) and shown[number + 1][0] == "echo $?"
        if status != "0" and not told:
            yield f"$ {command}: ended with {status}\n{got}"
        if not alike(wanted, got):
            yield f"$ {command}\nshown:\n{wanted}\nprinted:\n{got}"


def alike(shown: str, printed: str) -> bool:
    """
    >>> alike("took 3.5 ms\\n...\\nend\\n", "took 12 ms\\na\\nb\\nend\\n"), alike("a ... c\\n", "a b c\\n"), alike("a\\n", "b\\n")
    (True, True, False)
    """
    pattern = ""
    for line in _plain(shown).splitlines():
        pattern += r"(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
    return re.fullmatch(pattern, _plain(printed) + "\n" if printed.strip() else "") is not None


def _plain(text: str) -> str:
    lines = [" ".join(line.split()) for line in _COLOUR.sub("", text).strip().splitlines()]
    return _NUMBER.sub("0", "\n".join(lines))
