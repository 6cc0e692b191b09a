"""`league lineage`: the lineage of a run for people, as JSON, and as a graph in the DOT language."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from league.core.matchmaking.roles import EXPLOITER_ROLES, MAIN_ROLE
from league.core.metagame.lineage import Lineage, LineageNode, OpponentGames, lineage_of
from league.core.state.events import EVENTS, Event
from league.envs.text.number_text import number_text
from league.errors import LeagueError, nearest
from league.store.journal_reader import JournalReader
from league.store.run_folder import RunFolder
from league.wording import counted

MAX_OPPONENTS, MAX_OPPONENTS_IN_ALL = 3, 12
_EDGES = {"trained": "solid", "reset": "dashed", "transplant": "bold"}
_ROLES = (MAIN_ROLE, *EXPLOITER_ROLES)
_COLOURS = ("lightblue", "lightsalmon", "palegreen", "khaki", "plum", "lightgrey")
"""Of the roles above in their order, as on the page, and then of others."""


@dataclass(frozen=True)
class LineageReport:
    """The lineage of a run, or the line of ancestors of one snapshot. run: its folder; of: that snapshot, else None."""

    run: str
    lineage: Lineage
    of: str | None = None

    def to_json(self) -> str:
        """As one JSON object; of a line of ancestors with what all of it has met."""
        line = (
            {}
            if self.of is None
            else {"of": self.of, "opponent_mix": [asdict(met) for met in self.lineage.opponent_mix]}
        )
        return json.dumps({"run": self.run, **line, **asdict(self.lineage)})

    def text(self) -> str:
        """A tree: every snapshot below the one that it descends from."""
        if not self.lineage.descents:
            return f"{self.run}: no snapshot yet"
        children: dict[str | None, list[LineageNode]] = {}
        for descent in self.lineage.descents:
            children.setdefault(descent.parent, []).append(descent)
        whose = "" if self.of is None else f", {self.of} and its ancestors"
        lines = [f"{self.run}: {counted(len(self.lineage.descents), 'snapshot')}{whose}"]
        lines += [
            f"taken over from {fork.run} at event {fork.event}, with {counted(fork.after, 'snapshot')}"
            for fork in self.lineage.forks
        ]
        lines += [
            f"taken back to event {back.event}, with {counted(back.after, 'snapshot')}; "
            f"what came after lies in {back.set_aside}"
            for back in self.lineage.rewinds
        ]
        stack = [(descent, 0) for descent in reversed(children.get(None, []))]
        while stack:
            descent, depth = stack.pop()
            lines.append("  " * depth + _sentence(descent))
            below = children.get(descent.snapshot, [])
            # A line that continues without a branch is not indented further: leagues are hundreds of snapshots deep.
            deeper = depth + 1 if len(below) > 1 or depth == 0 else depth
            stack.extend((child, deeper) for child in reversed(below))
        if self.of is not None and self.lineage.opponent_mix:
            lines.append(f"all of them: {_opponent_mix(self.lineage.opponent_mix, most=MAX_OPPONENTS_IN_ALL)}")
        return "\n".join(lines)

    def to_dot(self) -> str:
        """As a directed graph, parents to children; the opponent mix as dotted edges from the opponents met most."""
        return "\n".join(["digraph lineage {", "  rankdir=LR;", *self._dot_lines(), "}"])

    def _dot_lines(self) -> Iterator[str]:
        roles = list(dict.fromkeys((*_ROLES, *(descent.role for descent in self.lineage.descents))))
        known = {descent.snapshot for descent in self.lineage.descents}
        for descent in self.lineage.descents:
            colour = _COLOURS[min(roles.index(descent.role), len(_COLOURS) - 1)]
            reason = descent.reason.replace("\\", "\\\\").replace('"', '\\"')
            label = f"{descent.snapshot}\\n{descent.trained_steps:,} steps, {reason}"
            yield f'  "{descent.snapshot}" [style=filled, fillcolor={colour}, label="{label}"];'
            if descent.parent is not None:
                changes = "\\n".join(_change(*change) for change in descent.changes)
                style = _EDGES.get(descent.kind, "solid")
                yield f'  "{descent.parent}" -> "{descent.snapshot}" [style={style}, label="{changes}"];'
            for met in descent.opponent_mix[:MAX_OPPONENTS]:
                if met.opponent in known:
                    yield (
                        f'  "{met.opponent}" -> "{descent.snapshot}" '
                        f'[style=dotted, constraint=false, color=grey, label="{met.games:,}"];'
                    )


def read_lineage(path: Path, *, of: str | None = None) -> LineageReport:
    """The lineage of a run, also of a live one.

    Args:
      of: a snapshot, to see its ancestors alone.
    Raises:
      MissingRun, JournalError. LeagueError: there is no such snapshot.
    """
    folder = RunFolder.open(path)
    with JournalReader.open_readonly(folder.journal_path, events=EVENTS) as journal:
        lineage = lineage_of(cast(Event, event) for _, event in journal.replay())
    if of is None:
        return LineageReport(str(path), lineage)
    known = [descent.snapshot for descent in lineage.descents]
    if of not in known:
        raise LeagueError(f"the league has no snapshot {of!r}{nearest(of, known)}")
    return LineageReport(str(path), lineage.line_of(of), of)


def _sentence(descent: LineageNode) -> str:
    how = {"trained": "", "first": "first weights", "reset": "after a reset", "outside": "from outside"}.get(
        descent.kind, f"from the weights of {descent.donor}"
    )
    parts = [
        f"{descent.snapshot}: {counted(descent.trained_steps, 'step')}, {descent.reason}{_judged(descent)}",
        how,
        ", ".join(_change(*change) for change in descent.changes),
        _opponent_mix(descent.opponent_mix),
    ]
    return "; ".join(part for part in parts if part)


def _judged(descent: LineageNode) -> str:
    """The gate's evidence, in brackets."""
    if not descent.evidence:
        return ""
    hardest = descent.evidence[0]
    p_value = "" if hardest.unbeaten is None else f", p-value of its being unbeaten {hardest.unbeaten:.2f}"
    beaten = f"hardest {hardest.opponent}, beaten with {hardest.mean:.2f}{p_value}"
    return f" ({descent.gate_opponents} opponents; {beaten})"


def _opponent_mix(opponent_mix: tuple[OpponentGames, ...], *, most: int = MAX_OPPONENTS) -> str:
    total = sum(met.games for met in opponent_mix)
    if not total:
        return ""
    shown = [f"{met.opponent} {met.games / total:.0%} (won {met.score / met.games:.0%})" for met in opponent_mix[:most]]
    return f"{counted(total, 'game')}: {', '.join(shown)}" + (" ..." if len(opponent_mix) > most else "")


def _change(name: str, before: float | None, after: float | None) -> str:
    old, new = ("none" if value is None else number_text(value) for value in (before, after))
    return f"{name} {old} to {new}"
