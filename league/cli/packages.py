"""The commands that take policies out of a run and bring them in: export, import, serve-policy and engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from league.cli.options import Json, Reason, SearchOption, games_line, names_in, with_trust
from league.errors import LeagueError


@with_trust("source")
def export(
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN[:NAME]",
            help="Run folder with a name as for `league eval`, by default auto; or the folder of a snapshot.",
            show_default=False,
        ),
    ],
    target: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to make.", show_default=False)],
    onnx: Annotated[bool, typer.Option("--onnx", help="Also as ONNX, checked against the network.")] = False,
    torch_export: Annotated[
        bool, typer.Option("--torch-export", help="Also as a graph of torch.export, checked likewise.")
    ] = False,
    numpy: Annotated[
        bool, typer.Option("--numpy", help="Also as one Python file that needs numpy alone, checked likewise.")
    ] = False,
    web: Annotated[
        bool, typer.Option("--web", help="Also as one HTML file that plays it in a browser, for any static site.")
    ] = False,
    games: Annotated[int, typer.Option(min=0, help="Games against each bot for the card; 0 for none.")] = 100,
    bots: Annotated[str, typer.Option(help="Comma-separated; empty for none.")] = "random,tactical,mcts:25",
    limit: Annotated[float, typer.Option("--limit", min=0.0, metavar="S", help="Longest time for these games.")] = 30.0,
    seed: Annotated[int, typer.Option(min=0, help="Of these games.")] = 0,
) -> None:
    """Export a policy or a mixture as a folder with weights, manifest and model card."""
    from league.deploy.export.exporter import export_policy
    from league.policies.source_text import parse_source

    path, player = parse_source(source)
    wanted = {"onnx": onnx, "torch_export": torch_export, "numpy": numpy, "web": web}
    with games_line(limit_s=limit) as progress:
        exported = export_policy(
            path,
            target,
            player=player,
            graphs=[kind for kind, asked in wanted.items() if asked],
            games=games,
            bots=names_in(bots),
            seed=seed,
            limit_s=limit,
            progress=progress,
        )
    typer.echo(exported.text())


@with_trust("package")
def import_package(
    package: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder that `league export` made.", show_default=False)
    ],
    into: Annotated[
        Path | None, typer.Option("--into", metavar="RUN", help="Admit it to this live run as a fixed opponent.")
    ] = None,
    name: Annotated[str, typer.Option("--as", metavar="NAME", help="Its name there; by default that of DIR.")] = "",
    probability: Annotated[float, typer.Option(help="Fraction of the games of those that meet it.")] = 0.05,
    role: Annotated[str, typer.Option(help="The role that meets it; every one by default.")] = "",
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Verify an exported policy: digests, limits and networks; with --into, admit it to a live league."""
    from league.deploy.export.importer import verify_package
    from league.run.control.client import operate

    if into is None and name:
        raise LeagueError("--as names the policy in a run: give the run by --into.")
    found = verify_package(package)
    typer.echo(found.to_json() if as_json else found.text())
    if into is not None:
        arguments = {
            "source": str(package.absolute()),
            "name": name or package.absolute().name.lower(),
            "player": "auto",
            "role": role,
            "probability": probability,
        }
        done = operate(into, "admit", arguments, reason=reason)
        typer.echo(f"{done['words']} (event {done['first_event']})", err=as_json)


@with_trust("source")
def serve_policy(
    source: Annotated[
        str,
        typer.Argument(
            metavar="CONTENDER",
            help="RUN:NAME, the folder of a snapshot, or one that `league export` made.",
            show_default=False,
        ),
    ],
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="HOST:PORT, with a token; unix:PATH, for this user alone.")
    ] = "127.0.0.1:8421",
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="Holds the token; made where it is missing. By default printed.")
    ] = None,
    host: Annotated[
        list[str] | None, typer.Option("--host", metavar="NAME", help="Also answer to this name; repeatable.")
    ] = None,
    tls_cert: Annotated[str, typer.Option(metavar="FILE", help="Certificate in PEM.")] = "",
    tls_key: Annotated[str, typer.Option(metavar="FILE", help="Its key in PEM.")] = "",
    max_batch: Annotated[int, typer.Option("--max-batch", min=1, help="Decisions computed together.")] = 64,
    deadline_ms: Annotated[
        float, typer.Option("--deadline-ms", min=0.0, help="Longest wait of a decision for others.")
    ] = 2.0,
    max_waiting: Annotated[int, typer.Option("--max-waiting", min=1, help="Decisions that may wait.")] = 1024,
    max_sessions: Annotated[int, typer.Option("--max-sessions", min=1, help="Games at once, with memory.")] = 10_000,
    greedy: Annotated[bool, typer.Option("--greedy", help="Take the likeliest action unless asked to draw.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of draws.")] = 0,
) -> None:
    """Serve a policy over HTTP: observations in, actions out, computed in batches; a signal ends it."""
    from league.deploy.serving.app import ServingConfig
    from league.deploy.serving.served_policy import ServedPolicy
    from league.deploy.serving.server import Address, serve_policy
    from league.http.address import Listening
    from league.policies.exact.load_policy import load_policy
    from league.policies.source_text import parse_source

    unix = Path(listen.removeprefix("unix:")) if listen.startswith("unix:") else None
    where = unix or Listening.at(listen, tls_cert=tls_cert, tls_key=tls_key, hosts=tuple(host or ()))
    path, player = parse_source(source)
    policy = ServedPolicy(load_policy(path, player), greedy=greedy, seed=seed)
    config = ServingConfig(
        max_batch=max_batch, deadline_ms=deadline_ms, max_waiting=max_waiting, max_sessions=max_sessions
    )

    def tell(address: Address) -> None:
        at = f"{address.url} (token {address.token})" if address.token else f"unix:{address.socket_path}"
        typer.echo(f"{policy.name} of {policy.spec.env_id} is served at {at}")

    serve_policy(policy, config, where=where, token_file=token_file, ready=tell)


@with_trust("contender")
def engine(
    contender: Annotated[
        str,
        typer.Argument(
            metavar="CONTENDER",
            help="RUN:NAME, a folder of a snapshot or of an exported policy, or bot:NAME.",
            show_default=False,
        ),
    ],
    protocol: Annotated[
        str, typer.Option("--protocol", metavar="NAME", help="gtp or uci; by default uci for chess and gtp for others.")
    ] = "",
    env: Annotated[str, typer.Option("--env", metavar="ENV_ID", help="The game, for a bot.")] = "",
    greedy: Annotated[bool, typer.Option("--greedy/--sample", help="Take the likeliest action, or draw one.")] = True,
    search: SearchOption = 0,
    seed: Annotated[int, typer.Option(min=0, help="Of draws.")] = 0,
) -> None:
    """Speak GTP or UCI on standard input and output, for boards, servers and tools of other people."""
    from league.deploy.engines.run_engine import run_engine

    run_engine(contender, protocol=protocol, env=env, greedy=greedy, search=search, seed=seed)


def zoo(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FOLDER...]", help="Of packages; by default $LEAGUE_ZOO and what is installed."),
    ] = None,
    index: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Fetch the packages of an index, or of hf://OWNER/NAME, each checked by its digest."
        ),
    ] = "",
    write_index: Annotated[
        bool, typer.Option("--write-index", help="Write index.json into FOLDER, which a web server then offers.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the trained policies that `zoo:NAME` plays wherever a policy is asked for, with their measured strength."""
    import msgspec

    from league.config.contender_names import HUB
    from league.deploy.export.shelf import read_shelf
    from league.policies.fetched.hub import fetch_hub
    from league.policies.fetched.zoo_index import INDEX_FILE, fetch_zoo, index_of, named_indexes
    from league.store.storage import Storage

    if write_index:
        if not folders or index:
            raise LeagueError("--write-index is for folders: name one.")
        for folder in folders:
            text = msgspec.json.format(msgspec.json.encode(index_of(folder)))
            Storage().atomic_write_bytes(folder / INDEX_FILE, text + b"\n")
    if index.startswith(HUB):
        folder = fetch_hub(index)
        typer.echo(f"{index} is in {folder}")
        return
    fetched = [fetch_zoo(address) for address in ([index] if index else [] if folders else named_indexes())]
    report = read_shelf([*(folders or ()), *(fetched if index else ())])
    typer.echo(report.to_json() if as_json else report.text())


def push(
    package: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder that `league export` made.", show_default=False)
    ],
    target: Annotated[
        str, typer.Argument(metavar="hf://OWNER/NAME", help="Repository; made where it is missing.", show_default=False)
    ],
    private: Annotated[bool, typer.Option("--private", help="Of a new repository.")] = False,
) -> None:
    """Put an exported policy on a model hub, from which `league.load_policy("hf://OWNER/NAME")` takes it."""
    from league.deploy.export.hub_push import push_package

    typer.echo(f"pushed: {push_package(package, target, private=private)}")
