"""What holds of every site that `bench report --html` writes."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

NOTHING_TO_FETCH = ("script", "img", "iframe", "object", "embed", "source", "video", "audio")


class Reader(HTMLParser):
    """Collects tags, addresses and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = dict(attrs)
        self.addresses += [value for name in ("href", "xlink:href", "src") if (value := found.get(name))]
        if found.get("id"):
            self.ids.append(found["id"] or "")

    def handle_data(self, data: str) -> None:
        self.text += data


def read(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text())
    return reader


def problems(site: Path) -> list[str]:
    """Of all files of a site: addresses that lead nowhere or out of it, pictures that are not well-formed. Empty is good."""
    return [
        f"{path.relative_to(site)}: {what}"
        for path in sorted(file for file in site.rglob("*") if file.is_file())
        for what in {".html": _of_page, ".svg": _of_svg, ".css": _of_style, ".png": _of_png}[path.suffix](path)
    ]


def _of_page(path: Path) -> list[str]:
    reader, text = read(path), path.read_text()
    found = [f"<{tag}> fetches" for tag in NOTHING_TO_FETCH if tag in reader.tags]
    found += [f"{identity} stands twice" for identity in set(reader.ids) if reader.ids.count(identity) > 1]
    for address in reader.addresses:
        file, _, identity = address.partition("#")
        if re.match(r"[a-z]+:|//", address):
            found.append(f"{address} leads out of the site")
        elif file and not (path.parent / unquote(file)).is_file():
            found.append(f"{address} leads nowhere")
        elif identity and identity not in (read(path.parent / unquote(file)).ids if file else reader.ids):
            found.append(f"{address} leads to no part of it")
    for drawing in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        found += _of_drawing(drawing)
    return found + _of_style(path)


def _of_svg(path: Path) -> list[str]:
    return [*_of_drawing(path.read_text()), *_of_style(path)]


def _of_drawing(text: str) -> list[str]:
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        return [f"not well-formed: {error}"]
    addresses = (value for part in root.iter() for name, value in part.attrib.items() if name.rpartition("}")[2] == "href")
    return [f"{address} is not in the picture" for address in addresses if not address.startswith("#")]


def _of_style(path: Path) -> list[str]:
    text = path.read_text()
    found = [address for address in re.findall(r"url\(['\"]?([^)'\"]*)", text) if not address.startswith("#")]
    return [f"{what} is fetched by a style" for what in (*found, *re.findall(r"@import[^;]*", text))]


def _of_png(path: Path) -> list[str]:
    return [] if path.read_bytes().startswith(b"\x89PNG\r\n") else ["not a PNG file"]
