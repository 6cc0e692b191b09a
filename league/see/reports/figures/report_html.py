"""The static report as one HTML file: plots, styles and data inlined, so that it opens without a network."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from league.html_document import PICTURES, SCRIPTS, html_document, json_element
from league.see.reports.figures.figures_page import Report

ASSETS = Path(__file__).parents[2] / "page" / "assets"
MAIN = "plots/report.js"
STYLES = ("vendor/uplot/uPlot.min.css", "plots/plots.css", "plots/report.css")

_IMPORT = re.compile(r"^import (?:(\w+)|\{([^}]*)\}) from '([^']+)';\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:function|const|class) (\w+))", re.MULTILINE)
_DEFAULT = re.compile(r"^export \{ (\w+) as default \};\n?", re.MULTILINE)


def report_html(report: Report, *, before: str = "") -> str:
    """The whole document.

    Args:
      before: HTML of a section that stands before the figures.
    Raises:
      ValueError: an asset is written in a way that cannot be inlined.
    """
    styles = "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in STYLES)
    body = f"""{before}
<main id="report"><noscript>The plots of this report need JavaScript. The Markdown of it does not.</noscript></main>
{json_element("report-data", report.to_json())}
<script>
{bundle(MAIN)}
const data = JSON.parse(document.getElementById("report-data").textContent);
modules["{MAIN}"].draw(document.getElementById("report"), data);
</script>"""
    title = "Report on " + ", ".join(run.name for run in report.runs)
    return html_document(title, body, style=styles, allows=(SCRIPTS, PICTURES))


def bundle(main: str) -> str:
    """A script of the module `main` and all that it imports, each in a function of its own.

    Args:
      main: path below the assets.
    Raises:
      ValueError: a module has an import or export of another form than these modules use, or ends the script element.
    """
    ordered: list[str] = []
    _visit(main, ordered, ())
    return "\n".join(["const modules = {};", *(_wrapped(name) for name in ordered)])


def _visit(name: str, ordered: list[str], above: tuple[str, ...]) -> None:
    """Append a module behind those that it imports."""
    if name in above:
        raise ValueError(f"{name} imports itself by way of {', '.join(above)}")
    if name in ordered:
        return
    for found in _IMPORT.finditer(_source(name)):
        _visit(_resolved(name, found[3]), ordered, (*above, name))
    ordered.append(name)


def _wrapped(name: str) -> str:
    """A module as a function's body that returns what the module exports."""
    source = _source(name)
    if "</script" in source.lower():
        raise ValueError(f"{name} cannot be inlined: it would end the script element")
    default = _DEFAULT.search(source)
    if default is not None:  # of a library; what else looks like an export there stands in its comments
        return _function(name, _DEFAULT.sub("", source), [f"default: {default[1]}"])

    def imported(found: re.Match[str]) -> str:
        module = f'modules["{_resolved(name, found[3])}"]'
        if found[1]:
            return f"const {found[1]} = {module}.default;\n"
        return f"const {{{found[2].replace(' as ', ': ')}}} = {module};\n"

    body = _EXPORT.sub("", _IMPORT.sub(imported, source))
    if re.search(r"^(?:import|export)\b", body, re.MULTILINE):
        raise ValueError(f"{name} cannot be inlined: write an import on one line, and `export` before what it exports")
    return _function(name, body, _EXPORT.findall(source))


def _function(name: str, body: str, exported: Iterable[str]) -> str:
    return f'modules["{name}"] = (() => {{\n{body}\nreturn {{{", ".join(exported)}}};\n}})();'


def _resolved(name: str, target: str) -> str:
    """The path below the assets that a module names by a relative one."""
    return (ASSETS / name).parent.joinpath(target).resolve().relative_to(ASSETS.resolve()).as_posix()


def _source(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")
