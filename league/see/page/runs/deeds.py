"""Deeds on whole runs and pools: `league` commands that the page runs in processes of their own, and their ends.

A page has the rights of the user who serves it, and gives no more: each deed is the command of the terminal, with its
checks and its sentences. A run that is started outlives the page, since `league up` sets it apart from any terminal.
"""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from league.config.contender_names import runs_outside_code
from league.config.loading import overridden
from league.config.plugin_names import outside_names
from league.config.yaml import parse_yaml
from league.errors import LeagueError, nearest
from league.run.operations.catalogue import Argument
from league.see.page.runs.command_output import command_output
from league.see.page.runs.library import Library

MAX_AT_ONCE = 3
MAX_REMEMBERED = 30
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
Given = Mapping[str, str]


@dataclass(frozen=True)
class Deed:
    """A deed on one run, or on one rating pool.

    Fields:
      name: of it. what: one sentence for help texts. arguments: its fields, all texts.
      words: its effect as the end of a sentence, with the names of arguments in braces.
      command: (run folder, folder of the runs, arguments) -> arguments of `league`.
      begins: the argument that names the folder of the run it makes; empty where it makes none.
      is_of_pool: whether its folder is a pool's.
      contenders: the arguments that name policies.
      rehearses: what is added to the command to have it print its effect alone as JSON; empty where it cannot.
    """

    name: str
    what: str
    arguments: tuple[Argument, ...]
    words: str
    command: Callable[[Path, Path, Given], list[str]]
    begins: str = ""
    is_of_pool: bool = False
    contenders: tuple[str, ...] = ()
    rehearses: tuple[str, ...] = ()


def _fork(run: Path, home: Path, given: Given) -> list[str]:
    return ["fork", str(run), str(home / given["new"]), "--at", given["at"], *settings_of(given["settings"])]


def _test(pool: Path, home: Path, given: Given) -> list[str]:
    sides = [_contender(home, given[side]) for side in ("first", "second")]
    words = ["--sprt", given["sprt"], "--games", given["games"], "--reason", given["reason"]]
    return ["pool", "test", str(pool), *sides, *words]


def _contender(home: Path, written: str) -> str:
    """The name of a run of the page by its path."""
    name = written.partition(":")[0]
    return f"{home / name}{written[len(name) :]}" if (home / name / "config.yaml").is_file() else written


_LISTED = (
    Deed(
        "stop",
        "Stops the run within seconds: games in hand end, and everything is saved.",
        (),
        "stops; games in hand end, everything is saved, and it can be continued",
        lambda run, home, given: ["down", str(run)],
    ),
    Deed(
        "continue",
        "Continues a run after a stop, a crash or a kill, in the background.",
        (Argument("settings", "text", "KEY=VALUE, one a line, changed from here on", False, ""),),
        "trains again in the background, until its budget is spent",
        lambda run, home, given: ["up", str(run), *settings_of(given["settings"])],
    ),
    Deed(
        "fork",
        "Begins a new run as the past of this one, which may be live.",
        (
            Argument("at", "text", "number of an event, snapshot:NAME, or latest", False, "latest"),
            Argument("new", "text", "folder of the new run, beside this one"),
            Argument("settings", "text", "KEY=VALUE, one a line, that differ in the new run", False, ""),
        ),
        "stays as it is; {new} begins as its past up to {at}, and is continued by the deed continue",
        _fork,
        begins="new",
    ),
    Deed(
        "record",
        "Plays and records the games of this run that tell most: upsets, first wins, the longest.",
        (Argument("games", "text", "how many", False, "3"),),
        "is only read; its {games} most telling games are recorded as replays",
        lambda run, home, given: ["replays", str(run), "--telling", given["games"]],
    ),
    Deed(
        "label",
        "Gives the run other labels, by which it is found in the table of runs.",
        (Argument("labels", "text", "divided by commas, in the place of those it has; empty for none", False, ""),),
        "is labelled {labels}; nothing else of it changes",
        lambda run, home, given: ["label", str(run), given["labels"]],
    ),
    Deed(
        "delete",
        "Removes the folder of a stopped run for good.",
        (),
        "is removed for good",
        lambda run, home, given: ["delete", str(run), "--yes"],
        rehearses=("--dry-run", "--json"),
    ),
)
_POOL_LISTED = (
    Deed(
        "test",
        "Tests one policy against another, until the results decide; the workers of the pool play.",
        (
            Argument("first", "text", "a policy of the pool, RUN:NAME of a run here, or a folder"),
            Argument("second", "text", "the one that it is tested against"),
            Argument("sprt", "text", "hypotheses in Elo, and errors", False, "elo0=0 elo1=10 alpha=0.05 beta=0.05"),
            Argument("games", "text", "after so many it ends undecided", False, "40000"),
            Argument("reason", "text", "why, for the journal", False, ""),
        ),
        "has {first} tested against {second} by {sprt}, {games} games at most",
        _test,
        is_of_pool=True,
        contenders=("first", "second"),
    ),
    Deed(
        "withdraw",
        "Ends a test before it is decided; its games stay in the ratings.",
        (Argument("number", "text", "of the test"),),
        "plays test {number} no more; its games stay in the ratings",
        lambda pool, home, given: ["pool", "withdraw", str(pool), given["number"]],
        is_of_pool=True,
    ),
)
DEEDS: Mapping[str, Deed] = {deed.name: deed for deed in _LISTED}
"""Name -> deed on a run."""
POOL_DEEDS: Mapping[str, Deed] = {deed.name: deed for deed in _POOL_LISTED}
"""Name -> deed on a rating pool."""


class DoneDeed(msgspec.Struct):
    """A deed that was begun.

    Fields:
      number: counts them from 1. run: that it is done to, or that it makes. name: of the deed, or "start".
      state: "working", "done" or "refused". said: the last lines of the command. began: the run that it made.
      since, ended: seconds since 1970, 0 before the end.
    """

    number: int
    run: str
    name: str
    state: str
    said: str
    began: str
    since: float
    ended: float = 0.0


class DeedsBegun:
    """Carries deeds out in the background and remembers the newest.

    Args:
      library: the runs of the page. may_name_code: whether a configuration may name code that is not this project's.
      wall_time: seconds since 1970.
    """

    def __init__(self, library: Library, *, may_name_code: bool, wall_time: Callable[[], float] = time.time) -> None:
        self._library, self._may_name_code, self._wall_time = library, may_name_code, wall_time
        self._lock = threading.Lock()
        self._begun: list[DoneDeed] = []
        self._pool = ThreadPoolExecutor(MAX_AT_ONCE, thread_name_prefix="deed")

    def listed(self) -> list[DoneDeed]:
        """The newest deeds, oldest first."""
        with self._lock:
            return list(self._begun)

    def words_of(self, run: str, name: str, given: Mapping[str, str]) -> str:
        """The effect of a deed as the end of a sentence; nothing is done.

        Raises:
          UnknownRun: no such run. LeagueError: the deed does not fit, in one sentence.
        """
        deed, complete = self._complete(name, given)
        path = self._path_of(run, deed)
        if deed.rehearses:
            said = command_output([*deed.command(path, self._library.home, complete), *deed.rehearses])
            return str(msgspec.json.decode(said)["words"])
        return deed.words.format_map(complete)

    def begin(self, run: str, name: str, given: Mapping[str, str]) -> DoneDeed:
        """Begin a deed on a run.

        Raises:
          UnknownRun: no such run. LeagueError: the deed does not fit, in one sentence.
        """
        deed, complete = self._complete(name, given)
        command = deed.command(self._path_of(run, deed), self._library.home, complete)
        return self._begin(run, name, complete.get(deed.begins, ""), lambda: command_output(command))

    def start(self, name: str, text: str) -> DoneDeed:
        """Begin to train a run of a configuration, in the background.

        Args:
          name: of its folder, new in the folder of the runs. text: of the configuration.
        Raises:
          LeagueError: the name does not fit.
        """
        folder = self._library.home / self._new(name)
        self._check_code(parse_yaml(text, source="the configuration"))

        def up() -> bytes:
            with tempfile.NamedTemporaryFile("w", suffix=".yaml", prefix=f"{name}-") as file:
                file.write(text)
                file.flush()
                return command_output(["up", file.name, "--run-dir", str(folder)])

        return self._begin(name, "start", name, up)

    def fitted_text(self, source: str, *, seconds: float | None, settings: str) -> str:
        """The whole configuration that `league init` prints, each choice with its reason as a comment.

        Args:
          source: id of a game, or path of a configuration. seconds: the budget; None for that of the configuration.
          settings: KEY=VALUE, one a line.
        Raises:
          LeagueError: with what the command says.
        """
        if source.startswith("-") or not source:
            raise LeagueError("give the id of a game, or the path of a configuration.")
        if not self._may_name_code and Path(source).exists():
            raise LeagueError("from another machine a run is started by the id of a game.")
        self._check_code(overridden({"env": {"id": source}}, lines_of(settings))[0])
        budget = [] if seconds is None else ["-s", f"budget.seconds={seconds:g}"]
        return command_output(["init", source, *budget, *settings_of(settings)]).decode()

    def _check_code(self, plain: object) -> None:
        """Refuse a configuration that has code of others loaded where the page is served to other machines.

        Raises:
          LeagueError: it does.
        """
        found = None if self._may_name_code else next(outside_names(plain), None)
        if found is not None:
            raise LeagueError(
                f"{found.path} names code, {found.name}: start this run from the terminal of its machine."
            )

    def _path_of(self, name: str, deed: Deed) -> Path:
        return self._library.pool(name).path if deed.is_of_pool else self._library.folder(name).path

    def _complete(self, name: str, given: Mapping[str, str]) -> tuple[Deed, dict[str, str]]:
        known = {**DEEDS, **POOL_DEEDS}
        deed = known.get(name)
        if deed is None:
            raise LeagueError(f"there is no deed {name!r}{nearest(name, known)}")
        complete = {}
        for argument in deed.arguments:
            complete[argument.name] = given.get(argument.name, "") or str(argument.default or "")
            if argument.is_required and not complete[argument.name]:
                raise LeagueError(f"{name} needs {argument.name}: {argument.what}.")
            if complete[argument.name].startswith("-"):
                raise LeagueError(f"{argument.name} begins with a hyphen, as an option does.")
        if deed.begins:
            self._new(complete[deed.begins])
        self._check_code(overridden({}, lines_of(complete.get("settings", "")))[0])
        if not self._may_name_code and any(runs_outside_code(complete[one]) for one in deed.contenders):
            raise LeagueError("from another machine no test begins with a program, an address or code of one's own.")
        return deed, complete

    def _new(self, name: str) -> str:
        if not NAME.fullmatch(name):
            raise LeagueError("a name has letters, digits, dots, hyphens and underscores, at most 64 of them.")
        if (self._library.home / name).exists():
            raise LeagueError(f"there is a folder {name} already: choose another name.")
        return name

    def _begin(self, run: str, name: str, began: str, work: Callable[[], bytes]) -> DoneDeed:
        with self._lock:
            number = self._begun[-1].number + 1 if self._begun else 1
            deed = DoneDeed(number, run, name, "working", "", began, self._wall_time())
            self._begun = [*self._begun, deed][-MAX_REMEMBERED:]
        self._pool.submit(self._carry_out, deed, work)
        return deed

    def _carry_out(self, deed: DoneDeed, work: Callable[[], bytes]) -> None:
        try:
            deed.said, deed.state = work().decode(errors="replace").strip(), "done"
        except LeagueError as error:
            deed.state, deed.said = "refused", str(error)
        except Exception as error:  # boundary: of a thread that nobody waits for; the page shows it
            deed.state, deed.said = "refused", f"{type(error).__name__}: {error}"
        deed.ended = self._wall_time()
        self._library.close_gone()


def lines_of(settings: str) -> list[str]:
    """Settings KEY=VALUE, of text with one a line."""
    return [line.strip() for line in settings.splitlines() if line.strip()]


def settings_of(settings: str) -> list[str]:
    """The same as options of a command."""
    return [word for line in lines_of(settings) for word in ("-s", line)]
