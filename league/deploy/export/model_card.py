"""The model card of a package: README.md with the header that model hubs read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from league.deploy.export.strength import CardReturn, Rating, Score, Strength
from league.envs.adapters.seat_forms import SeatForm, SeatFormat
from league.envs.adapters.space_codec import ActionCode, ObservationField
from league.envs.protocol import ActionSpec, EnvSpec
from league.judge.matches.evaluation import team_labels
from league.policies.observation import MASK_FIELD
from league.policies.package import PackageManifest
from league.text_table import TextTable

MAX_SHOWN = 16
"""Members that the card lists; the manifest has all."""


def model_card(manifest: PackageManifest, strength: Strength) -> str:
    """The card in Markdown: what it is, how strong, within which limits, and how it is used."""
    return "\n".join(
        [
            *_header(manifest, strength),
            "",
            f"# {manifest.name} of {manifest.run or 'a snapshot'}: {manifest.game.id}",
            "",
            *_summary(manifest),
            "",
            "## Measured strength",
            "",
            *_ratings(strength.ratings, strength.rated),
            *_scores(strength.scores, strength.greedy, manifest),
            *_returns(strength.returns, strength.greedy),
            *_exact(strength),
            "## Limits",
            "",
            *(f"- {gap}" for gap in strength.gaps),
            "",
            "## Use",
            "",
            *_use(manifest),
            "",
            "## Inside of the network and of graphs",
            "",
            *_interface(manifest),
            "",
        ]
    )


def _header(manifest: PackageManifest, strength: Strength) -> list[str]:
    """The YAML header that model hubs read; every text in quotes, so that no name can break it."""
    lines = ["---", "library_name: league", "pipeline_tag: reinforcement-learning", "tags:"]
    lines += [f"- {tag}" for tag in ("reinforcement-learning", "self-play", "game-playing", _quoted(manifest.game.id))]
    metrics = [
        f"{{type: score, value: {score.score:.4f}, name: {_quoted(f'score against {score.opponent}')}}}"
        for score in strength.scores
    ]
    metrics += [f"{{type: mean_reward, value: {own.mean:.6g}, name: mean return}}" for own in strength.returns[:1]]
    if metrics:
        lines += ["model-index:", f"- name: {_quoted(manifest.name)}", "  results:"]
    for metric in metrics:
        lines += [
            "  - task: {type: reinforcement-learning, name: reinforcement-learning}",
            f"    dataset: {{type: {_quoted(manifest.game.id)}, name: {_quoted(manifest.game.id)}}}",
            f"    metrics: [{metric}]",
        ]
    return [*lines, "---"]


def _quoted(text: str) -> str:
    return json.dumps(text)


def _summary(manifest: PackageManifest) -> list[str]:
    count = len(manifest.members)
    what = f"A mixture of {count} policies, one of which is drawn for each game" if manifest.is_drawn else "A policy"
    kwargs = _options(manifest.game.kwargs)
    lines = [
        f"{what}, trained by self-play in a league on `{manifest.game.id}`{kwargs}, with league "
        f"{manifest.league_version}. It was chosen as `{manifest.name}`: {manifest.reason}.",
        "",
    ]
    rows = [
        (one.name, one.weight, (known := one.snapshot).player, known.role, known.parent or "-", known.trained_steps)
        for one in manifest.members[:MAX_SHOWN]
    ]
    heads = ("member", "weight", "player", "role", "parent", "env steps trained")
    lines += TextTable(heads, rows, (0, 2, 3, 4), ("", ".4g", "", "", "", ",")).markdown()
    return lines + ([f"\n{count - MAX_SHOWN} more are in the manifest."] if count > MAX_SHOWN else [])


def _options(kwargs: Mapping[str, Any]) -> str:
    return f" with {', '.join(f'{key}={value!r}' for key, value in kwargs.items())}" if kwargs else ""


def _ratings(ratings: tuple[Rating, ...], rated: int) -> list[str]:
    if not ratings:
        return []
    rows = [(one.member, one.elo, f"{one.low:.0f} to {one.high:.0f}", one.games) for one in ratings]
    table = TextTable(("member", "Elo", "interval", "games"), rows, forms=("", ".0f", "", ","))
    return [f"Elo among the {rated} policies rated in its run, with 95 % intervals:", "", *table.markdown(), ""]


def _scores(scores: tuple[Score, ...], greedy: bool | None, manifest: PackageManifest) -> list[str]:
    if not scores:
        return []
    teams = team_labels(manifest.game.spec())
    heads = ("opponent", "games", "score", "interval", *(f"as {team}" for team in teams))
    rows = [(one.opponent, one.games, one.score, f"{one.low:.3f} to {one.high:.3f}", *one.by_team) for one in scores]
    table = TextTable(heads, rows, forms=("", "", ".3f", "", *[".3f"] * len(teams)))
    title = f"Scores against bots, {_how(greedy)}, without search (win 1, draw 1/2, loss 0; 95 % intervals):"
    return [title, "", *table.markdown(), ""]


def _returns(returns: tuple[CardReturn, ...], greedy: bool | None) -> list[str]:
    if not returns:
        return []
    rows = [(one.name, one.games, one.mean, f"{one.low:.4g} to {one.high:.4g}") for one in returns]
    table = TextTable(("policy", "games", "mean return", "interval"), rows, forms=("", "", ".4g"))
    return [f"Mean returns of a seat, {_how(greedy)}, without search (95 % intervals):", "", *table.markdown(), ""]


def _how(greedy: bool | None) -> str:
    return "taking the likeliest action" if greedy else "sampling its actions"


def _exact(strength: Strength) -> list[str]:
    if strength.exact is None:
        return []
    return [
        f"Exact NashConv, actions sampled: {strength.exact:.4g} in the rewards of the game. It sums over seats "
        "what a best response to it wins; 0 is an equilibrium.",
        "",
    ]


def _interface(manifest: PackageManifest) -> list[str]:
    heads = ("observation field", "shape", "dtype", "scale", "transform")
    rows = [(one.field, list(one.shape), one.dtype, one.scale, one.transform) for one in manifest.preprocessing]
    lines = TextTable(heads, rows, (0, 1, 2, 4), ("", "", "", ".6g")).markdown()
    mask = f"`action_mask` bool [{manifest.game.facts.actions.num_actions}], true where legal. "
    lines += [
        "",
        f"{mask if manifest.game.facts.has_mask else ''}Cast, scale and transform happen inside of the network.",
        "",
        f"`dist_params` float32 [{manifest.outputs.dist_params}]: {manifest.outputs.meaning}. `value` float32: the "
        "expected discounted return of the seat that acts.",
        "",
    ]
    if manifest.core_state.size:
        lines.append(
            f"`core` float32 [{manifest.core_state.size}] is its memory: zeros at the first decision of an episode, "
            "then the `core` that the last decision of the same seat returned."
        )
    else:
        lines.append("It has no memory.")
    for graph in manifest.graphs:
        lines.append(
            f"\n`{graph.file}` ({graph.kind}, {graph.version}): inputs {', '.join(graph.inputs)}; outputs "
            f"{', '.join(graph.outputs)}; within {graph.parity.max_difference:.2g} of the network over "
            f"{graph.parity.steps} steps of {graph.parity.rows} random legal inputs."
        )
    return lines


def _use(manifest: PackageManifest) -> list[str]:
    seats = manifest.game.facts.seat_names
    call = f'policy.act(observation, mask, seat="{seats[0]}")' if len(seats) > 1 else "policy.act(observation, mask)"
    return [
        "```python",
        "import league",
        "",
        'policy = league.load_policy("PATH_OF_THIS_FOLDER")',
        "policy.reset()  # at the start of every game",
        f"action = {call}",
        "```",
        "",
        "`observation` is what the game shows to a seat, and `action` what it takes. `mask` is the game's, where it "
        "gives one beside the observation; `action_mask` in the observation is found there.",
        "",
        *seat_table(manifest.game.spec()),
        "",
        "`league import PATH_OF_THIS_FOLDER` verifies the folder, and `sha256sum -c SHA256SUMS` its files.",
    ]


MAX_NAMED = 4
"""Seats of a kind that are named."""


def seat_table(spec: EnvSpec) -> list[str]:
    """A table in Markdown, a line for each kind of seat.

    spec: with the format of the game's own, where it has one.
    """
    own = spec.user_format
    names = spec.seat_names or tuple(str(number) for number in range(spec.num_seats))
    kinds: dict[tuple[str, str], list[str]] = {}
    for seat, name in enumerate(names):
        if isinstance(own, SeatFormat):
            kind = _observation(own.forms[seat]), _action(own.forms[seat].code)
        else:
            kind = _fields(spec), _plain_action(spec.actions)
        kinds.setdefault(kind, []).append(name)
    rows = [(_listed(seats), *kind) for kind, seats in kinds.items()]
    return TextTable(("seat", "observation", "action"), rows, range(3)).markdown()


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _observation(form: SeatForm) -> str:
    if len(form.fields) == 1 and not form.fields[0].path:
        return _field(form.fields[0])
    kind = "tuple" if all(isinstance(field.path[0], int) for field in form.fields) else "dict"
    parts = [f"`{'.'.join(map(str, field.path))}` {_field(field)}" for field in form.fields]
    return f"{kind}: {', '.join(parts)}"


def _field(field: ObservationField) -> str:
    if field.one_hot_at is None:
        return f"{field.spec.dtype} {list(field.spec.shape)}"
    if len(field.counts) == 1:
        return _numbers(field.lowest[0], field.counts[0])
    return f"whole numbers [{len(field.counts)}]"


def _numbers(lowest: int, count: int) -> str:
    return f"{lowest} or {lowest + 1}" if count == 2 else f"{lowest} to {lowest + count - 1}"


def _action(code: ActionCode) -> str:
    if code.parts:
        parts = ", ".join(f"`{part.key}` {_action(part.code)}" for part in code.parts)
        return f"{'tuple' if code.is_tuple else 'dict'}: {parts}"
    if code.spec.kind == "categorical":
        return _numbers(code.start, code.spec.num_actions)
    if code.starts is not None:
        return f"whole numbers {list(code.starts.shape)}"
    low, high = code.bounds or (np.float64(code.spec.low), np.float64(code.spec.high))
    return f"{code.dtype} {list(code.spec.shape)} within {np.min(low):g} and {np.max(high):g}"


def _fields(spec: EnvSpec) -> str:
    shown = {name: array for name, array in spec.observations.items() if name not in spec.value_fields}
    parts = [f"`{name}` {array.dtype} {list(array.shape)}" for name, array in shown.items()]
    if spec.has_mask:
        parts.append(f"`{MASK_FIELD}` [{spec.actions.num_actions}]")
    return f"dict: {', '.join(parts)}"


def _plain_action(actions: ActionSpec) -> str:
    if actions.kind == "categorical":
        return _numbers(0, actions.num_actions)
    if actions.kind == "box":
        return f"float32 {list(actions.shape)} within {actions.low:g} and {actions.high:g}"
    return f"whole numbers {list(actions.shape)}"
