"""The model card of a package: README.md with the header that model hubs read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from league.deploy.export.seat_table import seat_table
from league.deploy.export.strength import CardReturn, Rating, Score, Strength
from league.judge.matches.evaluation import team_labels
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
