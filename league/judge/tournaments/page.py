"""The report of a tournament as one HTML file that needs nothing else: no script, no font, no address."""

from __future__ import annotations

from html import escape

from league.html_document import html_document
from league.judge.tournaments.tournament_report import TournamentReport, name_of_test, table_of, tournament_head

WIDTH, ROW = 520, 26
"""Size of the plot of intervals, in CSS pixels."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c1f23; --muted: #5b636d; --ground: #fff; --line: #d5dae0; --mark: #1f5fbf; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --muted: #a5adb8; --ground: #16181b; --line: #3a4048; --mark: #7fb2ff; }
}
body { color: var(--ink); background: var(--ground); font: 16px/1.5 system-ui, sans-serif; margin: 2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; } caption { text-align: left; color: var(--muted); }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th.name, td.name { text-align: left; } .won { color: #06210d; } .lost { color: #2b0808; }
svg text { fill: var(--ink); font-size: 13px; } svg line { stroke: var(--mark); stroke-width: 2; }
svg circle { fill: var(--mark); } svg .axis { stroke: var(--line); }
"""


def tournament_page(report: TournamentReport) -> str:
    """The whole page."""
    title = tournament_head(report)
    parts = (
        ("Standings", _standings(report)),
        ("Ratings with 95 % intervals", _plot(report)),
        ("Scores", _scores(report)),
        *((("Sequential tests", _tests(report)),) if report.tests else ()),
    )
    sections = "".join(
        f'<h2>{name}</h2><div class="wide" tabindex="0" role="region" aria-label="{name}">{part}</div>'
        for name, part in parts
    )
    body = f"""<main>
<h1>Tournament</h1><p>{escape(title)}</p>
{sections}
<h2>Contenders</h2><ul>{_contenders(report)}</ul>
</main>"""
    return html_document(title, body, style=STYLE)


def _standings(report: TournamentReport) -> str:
    heads, rows = table_of(report)
    head = "".join(f'<th scope="col"{_name(column)}>{escape(text)}</th>' for column, text in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(f"<td{_name(column)}>{escape(cell)}</td>" for column, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f"<table><caption>Highest rating first</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _name(column: int) -> str:
    return ' class="name"' if column == 1 else ""


def _plot(report: TournamentReport) -> str:
    """A row for each rated contender: its name, its interval as a line, its rating as a dot."""
    rated = [(row.name, row.rating) for row in report.standings if row.rating is not None]
    if not rated:
        return "<p>No game counted.</p>"
    low = min(rating.low for _, rating in rated)
    high = max(rating.high for _, rating in rated)
    scale = WIDTH / (high - low or 1.0)
    left = 9 * max(len(name) for name, _ in rated) + 10
    lines = []
    for number, (name, rating) in enumerate(rated):
        y = ROW * number + ROW / 2
        x1, x, x2 = (left + (value - low) * scale for value in (rating.low, rating.value, rating.high))
        lines.append(
            f'<text x="0" y="{y + 4:.1f}">{escape(name)}</text>'
            f'<line class="axis" x1="{left}" x2="{left + WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y:.1f}" y2="{y:.1f}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
        )
    height, ends = ROW * len(rated), f"{low:.4g} to {high:.4g}"
    return (
        f'<svg role="img" aria-label="Ratings from {ends}" width="{left + WIDTH + 10}" height="{height + 20}">'
        + "".join(lines)
        + f'<text x="{left}" y="{height + 14}">{low:.4g}</text>'
        + f'<text x="{left + WIDTH}" y="{height + 14}" text-anchor="end">{high:.4g}</text></svg>'
    )


def _scores(report: TournamentReport) -> str:
    """Score of each row against each column, coloured from red to green."""
    numbers = "".join(f'<th scope="col">{number}</th>' for number in range(1, len(report.standings) + 1))
    rows = []
    for number, (row, scores) in enumerate(zip(report.standings, report.scores, strict=True), 1):
        cells = "".join(_score(score) for score in scores)
        rows.append(f'<tr><th scope="row" class="name">{number} {escape(row.name)}</th>{cells}</tr>')
    caption = "<caption>Score of the row against the column</caption>"
    return f"<table>{caption}<thead><tr><td></td>{numbers}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _score(score: float | None) -> str:
    if score is None:
        return "<td></td>"
    hue, kind = (130, "won") if score >= 0.5 else (0, "lost")
    return f'<td class="{kind}" style="background: hsl({hue} 60% {92 - 44 * abs(score - 0.5):.0f}%)">{score:.2f}</td>'


def _tests(report: TournamentReport) -> str:
    """A line for each pairing with a sequential test."""
    rows = "".join(
        f'<tr><th scope="row" class="name">{escape(name_of_test(row))}</th><td>{row.games:,}</td>'
        f'<td class="name">{escape(row.test.text)}</td></tr>'
        for row in report.tests
    )
    head = '<tr><th scope="col" class="name">pairing</th><th scope="col">games</th><th scope="col">test</th></tr>'
    return f"<table><caption>Each ends its pairing</caption><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _contenders(report: TournamentReport) -> str:
    return "".join(
        f"<li><b>{escape(row.name)}</b>: {escape(row.reason)}. <code>{row.identity[:16]}</code></li>"
        for row in report.standings
    )
