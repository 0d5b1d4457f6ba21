"""``make papers``: every figure and table of the founding papers, redone.

build/papers/index.html             one self-contained page with all pictures
docs/gallery.md                     the verdicts as a page of the manual
src/dptally/web/papers.json         what ``dptally serve`` shows
"""

from __future__ import annotations

import base64
import html
import json
import time
from pathlib import Path

import adp
import gdpt
import mironov
import zcdp_notes
from exhibit import BUILD, Exhibit, Paper, Table

import dptally as dp

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 Georgia, serif; color: #111; background: #fff; overflow-wrap: break-word;
       max-width: 74rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3, th, nav, .verdict { font-family: Helvetica, Arial, sans-serif; }
h2 { border-bottom: 2px solid #111; margin-top: 3rem; } h3 { margin-top: 2.2rem; }
img { max-width: 100%; height: auto; border: 1px solid #ddd; }
table { border-collapse: collapse; font-size: 13px; margin: 0.7rem 0; display: block; overflow-x: auto; }
th, td { border: 1px solid #ccc; padding: 0.2rem 0.5rem; text-align: right; }
th:first-child, td:first-child { text-align: left; }
.short { white-space: nowrap; } th { background: #f2f2f2; } caption { text-align: left; font-style: italic; }
dt { font-weight: bold; } dd { margin: 0 0 0.5rem 1.5rem; } code { font-size: 90%; }
.verdict { font-size: 13px; padding: 0.1rem 0.5rem; border: 1px solid #111; border-radius: 3px; }
.unsafe { background: #111; color: #fff; } .corrected, .not { background: #ddd; }
"""

SAID = (
    ("The paper", "paper"),
    ("What we get", "ours"),
    ("Where they differ, and why", "differs"),
    ("Chosen by us", "chosen"),
)

INTRODUCTION = """
<p>dptally grew out of these papers and lecture notes. This page redoes every figure and table that they
contain, from the library's public names. Where a document is wrong, the page says so, and says what is right.
Formulas that are kept only to show what a document claims live in the scripts beside this page and are named
"as printed", "misplaced" or "exchanged"; the library does not have them. The documents themselves are not
reprinted here: the pictures are ours.</p>
<p>Verdicts: <b>confirmed</b>, we get the same; <b>corrected</b>, the finding stands but a statement in it
does not; <b>unsafe</b>, following it as printed claims privacy that is not there; <b>not reproducible</b>,
its parts contradict each other.</p>
"""


def badge(exhibit: Exhibit) -> str:
    return f'<span class="verdict {exhibit.verdict.split()[0]}">{exhibit.verdict}</span>'


def shown(text: str) -> str:
    """Our own text: its few tags stay, its inequalities are spelt."""
    return text.replace("<=", "&le;").replace(">=", "&ge;")


def cell_html(text: str) -> str:
    """A number stays on one line, also at its minus sign."""
    short = ' class="short"' if len(text) < 16 else ""
    return f"<td{short}>{shown(text)}</td>"


def table_html(table: Table) -> str:
    caption = f"<caption>{shown(table.caption)}</caption>" if table.caption else ""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table.head)
    rows = "".join("<tr>" + "".join(map(cell_html, row)) + "</tr>" for row in table.rows)
    return f"<table>{caption}<tr>{head}</tr>{rows}</table>"


def exhibit_html(exhibit: Exhibit) -> str:
    parts = [f'<section id="{exhibit.name}"><h3>{exhibit.title} {badge(exhibit)}</h3>']
    if exhibit.picture is not None:
        data = base64.b64encode(exhibit.png()).decode("ascii")
        parts.append(f'<img alt="{html.escape(exhibit.title)}" src="data:image/png;base64,{data}">')
    said = ((name, getattr(exhibit, field)) for name, field in SAID)
    parts.append("<dl>" + "".join(f"<dt>{name}</dt><dd>{shown(text)}</dd>" for name, text in said if text) + "</dl>")
    parts += [table_html(table) for table in exhibit.tables]
    return "\n".join([*parts, "</section>"])


def page(papers: tuple[Paper, ...]) -> str:
    contents = "".join(
        f'<li><a href="#{paper.name}">{paper.title}</a><ul>'
        + "".join(f'<li><a href="#{e.name}">{e.title}</a> {badge(e)}</li>' for e in paper.exhibits)
        + "</ul></li>"
        for paper in papers
    )
    body = "\n".join(
        f'<h2 id="{paper.name}">{paper.title}</h2><p><i>{paper.source}</i></p><p>{paper.summary}</p>'
        + "\n".join(exhibit_html(e) for e in paper.exhibits)
        for paper in papers
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>The founding papers, reproduced and "
        f"corrected</title><style>{STYLE}</style></head><body><h1>The founding papers, reproduced and "
        f"corrected</h1>{INTRODUCTION}<nav><ul>{contents}</ul></nav>{body}<hr><p>dptally "
        f"{dp.__version__}</p></body></html>\n"
    )


ROOT = Path(__file__).resolve().parent.parent


def kept(found: tuple[Paper, ...]) -> str:
    """All but the pictures, as JSON."""
    documents = [
        {
            "name": paper.name,
            "title": paper.title,
            "source": paper.source,
            "summary": shown(paper.summary),
            "exhibits": [
                {
                    "name": e.name,
                    "title": e.title,
                    "verdict": e.verdict,
                    "kind": e.verdict.split()[0],
                    "said": [[name, shown(getattr(e, field))] for name, field in SAID if getattr(e, field)],
                    "tables": [table_html(table) for table in e.tables],
                }
                for e in paper.exhibits
            ],
        }
        for paper in found
    ]
    return json.dumps(documents, indent=1, ensure_ascii=False) + "\n"


def manual(found: tuple[Paper, ...]) -> str:
    """The verdicts as a page of the manual; the pictures stand on the page beside it."""
    lines = [
        "# The founding papers, reproduced and judged",
        "",
        "Every figure and table of the documents that dptally grew out of, redone with its public names",
        "(`make papers` writes this page). The manual's site has <a href='papers.html'>the same with all pictures",
        "and tables</a>; `dptally serve` shows it, too.",
        "",
        "**confirmed**: we get the same. **corrected**: the finding stands, a statement in it does not.",
        "**unsafe**: followed as printed it claims privacy that is not there. **not reproducible**: its parts",
        "contradict each other.",
    ]
    for paper in found:
        lines += ["", f"## {paper.title}", "", f"*{paper.source}*", "", shown(paper.summary), ""]
        lines += ["| exhibit | verdict | where it differs |", "|---|---|---|"]
        for e in paper.exhibits:
            differs = " ".join((shown(e.differs) or "-").split()).replace("|", "\\|")
            lines.append(f"| {e.title} | **{e.verdict}** | {differs} |")
    return "\n".join(lines) + "\n"


def papers() -> tuple[Paper, ...]:
    return tuple(module.paper() for module in (adp, zcdp_notes, mironov, gdpt))


def main() -> None:
    start = time.perf_counter()
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / "index.html"
    found = papers()
    path.write_text(page(found), encoding="utf-8")
    (ROOT / "docs" / "gallery.md").write_text(manual(found), encoding="utf-8")
    (ROOT / "src" / "dptally" / "web" / "papers.json").write_text(kept(found), encoding="utf-8")
    print(f"{path} ({path.stat().st_size / 1e6:.1f} MB, {time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
