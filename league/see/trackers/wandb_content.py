"""Sends what is no plain number to wandb: gates, tables, pictures, plots, alerts and replays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from league.core.metagame.ratings import RatingRow, league_ratings
from league.core.state.state import LeagueState
from league.envs.plugins import install_extra
from league.envs.protocol import EnvError
from league.errors import LeagueError
from league.run.alerts.sink import AlertNews
from league.run.monitor.names import ENV_STEPS
from league.see.trackers.chronicle import Chronicle, GateDecision
from league.see.trackers.heatmap import heatmap
from league.see.trackers.league_tables import (
    TrackedTable,
    gates_table,
    matchmaking_shares,
    matchmaking_table,
    payoff_table,
    ratings_table,
    win_rates,
)
from league.see.trackers.wandb_runs import WandbRuns

MAX_POINTS = 200
"""Snapshots in a plot of ratings."""
MAX_REPLAYS, MAX_REPLAY_BYTES = 10, 20 << 20
"""Replays sent at once, and the size of one."""
REPLAY = ".replay"
VIDEOS = {".gif": "gif", ".mp4": "mp4"}


class WandbContent:
    """Sends to the runs of a league. Without pillow there are no pictures, which is said once."""

    def __init__(self, wandb: Any, runs: WandbRuns) -> None:
        self._wandb = wandb
        self._runs = runs
        self.without_pictures = ""

    def gates(self, decisions: Iterable[GateDecision]) -> None:
        """A row of each decision in the run of its player: how many opponents, and how sure the hardest is beaten."""
        for found in decisions:
            if self._runs.of_player(found.player) is None:
                continue
            hardest = found.evidence[0]
            row = {
                f"gate/{found.kind}s": 1.0,
                "gate/opponents": float(found.opponents),
                "gate/hardest_win_rate": hardest.mean,
                "gate/hardest_lower": hardest.lower,
                "gate/hardest_games": hardest.games,
            }
            if hardest.unbeaten is not None:
                row["gate/hardest_unbeaten"] = hardest.unbeaten
            self._runs.log_row(found.player, {**row, ENV_STEPS.name: found.env_steps})

    def tables(self, step: int, state: LeagueState, chronicle: Chronicle, *, is_last: bool) -> tuple[RatingRow, ...]:
        """All tables, pictures and plots as of now; returns the ratings that they show.

        All tables are one artifact, of which this is a version. wandb makes an artifact for each table in a row of a
        run, so that they are put there with the last call alone.
        """
        ratings = league_ratings(state)
        met = chronicle.take_met()
        tables = {
            "ratings": self._table(ratings_table(state, ratings)),
            "payoff": self._table(payoff_table(state)),
            "gates": self._table(gates_table(chronicle.gates)),
            "matchmaking": self._table(matchmaking_table(met)),
        }
        version = self._wandb.Artifact(f"{self._runs.league.id}-tables", type="tables", metadata={ENV_STEPS.name: step})
        for name, table in tables.items():
            version.add(table, name)
        self._runs.league.log_artifact(version)
        row: dict[str, Any] = {f"tables/{name}": table for name, table in tables.items()} if is_last else {}
        picture = self._payoff_picture(state, ratings)
        if picture is not None:
            row["pictures/payoff"] = picture
        if row:
            self._runs.log_row("", {**row, ENV_STEPS.name: step})
        shares = matchmaking_shares(state, met)
        for player, known in state.players.items():
            if not known.retired and self._runs.of_player(player) is not None:
                own = {f"matchmaking/{kind}": share for kind, share in shares.get(player, {}).items()}
                plot = self._rating_plot(state, player, ratings) if is_last else {}
                self._runs.log_row(player, {**own, **plot, ENV_STEPS.name: step})
        return ratings

    def alerts(self, path: Path, offset: int) -> int:
        """Alerts in the file from a byte on; returns where it ends. See `league.run.alerts.tracker_sink`."""
        try:
            with path.open("rb") as file:
                file.seek(offset)
                block = file.read(1 << 20)
        except FileNotFoundError:
            return offset
        block = block[: block.rfind(b"\n") + 1]
        for line in block.splitlines():
            try:
                news = msgspec.json.decode(line, type=AlertNews)
            except msgspec.MsgspecError:  # torn by a crash
                continue
            title = " ".join(filter(None, (news.alert, news.subject, news.state)))
            level = self._wandb.AlertLevel.WARN if news.state == "firing" else self._wandb.AlertLevel.INFO
            self._runs.league.alert(title=title, text=news.text, level=level, wait_duration=0)
        return offset + len(block)

    def replays(self, folder: Path, step: int, told: list[str]) -> list[str]:
        """Sends the new replays of a folder as media; returns the names of all that were sent."""
        found = sorted(folder.glob("*"), key=lambda path: path.stat().st_mtime) if folder.is_dir() else []
        media = [path for path in found if path.suffix in (".html", REPLAY, *VIDEOS) and path.name not in told]
        sent = [path for path in media if path.stat().st_size <= MAX_REPLAY_BYTES][-MAX_REPLAYS:]
        for path in sent:
            made = self._replay(path)
            if made is not None:
                kind = "html" if path.suffix == REPLAY else path.suffix[1:]
                self._runs.log_row("", {f"replays/{kind}": made, ENV_STEPS.name: step})
        return [*(name for name in told if (folder / name).exists()), *(path.name for path in sent)]

    def _replay(self, path: Path) -> Any:
        """A replay as media; None for one that cannot be shown here, such as of a game in foreign code."""
        if path.suffix in VIDEOS:
            return self._wandb.Video(str(path), caption=path.stem, format=VIDEOS[path.suffix])
        if path.suffix == ".html":
            return self._wandb.Html(str(path), inject=False)
        from league.judge.recording.replay_file import read_replay
        from league.see.games.game_view import game_view
        from league.see.games.html import html_of

        try:
            return self._wandb.Html(html_of(game_view(read_replay(path))), inject=False)
        except (LeagueError, EnvError):
            return None

    def _table(self, table: TrackedTable) -> Any:
        return self._wandb.Table(columns=list(table.columns), data=[list(row) for row in table.rows])

    def _payoff_picture(self, state: LeagueState, ratings: Iterable[RatingRow]) -> Any:
        found = win_rates(state, ratings)
        if not found.members or self.without_pictures:
            return None
        try:
            return self._wandb.Image(heatmap(found), caption="win rate of the row against the column")
        except ImportError:
            self.without_pictures = f"there are no pictures; {install_extra('replays')}"
            return None

    def _rating_plot(self, state: LeagueState, player: str, ratings: Iterable[RatingRow]) -> Mapping[str, Any]:
        """A chart of the ratings of a player's snapshots with their intervals, over the steps that it had trained."""
        rated = {row.policy: row for row in ratings if row.games}
        own = [known for name, known in state.snapshots.items() if known.player == player and name in rated]
        if len(own) < 2:
            return {}
        own = own[-MAX_POINTS:]
        rows = [rated[known.snapshot_id] for known in own]
        lines = [[row.elo for row in rows], [row.low for row in rows], [row.high for row in rows]]
        chart = self._wandb.plot.line_series(
            xs=[known.trained_steps for known in own],
            ys=lines,
            keys=["rating", "95 % low", "95 % high"],
            title=f"Rating of {player}",
            xname="trained steps",
        )
        return {"plots/rating": chart}
