"""Ninety bad configurations and arguments: one or two sentences and exit code 2 each, and no half-made run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from league.cli.main import main
from tests.league.tiny_runs import ONE_PLAYER, start, tiny, write_config

PLUGINS = """
from dataclasses import dataclass
import numpy as np
from league.envs.games.tic_tac_toe import TicTacToe

def make(*, num_envs):
    return TicTacToe(num_envs=num_envs)

def not_a_game():
    return 3

@dataclass
class Short:
    length: int = 1
    def opponents(self, view, rng):
        return np.ones(self.length)
    def gate_opponents(self, view):
        return np.zeros(0, np.int64)

class Raising(Short):
    def opponents(self, view, rng):
        raise RuntimeError("no idea whom")

class Strange(Short):
    def opponents(self, view, rng):
        return np.full(len(view.population), 1.0 / len(view.population))
    def gate_opponents(self, view):
        return ["main-0"]

@dataclass
class Gate:
    patience: int = 1
    def __post_init__(self):
        if self.patience < 0:
            raise ValueError(f"patience must not be negative, not {self.patience}")
    def __call__(self, trial):
        return "yes"

@dataclass
class Broken:
    def __call__(self, *arguments):
        raise RuntimeError("out of order")

def raising(*arguments, **options):
    raise RuntimeError("out of order")

@dataclass
class Selection:
    best: float = 0.5
    def __call__(self, trial, rng):
        return 1

def solver(win_rates):
    return np.ones(len(win_rates))

class Bot:
    def __init__(self, seed): ...
"""
SOLO = "league.players=[{role: main_agent, %s}]"
TUNED = "league.pbt={selection: '%s', hyperparameters: [{name: learning_rate}]}"
PBT = "league.pbt={selection: {kind: '%s', %s}, hyperparameters: [{name: learning_rate}]}"

SETTINGS = [
    # names that are registered nowhere
    ("env.workers=-1", "env.workers: -1 must be auto or in [0, 1024]"),
    ("env.workers=many", "env.workers"),
    ("actors.num_splits=3", "num_splits: 3 must be at most 2"),
    ("env.step_deadline_s=0", "env.step_deadline_s: 0.0 must be at least 0.1"),
    ("env.worker_memory_mib=1", "env.worker_memory_mib: 1 must be at least 64"),
    ("env={id: tic_tac_toe, workers: 2, kwargs: {size: 4}}", "unknown kwarg 'size'"),
    ("env.id=conect_four", "did you mean connect_four"),
    ("env.id=plug.py", "did you mean plug.py:make"),
    ("env.id=plug.py:mak", "has no 'mak'; did you mean make"),
    ("env.id=plug.py:np", "name a function that makes the game"),
    ("env.id=plug.py:TicTac", "has no 'TicTac'"),
    ("env.id=plug.py:not_a_game", "returned a int"),
    ("env.id=nowhere.py:make", "there is no file"),
    ("env.id=no_such_module:make", "there is no module"),
    ("env.id=pettingzoo:classic/chss_v6", "unknown env"),
    ("env.id=gymnasium:CartPol-v1", "unknown env"),
    ("env={id: tic_tac_toe, kwargs: {size: 4}}", "unknown kwarg 'size'"),
    ("learner.algorithm=vtrac", "unknown learner.algorithm 'vtrac' (did you mean 'vtrace'?)"),
    ("learner.algorithm=sac", "unknown learner.algorithm 'sac'"),
    ("learner.algorithm=plug.py", "did you mean"),
    (
        "learner.algorithm=dqn",
        "learner.algorithm: dqn learns values of numbered actions, and network.head is a Categori",
    ),
    (
        "learner.algorithm=td3",
        "learner.algorithm: td3 learns one action of a box, and network.head is a CategoricalHead",
    ),
    ("learner.algorithm={kind: dqn, n_stepps: 3}", "learner.algorithm.n_stepps: unknown key, nearest is 'n_steps'"),
    ("network.head=q_values", "network.head: q_values has no policy for a policy loss; use dqn, or head: auto"),
    ("network.head=deterministic", "head: deterministic answers box actions, the game takes categorical"),
    ("actors.acting=sampel", "unknown kind of acting 'sampel' (did you mean 'sample'?)"),
    ("actors.acting=epsilon_greedy", "actors.acting: epsilon_greedy starts from the largest value of a network"),
    ("actors.acting_frozen={kind: epsilon_greedy, epsilon: 2}", "actors.acting_frozen.epsilon: 2.0 is not in [0, 1]"),
    ("actors={acting: gaussian, inference: central}", "actors.inference: an inference host samples, and actors.acting"),
    ("learner.algorithm=plug.py:Absent", "has no 'Absent'"),
    ("learner.algorithm=plug.py:raising", "out of order"),
    ("learner.pipeline.update_mode=foo", "unknown learner.pipeline.update_mode 'foo'"),
    ("learner.pipeline.update_mode=plug.py:nope", "has no 'nope'"),
    ("learner.pipeline.backend=single_", "learner."),
    ("network.encoder=mlpp", "unknown encoder 'mlpp' (did you mean 'mlp'?)"),
    ("network.encoder=plug.py:nope", "has no 'nope'"),
    ("network.encoder=plug.py:raising", "out of order"),
    ("network.core=gru", "unknown core 'gru'"),
    ("network.core=x:y", "there is no module 'x'"),
    ("network.head=foo", "unknown head 'foo'"),
    ("network.head=json:nope", "has no 'nope'"),
    ("league={preset: alphstar}", "alphastar"),
    ("league={preset: 'x:y'}", "there is no module 'x'"),
    ("league={preset: 'plug.py:raising'}", "out of order"),
    ("league={preset: 'plug.py:make'}", "preset"),
    (SOLO % "matchmaker: self_pla", "self_play"),
    (SOLO % "matchmaker: 'x:y'", "there is no module 'x'"),
    (SOLO % "matchmaker: 'plug.py:Shrt'", "has no 'Shrt'; did you mean Short"),
    (SOLO % "matchmaker: 'plug.py:Short'", "one for each of the policies"),
    (SOLO % "matchmaker: 'plug.py:Raising'", "raised RuntimeError: no idea whom"),
    (SOLO % "matchmaker: 'plug.py:Strange'", "give numbers of policies"),
    (SOLO % "gate: {test: psterior}", "posterior"),
    (SOLO % "gate: {test: 'x:y'}", "there is no module 'x'"),
    (SOLO % "gate: {test: 'plug.py:Gate'}", "returned 'yes'; return None or a league.core.gates.gates.Verdict"),
    (SOLO % "gate: {test: 'plug.py:Broken'}", "raised RuntimeError: out of order"),
    (SOLO % "gate: {test: 'plug.py:raising'}", "is no dataclass"),
    # options of components, registered and one's own
    (
        SOLO % "gate: {test: {win_rat: 0.5}}",
        "league.players.0.gate.test.win_rat: unknown key, nearest is 'win_rate'",
    ),
    (SOLO % "gate: {test: {margin: wide}}", "league.players.0.gate.test.margin: 'wide' does not fit"),
    (SOLO % "gate: {test: {kind: threshold, margin: 0.1}}", "gate.test.margin: unknown key"),
    (SOLO % "matchmaker: {window: 3}", "league.players.0.matchmaker.window: unknown key"),
    (SOLO % "matchmaker: {pfsp: 0.9}", "self_play 0.35 + pfsp 0.9"),
    (SOLO % "matchmaker: {kind: self_play, own: 1}", "matchmaker.own: unknown key"),
    (
        SOLO % "gate: {test: {kind: 'plug.py:Gate', patiense: 3}}",
        "gate.test.patiense: unknown key, nearest is 'pa",
    ),
    (SOLO % "gate: {test: {kind: 'plug.py:Gate', patience: soon}}", "gate.test.patience: 'soon' does not fit"),
    (SOLO % "gate: {test: {kind: 'plug.py:Gate', patience: -1}}", "gate.test: patience must not be negative"),
    (SOLO % "matchmaker: {kind: 'plug.py:Short', length: x}", "matchmaker.length: 'x'"),
    (PBT % ("truncation", "best: 0.1"), "league.pbt.selection.best: unknown key, the keys here are quantile"),
    (PBT % ("plug.py:Selection", "bst: 0.1"), "league.pbt.selection.bst: unknown key, nearest is 'best'"),
    ("league.pbt.selection={quantile: 0.1}", "its options are given, and no `kind`"),
    (SOLO % "gate: {test: {win_rate: 2}}", "gate.test: win_rate must lie between 0 and 1"),
    (SOLO % "gate: {options: {win_rate: 0.5}}", "league.players.0.gate.options: unknown key"),
    (SOLO % "gate: {kind: threshold}", "league.players.0.gate.kind: unknown key"),
    (SOLO % "matchmaking: {opponents_per_lease: 2}", "league.players.0.matchmaking: unknown key"),
    (SOLO % "matchmaker: 3", "league.players.0.matchmaker"),
    (SOLO % "opponents_per_lease: 0", "opponents_per_lease is 0, must be at least 1"),
    (SOLO % "gate: {min_steps: -1}", "min_steps must not be negative"),
    (SOLO % "count: 0", "count must lie in"),
    (SOLO % "step_weight: -1", "step_weight must be positive"),
    (SOLO % "step_weigh: 1", "nearest is 'step_weight'"),
    ("league.players=[]", "at least one player"),
    ("league.players=[{role: main_agnt}]", "main_agent"),
    (TUNED % "trunkation", "truncation"),
    (TUNED % "x:y", "there is no module 'x'"),
    (TUNED % "plug.py:Selection", "return None or a league.core.pbt.pbt_selection.Copy"),
    ("league.meta_game={solve: true, solver: nahs}", "nash"),
    ("league.meta_game={solve: true, solver: 'plug.py:solver'}", "sum to 1"),
    ("league.meta_game={solve: true, solver: 'x:y'}", "there is no module 'x'"),
    ("evaluation.bots=[tacticl]", "did you mean tactical"),
    ("evaluation.bots=['mcts:none']", "needs a number of simulations"),
    ("evaluation.bots=['plug.py:Bt']", "has no 'Bt'; did you mean Bot"),
    ("evaluation.bots=['plug.py:Bot']", "without act"),
    ("evaluation.bots=['plug.py:Bot?depth=3']", "unexpected keyword argument 'depth'"),
    ("evaluation.bots=['plug.py:Bot?depth']", "the option 'depth' is not of the form name=value"),
    ("monitor.sinks=['x:y']", "there is no module 'x'"),
    ("monitor.sinks=[jsonl]", "monitor.sinks.0: the sink 'jsonl' is always open"),
    ("monitor.sinks=[{kind: 'plug.py:Bot', colour: 1}]", "monitor.sinks.0.colour: unknown key"),
    ("evaluation.games=3", "half from either seat"),
    ("league.ratings.bots=['bot:rndom']", "did you mean random"),
    ("league.ratings.bots=[random]", "bot:NAME"),
    ("league.fixed_opponents=[{policy: 'bot:plug.py:Bt'}]", "has no 'Bt'"),
    ("league.fixed_opponents=[{policy: 'imported:prey', source: nowhere}]", "does not exist"),
    ("league.fixed_opponents=[{policy: 'imported:prey'}]", "has no source"),
    ("league.fixed_opponents=[{policy: prey}]", "bot:NAME or imported:NAME"),
    # numbers
    ("learner.unroll_length=100000", "at most 4,096"),
    ("learner.unroll_length=0", "at least 1"),
    ("learner.batch_rows=-3", "batch_rows"),
    ("learner.learning_rate=.nan", "finite"),
    ("learner.learning_rate=0", "greater than 0"),
    (
        "learner.algorithm={kind: vtrace, epochs: 4}",
        "epochs: unknown key of vtrace, it is an option of ppo and appo",
    ),
    ("learner.optimizer.esp=1.0e-8", "learner.optimizer.esp: unknown key, nearest is 'eps'"),
    ("learner.optimizer.momentum=0.9", "learner.optimizer.momentum: unknown key of adam, it is an option of rmsprop"),
    ("learner.optimizer=adem", "learner.optimizer"),
    ("learner.optimizer={kind: 'plug.py:Bot'}", "learner.optimizer: it raised TypeError"),
    ("learner.pipeline.update_mode={kind: all_reduce, period: 4}", "learner.pipeline.update_mode.period: unknown key"),
    ("learner.pipeline.update_mode=gossip", "gossip is for several replicas, but pipeline.replicas is 1"),
    (
        "learner.pipeline={replicas: 7, update_mode: {kind: gossip, topology: {kind: torus, rows: 2}}}",
        "learner.pipeline.update_mode.topology: 7 replicas do not fill a torus of 2 rows times columns",
    ),
    (
        "learner.pipeline={replicas: 2, update_mode: {kind: local_sgd, outer: {momentum: 1.5}}}",
        "learner.pipeline.update_mode.outer.momentum: 1.5 must lie in [0, 1)",
    ),
    (
        "learner.pipeline={replicas: 2, update_mode: {kind: local_sgd, period: 0}}",
        "learner.pipeline.update_mode.period: 0 is not between 1 and",
    ),
    (
        "learner.pipeline={replicas: 2, update_mode: {kind: all_reduce, compression: {kind: top_k, fraction: 2}}}",
        "learner.pipeline.update_mode.compression.fraction: 2.0 is not in (0, 1]",
    ),
    (
        "learner.pipeline={replicas: 2, update_mode: {kind: all_reduce, compression: zip}}",
        "learner.pipeline.update_mode.compression: 'zip' is none of none, bf16",
    ),
    (
        "learner.pipeline={replicas: 2, update_mode: {kind: gossip, topology: one_peer, compression: sign}}",
        "one_peer changes its peers with every update, but sign needs a copy",
    ),
    ("learner.pipeline.update_mode=hogwild", "hogwild is for replicas that learn beside each other, not for 1"),
    (
        "learner.pipeline={replicas: 2, stages: 2, update_mode: parameter_server}",
        "learner.pipeline.stages: replicas under parameter_server run on clocks of their own",
    ),
    (
        "learner.pipeline={replicas: 2, update_mode: {kind: parameter_server, shards: 65}}",
        "learner.pipeline.update_mode.shards: 65 processes must be at most 64",
    ),
    (
        "learner.pipeline={replicas: 2, update_mode: {kind: parameter_server, on_stale: forget}}",
        "learner.pipeline.update_mode.on_stale",
    ),
    (
        "learner.pipeline={replicas: 2, update_mode: {kind: gossip, asynchronous: true, compression: sign}}",
        "sign is for gossip in lockstep",
    ),
    ("learner.pipeline.backend={kind: single, depth: 4}", "learner.pipeline.backend.depth: unknown key"),
    ("learner.row_source=fifi", "unknown learner.row_source 'fifi' (did you mean 'fifo'?)"),
    ("learner.row_source={kind: fifo, alpha: 1}", "alpha: unknown key of fifo, it is an option of replay"),
    (
        "learner.row_source={kind: replay, error_window: 3}",
        "3 batches are less than 2 * max(1, samples_per_insert) = 16",
    ),
    ("learner.row_source=replay", "replay samples old decisions again, and vtrace learns from fresh ones alone"),
    ("learner.row_source={kind: replay, min_rows: 1, capacity: 2}", "2 rows are less than learner.batch_rows"),
    ("learner.row_source={kind: replay, capacity: 4294967296}", "of memory; use storage: file"),
    ("learner.row_source={kind: replay, capacity: 4294967296, storage: file}", "are free on the disk of"),
    ("runtime.replay_hosts=2", "runtime.replay_hosts: 2 are actors of Ray; use 0 in one process, or kind: ray"),
    (
        "runtime={kind: ray, replay_hosts: 2}",
        "runtime.replay_hosts: 2 hosts would have nothing to do, as learner.row_source of every player is fifo",
    ),
    ("runtime.replay_hosts=-1", "at least 0"),
    ("learner.row_source={kind: replay, initial: actor}", "actors.acting sample does not record them; use max"),
    ("learner.adam_eps=1.0e-8", "learner.adam_eps: unknown key"),
    ("learner.pipeline.stages=2", "microbatches"),
    ("network.hidden=[100000000]", "hidden must hold widths of at least 1 and at most 65536"),
    ("network.hidden=64", "64 is no list, write [64]"),
    ("network.hidden=[0]", "at least 1"),
    ("network.value_output=poparts", "popart"),
    ("actors.num_envs=100000000", "at most 1048576"),
    ("actors.num_envs=0", "at least 1"),
    ("actors.num_envs=many", "actors.num_envs"),
    ("runtime.kind=rai", "ray"),
    ("runtime.actor_hosts=3", "inprocess is one process"),
    ("runtime={kind: ray, learner_hosts: 9}", "9 hosts for"),
    ("runtime={kind: ray, address: here}", "none of auto, local"),
    ("budget.env_steps=0", "greater than 0"),
    ("seed=-1", "is not in [0, 2**63)"),
    ("name=a/b", "name"),
    ("teacher.source=nowhere", "teacher"),
    ("wandb.project=a b", "letters, digits"),
    ("budjet.seconds=3", "nearest is 'budget'"),
    ("learner.unroll_lenght=4", "unroll_length"),
    ("learner", "write it as dotted.key=value"),
    ("learner.x.y=3", "learner.x"),
    ("env=[1]", "is not a section"),
    ("network.hidden=[", "network.hidden"),
]

ARGUMENTS = [
    (["train", "{config}", "--for", "0"], "leaves no time"),
    (["train", "{config}", "--for", "0.0m"], "leaves no time"),
    (["train", "{config}", "--core-seconds", "0"], "leaves no time"),
    (["train", "{config}", "--for", "3 weeks"], "is not a time"),
    (["train", "absent.yaml"], "cannot be read"),
    (["train", "binary.yaml"], "not UTF-8"),
    (["train", "list.yaml"], "holds a list"),
    (["train", "twice.yaml"], "is given twice"),
    (["train", "{config}", "--run-dir", "{run}"], "already holds a run"),
    (["resume", "nowhere"], "does not exist"),
    (["resume", "{run}", "-s", "seed=3"], "cannot change"),
    (["resume", "{run}", "-s", "learner.algorithm=vtrac"], "did you mean 'vtrace'"),
    (["resume", "{run}", "--for", "0"], "leaves no time"),
    (["eval", "{run}", "--bots", "plug.py:Bt"], "has no 'Bt'"),
    (["eval", "{run}", "--players", "bst"], "bst"),
    (["ratings", "{run}", "--model", "elo"], "unknown rating model 'elo'"),
    (["ratings", "{run}", "--model", "plug.py:nope"], "has no 'nope'"),
    (["fork", "{run}", "new", "--at", "latest", "-s", "league.lease_steps=3"], "was created with"),
    (["fork", "{run}", "new", "--at", "99999"], "99999"),
    (["simulate", "{config}", "--world", "flat"], "there is no simulated world"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, a configuration and plug-ins."""
    folder = tmp_path_factory.mktemp("made")
    start(folder, tiny(league=ONE_PLAYER), env_steps=100)
    write_config(folder / "conf", tiny(league=ONE_PLAYER))
    shutil.move(folder / "conf" / "config.yaml", folder / "good.yaml")
    (folder / "plug.py").write_text(PLUGINS)
    (folder / "binary.yaml").write_bytes(b"env: \xff\xfe")
    (folder / "list.yaml").write_text("- 1\n")
    (folder / "twice.yaml").write_text("seed: 1\nseed: 2\n")
    return folder


@pytest.fixture
def command(made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """Runs a command in this process; its exit code and what it said."""
    monkeypatch.chdir(made)

    def run(*arguments: str) -> tuple[int, str]:
        given = [text.format(config=made / "good.yaml", run=made / "run") for text in arguments]
        monkeypatch.setattr(sys, "argv", ["league", *given])
        with pytest.raises(SystemExit) as left:
            main()
        assert isinstance(left.value.code, int)
        return left.value.code, capsys.readouterr().err

    return run


def assert_told(code: int, said: str, words: str) -> None:
    assert code == 2, said
    assert words in said, said
    assert said.startswith("league: ") and "Traceback" not in said
    lines = [line for line in said.strip().splitlines() if not line.endswith(" ...")]  # stages of a slow machine
    assert len(lines) <= 3 and sum(map(len, lines)) < 900, said


@pytest.mark.parametrize(("setting", "words"), SETTINGS, ids=[setting for setting, _ in SETTINGS])
def test_a_bad_setting_is_reported_before_there_is_a_run(setting: str, words: str, made: Path, command) -> None:  # type: ignore[no-untyped-def]
    setting = f"env.id={made}/plug.py:make" if setting == "env.id=" else setting
    code, said = command("train", str(made / "good.yaml"), "-s", setting.replace("{", "{{").replace("}", "}}"))
    assert_told(code, said, words)
    assert not (made / "runs").exists()


@pytest.mark.parametrize(("arguments", "words"), ARGUMENTS, ids=[" ".join(arguments) for arguments, _ in ARGUMENTS])
def test_a_bad_argument_is_reported(arguments: list[str], words: str, made: Path, command) -> None:  # type: ignore[no-untyped-def]
    before = sorted(path.name for path in made.iterdir())
    code, said = command(*arguments)
    assert_told(code, said, words)
    assert [name for name in sorted(path.name for path in made.iterdir()) if name != "__pycache__"] == [
        name for name in before if name != "__pycache__"
    ]


def test_at_least_ninety_mistakes_are_tried() -> None:
    assert len(SETTINGS) + len(ARGUMENTS) >= 90


def test_parts_of_a_replay_that_hold_no_batch_are_reported(made: Path, command) -> None:  # type: ignore[no-untyped-def]
    settings = ("learner.algorithm=dqn", "network.head=q_values", "runtime={kind: ray, replay_hosts: 4}")
    source = "learner.row_source={kind: replay, min_rows: 1, capacity: 33}"
    given = [f"-s {setting}".replace("{", "{{").replace("}", "}}").split(" ", 1) for setting in (*settings, source)]
    code, said = command("train", str(made / "good.yaml"), *(part for pair in given for part in pair))
    assert_told(code, said, "runtime.replay_hosts: 33 rows over 4 hosts are 9 for each, less than learner.batch_rows")


def test_a_bad_name_is_reported_where_the_precision_is_measured(made: Path, command) -> None:  # type: ignore[no-untyped-def]
    settings = ("-s", "learner.precision=auto", "-s", "network.encoder=mlpp")
    code, said = command("train", str(made / "good.yaml"), *settings)
    assert_told(code, said, "unknown encoder 'mlpp' (did you mean 'mlp'?)")
