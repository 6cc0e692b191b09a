"""Recorded games of a run, and games of a person against its policies. Torch is loaded with the first of either."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from fastapi import APIRouter, HTTPException, Request, Response
from starlette.concurrency import run_in_threadpool

from league.core.state.records import bot_name, is_bot
from league.errors import LeagueError
from league.see.page.guard import Keys
from league.see.page.runs.command_output import written_by
from league.see.page.runs.library import Library
from league.see.page.runs.opened_run import OpenedRun

if TYPE_CHECKING:
    from league.see.games.opinions import Advisors
    from league.see.games.session_store import SessionStore

MAX_NAME = 200
DRAWN_WITHIN_S = 120.0
"""Seconds in which a game of somebody's own code must be drawn."""

T = TypeVar("T", bound=msgspec.Struct)


class NewGame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A game to begin. policy: a name of the run, or of a bot. seed: None draws one."""

    policy: str
    seat: int = 0
    seed: int | None = None
    greedy: bool = False


class Move(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A move of the person; None takes the last one back."""

    action: int | None


def add_routes(router: APIRouter, library: Library, keys: Keys) -> None:
    store = _Store()

    @router.get("/runs/{run}/replays/{file}")
    def replay(run: str, file: str, game: int = 0) -> Response:
        return _json(_replay(library.run(run), file, game))

    @router.get("/runs/{run}/replays/{file}/opinion")
    def opinion(run: str, file: str, policy: str, game: int = 0) -> Response:
        return _json(_opinion(store, library.run(run), file, game, policy))

    @router.get("/runs/{run}/play/{game}/opinion")
    def second_opinion(run: str, game: str, policy: str, since: int = 0) -> Response:
        opened = library.run(run)
        with store.get().use(game) as session:
            written = _contender(opened, policy)
            return _json(session.opinion(written, store.advisors(), name=policy, since=max(since, 0)))

    @router.post("/runs/{run}/play")
    async def begin(run: str, request: Request) -> Response:
        wanted = await _body(request, NewGame)
        return _json(await run_in_threadpool(lambda: _begin(store.get(), library.run(run), wanted)))

    @router.get("/runs/{run}/play/{game}")
    def look(run: str, game: str) -> Response:
        return _json(_look(store.get(), game))

    @router.post("/runs/{run}/play/{game}")
    async def move(run: str, game: str, request: Request) -> Response:
        wanted = await _body(request, Move)
        return _json(await run_in_threadpool(lambda: _move(store.get(), game, wanted)))

    @router.get("/runs/{run}/play/{game}/replay")
    def review(run: str, game: str) -> Response:
        return _json(_review(store.get(), game))


class _Store:
    """The games in progress and those asked about them, made with the first: their modules load torch."""

    def __init__(self) -> None:
        self._made: SessionStore | None = None
        self._asked: Advisors | None = None
        self._making = threading.Lock()

    def get(self) -> SessionStore:
        """The one store, whichever threads ask for it at once."""
        from league.see.games.session_store import SessionStore

        with self._making:
            self._made = self._made or SessionStore()
            return self._made

    def advisors(self) -> Advisors:
        """Those who are asked about games."""
        from league.see.games.opinions import Advisors

        with self._making:
            self._asked = self._asked or Advisors()
            return self._asked


def _replay(run: OpenedRun, file: str, game: int) -> object:
    from league.policies.trust import admit_marked, require_trusted
    from league.see.games.game_view import game_view
    from league.see.games.playback import names_of_replay
    from league.see.games.replay_list import ReplayList

    replays = ReplayList(run.folder.replays_path)
    replay = replays.read(file)
    names = names_of_replay(replay)
    if not names:
        return game_view(replay, game)
    admit_marked(run.folder)
    require_trusted(names, what="the replay")
    return _drawn_apart(replays.folder / file, game)


def _drawn_apart(file: Path, game: int) -> object:
    """A game in code that is not this project's, played again and drawn by a process that may take so long.

    Raises:
      LeagueError: the user has not trusted it, it takes too long, or it takes another course here.
    """
    return msgspec.Raw(written_by(["replay", str(file), "--game", str(game), "--json"], longest_s=DRAWN_WITHIN_S))


def _begin(store: SessionStore, run: OpenedRun, wanted: NewGame) -> object:
    from league.policies.loading import open_run
    from league.see.games.opponents import open_session

    against, opened = _contender(run, wanted.policy), open_run(run.path)
    name = store.add(open_session(against, seat=wanted.seat, env=opened.env, seed=wanted.seed, greedy=wanted.greedy))
    return _look(store, name)


def _opinion(store: _Store, run: OpenedRun, file: str, game: int, policy: str) -> object:
    from league.policies.trust import admit_marked
    from league.see.games.replay_list import ReplayList

    admit_marked(run.folder)
    replay = ReplayList(run.folder.replays_path).read(file)
    if not 0 <= game < len(replay.games) or replay.games[game].aborted:
        raise LeagueError(f"the replay has no game {game} that was played to its end.")
    return store.advisors().ask(_contender(run, policy), replay, game, name=policy)


def _contender(run: OpenedRun, policy: str) -> str:
    """A policy of a run, or a bot, as a contender.

    Raises:
      LeagueError: it is neither.
    """
    if len(policy) > MAX_NAME or (is_bot(policy) and not _is_built_in(policy)):
        raise LeagueError("name a policy of this run, or bot:random, bot:tactical or bot:mcts:N.")
    return policy if is_bot(policy) else f"{run.path}:{policy}"


def _is_built_in(bot: str) -> bool:
    """True for bots of ours; a bot of the user's own is code, which no request may name."""
    from league.envs.bots import BOTS

    kind, _, rest = bot_name(bot).partition(":")
    return kind in BOTS and (not rest or (rest.isdigit() and len(rest) <= 4))


def _look(store: SessionStore, name: str) -> object:
    from league.see.games.session_record import record_of

    with store.use(name) as session:
        return record_of(name, session.view())


def _move(store: SessionStore, name: str, wanted: Move) -> object:
    with store.use(name) as session:
        if wanted.action is None:
            session.take_back()
        else:
            session.choose(wanted.action)
    return _look(store, name)


def _review(store: SessionStore, name: str) -> object:
    from league.see.games.game_view import game_view

    with store.use(name) as session:
        if not session.over:
            raise LeagueError("the game is not over yet.")
        played = session.replay()
    return game_view(played)


async def _body(request: Request, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except msgspec.DecodeError as error:
        raise HTTPException(422, str(error)) from error


def _json(record: object) -> Response:
    return Response(msgspec.json.encode(record), media_type="application/json")
