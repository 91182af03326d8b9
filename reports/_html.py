"""Pages: the Markdown that reports write as HTML, pictures in it, and the frame around."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from xyntra_reports._figure import SCHEME, inline
from xyntra_reports.registry import Picture, Section

CSS = f"""{SCHEME}
:root{{color-scheme:light dark}}
*{{box-sizing:border-box}}
body{{margin:0 auto;max-width:90rem;padding:1rem 1.25rem 4rem;background:var(--paper);color:var(--ink);
 font:15px/1.5 system-ui,sans-serif}}
a{{color:var(--c0)}}
nav{{display:flex;flex-wrap:wrap;gap:.25rem 1rem;padding:.5rem 0;border-bottom:1px solid var(--grid);margin-bottom:1rem}}
h1{{font-size:1.6rem;margin:.6rem 0}} h2{{font-size:1.25rem;margin:2.2rem 0 .5rem;border-bottom:1px solid var(--grid)}}
h3{{font-size:1.02rem;margin:1.4rem 0 .4rem}}
p{{max-width:76rem}} p,figcaption{{overflow-wrap:anywhere}}
.muted,figcaption{{color:var(--muted);font-size:.87rem}}
/* a shadow at the side where a table goes on */
.wide{{overflow-x:auto;background:linear-gradient(to right,var(--paper) 30%,transparent) 0 0/2.5rem 100% local,
 linear-gradient(to left,var(--paper) 30%,transparent) 100% 0/2.5rem 100% local,
 linear-gradient(to right,var(--grid),transparent) 0 0/.9rem 100% scroll,
 linear-gradient(to left,var(--grid),transparent) 100% 0/.9rem 100% scroll;background-repeat:no-repeat}}
table{{border-collapse:collapse;font-size:.84rem;font-variant-numeric:tabular-nums;margin:.6rem 0}}
th,td{{padding:.22rem .5rem;border-bottom:1px solid var(--grid);text-align:right;vertical-align:top;white-space:nowrap}}
th{{color:var(--muted);font-weight:600}} td.l,th.l{{text-align:left}}
td.l{{white-space:normal;overflow-wrap:break-word;min-width:4.5rem;max-width:30rem}} td.l:first-child{{min-width:9rem}}
tbody tr:hover{{background:color-mix(in srgb,var(--grid) 35%,transparent)}}
figure{{margin:1rem 0}} figure svg{{width:100%;height:auto;max-width:62rem}}
g.box:hover rect{{stroke:var(--ink)}}
code{{font-size:.88em}}
@media print{{nav,.print-not{{display:none}} body{{max-width:none}} h2{{break-before:auto}} figure,table{{break-inside:avoid}}}}
"""


def page(title: str, body: str, *, links: Sequence[tuple[str, str]] = (), style: str = "style.css") -> str:
    """`links`: text and address of the bar above."""
    bar = "".join(f'<a href="{escape(address)}">{escape(text)}</a>' for text, address in links)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f'<title>{escape(title)}</title>\n<link rel="stylesheet" href="{escape(style)}">\n</head>\n<body>\n'
        f"<nav>{bar}</nav>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def section(title: str, content: Section, prefix: str, files: str) -> str:
    """`files`: the folder of the pictures as files, from the page."""
    parts = [f"<h3>{escape(title)}</h3>"] if title else []
    parts += [figure(picture, f"{prefix}-{i}", files) for i, picture in enumerate(content.pictures)]
    parts.append(from_markdown(content.text))
    return "\n".join(filter(None, parts))


def figure(picture: Picture, prefix: str, files: str) -> str:
    """Inline, so that it follows the page and its parts can be pointed at; as files for use elsewhere."""
    name = slug(picture.name)
    formats = [("SVG", f"{name}.svg"), *([("PNG", f"{name}.png")] if picture.png else [])]
    links = " ".join(f'<a class="print-not" href="{files}/{file}">{text}</a>' for text, file in formats)
    drawn = inline(picture.svg, prefix).replace("<svg ", f'<svg role="img" aria-label="{escape(picture.alt)}" ', 1)
    return f"<figure>{drawn}<figcaption>{links}</figcaption></figure>"


def from_markdown(text: str) -> str:
    """Paragraphs, tables, `code` and **bold**, which is what reports write. Everything else is text, markup included.

    >>> from_markdown("a <b> `c`")
    '<p>a &lt;b&gt; <code>c</code></p>'
    """
    blocks = [block for block in text.strip().split("\n\n") if block.strip()]
    return "\n".join(_table(block.splitlines()) if block.startswith("|") else f"<p>{_spans(block)}</p>" for block in blocks)


def _table(lines: Sequence[str]) -> str:
    header, rule, *rows = (list(_cells(line)) for line in lines)
    kinds = [' class="l"' if cell == ":--" else "" for cell in rule]

    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}{kind}>{_spans(c)}</{tag}>" for c, kind in zip(cells, kinds, strict=True)) + "</tr>"

    body = "\n".join(row(cells, "td") for cells in rows)
    return f'<div class="wide"><table><thead>{row(header, "th")}</thead>\n<tbody>{body}</tbody></table></div>'


def _cells(line: str) -> Iterator[str]:
    """Between bars that no backslash makes text."""
    yield from (cell.strip() for cell in re.findall(r"((?:\\.|[^\\|])*)\|", line.strip()[1:]))


def _spans(text: str) -> str:
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(escape(match.group(1)))
        return f"\0{len(kept) - 1}\0"

    text = re.sub(r"\\([\\|<`*(_])", keep, text.replace("\0", ""))
    text = escape(text)
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"\0(\d+)\0", lambda match: kept[int(match.group(1))], text)


def slug(text: str) -> str:
    """A file name that every system takes.

    >>> slug("linear/m4 b1 s128: x")
    'linear-m4-b1-s128-x'
    """
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.") or "unnamed"
