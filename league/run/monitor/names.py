"""Every metric that the platform reports: its name, unit and meaning, once. A sink takes no other name.

`league/...` is of the whole run, `probe/<yardstick>/...` of one yardstick. `player/<player>/...` and
`learner/<player>/...` exist once per player, `player/<player>/seat_<number>/...` once per seat of the game, and
`player/<player>/versus/<opponent>` once per other player. `eval/<export>/<opponent>/...` is of the last evaluation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """A number that is reported over time.

    Fields:
      name: of the metric. In it `{player}` and `{opponent}` stand for players' ids, `{seat}` for the number of a seat.
        `{yardstick}` stands for what a probe measures by.
      unit: "" for a pure number.
      meaning: one line for people.
      best: "max" or "min" where the best value so far is worth keeping, else "".
    """

    name: str
    unit: str
    meaning: str
    best: str = ""

    def of_yardstick(self, yardstick: str) -> str:
        """The name for one yardstick."""
        return self.name.replace("{yardstick}", yardstick)

    def of(self, player: str, *, seat: int = 0, opponent: str = "") -> str:
        """The name for one player, and for one seat or opponent where it is of these."""
        return self.name.replace("{player}", player).replace("{seat}", str(seat)).replace("{opponent}", opponent)


ENV_STEPS = Metric(
    "league/env_steps", "steps", "steps of all games, in each of which one seat or several decide; the x axis"
)
SETTLING_STEPS = Metric(
    "league/settling_steps", "steps", "steps of the rating games after training, in no other count of steps"
)
STEPS_PER_S = Metric("league/steps_per_s", "steps/s", "env steps per second, recent")
GAMES = Metric("league/games", "games", "games whose outcomes are in the journal")
ABORTED = Metric("league/aborted_games", "games", "games thrown away because their env failed")
TRUNCATED = Metric("league/truncated_games", "games", "games that a time limit ended")
REFUSED = Metric("league/refused_results", "leases", "answers refused: late, repeated or of an earlier daemon")
HOSTS_LOST = Metric("league/hosts_lost", "hosts", "hosts lost and replaced since the daemon's start")
PLAYERS = Metric("league/players", "players", "members that learn")
SNAPSHOTS = Metric("league/snapshots", "snapshots", "frozen members")
OPEN_LEASES = Metric("league/open_leases", "leases", "leases being worked on")
JOURNAL_SEQ = Metric("league/journal_seq", "events", "durable events")
ELAPSED_S = Metric("league/elapsed_s", "s", "time of training, earlier parts of a resumed run included")
CORE_S = Metric("league/core_seconds", "s", "processor time of the run's processes, earlier parts included")
DISK_FREE = Metric("league/disk_free_bytes", "bytes", "free space on the disk of the run folder")
BEST_RATING = Metric("league/best_rating_elo", "Elo", "rating of the best snapshot", best="max")

RATING = Metric("player/{player}/rating_elo", "Elo", "rating of the player's newest rated snapshot", best="max")
RATING_LOW = Metric("player/{player}/rating_low_elo", "Elo", "lower end of the rating's 95 % interval")
RATING_HIGH = Metric("player/{player}/rating_high_elo", "Elo", "upper end of the rating's 95 % interval")
WIN_RATE = Metric("player/{player}/win_rate", "", "mean win rate over its opponents, draws 1/2")
VERSUS = Metric("player/{player}/versus/{opponent}", "", "win rate against another player as both play now, draws 1/2")
RETURN_MEAN = Metric(
    "player/{player}/return_mean",
    "",
    "undiscounted return of an episode, mean over its last 1,000 games",
)
SEAT_RETURN_MEAN = Metric("player/{player}/seat_{seat}/return_mean", "", "the same for one of its seats")
EPISODE_LENGTH = Metric(
    "player/{player}/episode_length_mean", "decisions", "decisions of all seats in one of its last 1,000 games"
)
SCORE = Metric("player/{player}/score", "", "mean score against the opponents of its last games, as they came")
PLAYER_SNAPSHOTS = Metric("player/{player}/snapshots", "snapshots", "snapshots of the player")
TRUNCATED_FRACTION = Metric(
    "player/{player}/truncated_fraction", "", "fraction of its own leases' games that a time limit ended"
)
GENERATION = Metric("player/{player}/generation", "", "resets of the player so far")

VERSION = Metric("learner/{player}/version", "updates", "updates since the start or the last reset")
TRAINED_STEPS = Metric(
    "learner/{player}/trained_steps", "decisions", "recorded decisions that it has learnt from, lost ones included"
)
LOST_STEPS = Metric("learner/{player}/lost_steps", "decisions", "those of them that falls back to a restart state lost")
SAMPLED_STEPS = Metric(
    "learner/{player}/sampled_steps", "decisions", "learnt from since the start, a replayed one as often as it was"
)
LOSS_POLICY = Metric("learner/{player}/loss_policy", "", "policy gradient loss per valid step")
LOSS_VALUE = Metric("learner/{player}/loss_value", "", "half the squared value error per valid step")
ENTROPY = Metric("learner/{player}/entropy", "nats", "entropy of the policy per valid step")
KL = Metric("learner/{player}/kl", "nats", "divergence of the behaviour policy from the target policy")
TEACHER_KL = Metric("learner/{player}/teacher_kl", "nats", "divergence of the teacher from the policy, 0 without one")
RHO_CLIP_FRACTION = Metric(
    "learner/{player}/rho_clip_fraction", "", "fraction of steps whose importance ratio was clipped"
)
EFFECTIVE_SAMPLE_FRACTION = Metric(
    "learner/{player}/effective_sample_fraction", "", "effective over actual sample size"
)
GRADIENT_NORM = Metric("learner/{player}/gradient_norm", "", "global gradient norm before clipping")
LAG_MEAN = Metric("learner/{player}/lag_mean", "updates", "mean policy lag of the trained steps")
LAG_MAX = Metric("learner/{player}/lag_max", "updates", "largest policy lag in the batch")
STALE_STEPS = Metric("learner/{player}/stale_steps", "decisions", "decisions masked out as too old")
SKIPPED = Metric("learner/{player}/skipped_updates", "updates", "updates skipped as non-finite")
SKIPPED_REPLICAS = Metric(
    "learner/{player}/skipped_replicas", "replicas", "replicas that left the last update out as non-finite"
)
SENT_BYTES = Metric(
    "learner/{player}/sent_bytes", "bytes/decision", "weights and gradients sent between replicas, all of them together"
)
GRADIENT_LAG = Metric(
    "learner/{player}/gradient_lag", "updates", "mean steps of a server between the weights of a gradient and its use"
)
DROPPED_GRADIENTS = Metric(
    "learner/{player}/dropped_gradients", "gradients", "gradients of replicas discarded as stale or as outliers"
)
REFUSED_CHUNKS = Metric("learner/{player}/refused_chunks", "chunks", "chunks refused as damaged since the host's start")
LEARNING_RATE = Metric("learner/{player}/learning_rate", "", "step size")
ENTROPY_COST = Metric("learner/{player}/entropy_cost", "", "weight of the entropy")

PROBE_VALUE = Metric(
    "probe/{yardstick}/value", "", "of the newest snapshot that was measured: a score, or a loss where less is better"
)
PROBE_CORE_S = Metric("league/probe_core_seconds", "s", "processor time of all probes")
PROBE_FRACTION = Metric("league/probe_fraction", "", "of the processor time of the run, what probes took")

EVAL_SCORE = Metric(
    "eval/{player}/{opponent}/score",
    "",
    "of an export in the last evaluation, draws 1/2; for one team its return",
)
EVAL_LOW = Metric("eval/{player}/{opponent}/score_low", "", "lower end of its 95 % interval")
EVAL_HIGH = Metric("eval/{player}/{opponent}/score_high", "", "upper end of its 95 % interval")
EVAL_GAMES = Metric("eval/{player}/{opponent}/games", "games", "games of that match")

_SEAT = re.compile(r"seat_[0-9]+\Z")
METRICS: Mapping[str, Metric] = {value.name: value for value in list(globals().values()) if isinstance(value, Metric)}
"""Name -> metric."""


def metric_of(name: str) -> Metric | None:
    """The metric behind a reported name, with `{player}` for its player's id, and so on; None where there is none."""
    parts = name.split("/")
    if len(parts) == 4 and parts[0] == "eval":
        name = f"eval/{{player}}/{{opponent}}/{parts[3]}"
    elif len(parts) == 3 and parts[0] == "probe":
        name = f"probe/{{yardstick}}/{parts[2]}"
    elif len(parts) == 3:
        name = f"{parts[0]}/{{player}}/{parts[2]}"
    elif len(parts) == 4 and parts[2] == "versus":
        name = VERSUS.name
    elif len(parts) == 4:
        name = f"{parts[0]}/{{player}}/{_SEAT.sub('seat_{seat}', parts[2])}/{parts[3]}"
    return METRICS.get(name)
