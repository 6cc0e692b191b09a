"""A table of heads and rows as text in columns, as Markdown, as CSV and as HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class TextTable:
    """Heads [C] above rows of C cells.

    Fields:
      left: columns whose text begins at the left; numbers end at the right.
      forms: how numbers of the columns are written for people, as ".3f"; as they are where there is none.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[object]]
    left: Sequence[int] = (0,)
    forms: Sequence[str] = ()

    def lines(self) -> list[str]:
        """The heads and the rows, each as one line; a column is as wide as its longest cell."""
        shown = [[_shown(cell, form) for cell, form in zip(row, self._all_forms(), strict=True)] for row in self.rows]
        table = [list(self.heads), *shown]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        return [
            "  ".join(
                f"{cell:{'<' if column in self.left else '>'}{width}}"
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in table
        ]

    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines())

    def html(self) -> str:
        """A table element."""
        head = "".join(f'<th scope="col">{escape(head)}</th>' for head in self.heads)
        cells = (
            "".join(f"<td>{escape(_shown(cell, form))}</td>" for cell, form in zip(row, self._all_forms(), strict=True))
            for row in self.rows
        )
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def markdown(self) -> list[str]:
        """The lines of a table in Markdown, in which text of a cell is text, and code of it is code."""
        forms = self._all_forms()
        rows = [[_shown(cell, form) for cell, form in zip(row, forms, strict=True)] for row in self.rows]
        ends = ["---" if column in self.left else "---:" for column in range(len(self.heads))]
        head, *lines = (f"| {' | '.join(map(_cell, row))} |" for row in (self.heads, *rows))
        return [head, f"|{'|'.join(ends)}|", *lines]

    def csv(self) -> str:
        """Comma-separated values; a text that a spreadsheet would take for a formula gets an apostrophe before it."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.heads)
        writer.writerows([_inert(cell) for cell in row] for row in self.rows)
        return text.getvalue()

    def _all_forms(self) -> list[str]:
        return [*self.forms, *[""] * (len(self.heads) - len(self.forms))]


def _shown(cell: object, form: str) -> str:
    return "" if cell is None else f"{cell:{form}}" if form and not isinstance(cell, str) else str(cell)


def _cell(text: str) -> str:
    plain = text.replace("|", "\\|").replace("\n", " ")
    return plain if "`" in plain else plain.replace("<", "&lt;")


def _inert(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@") else cell
