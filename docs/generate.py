"""Writes the pages that are generated from the code: `python docs/generate.py`. A test compares them with the code."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import typer.main

from league.cli.main import PANELS, app
from league.config import reference

DOCS = Path(__file__).parent
HEADS = re.compile(r"^## (.+)$", re.MULTILINE)
CONTENTS = re.compile(r"^Contents:.*?(?=\n\n)", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"```(python|py|yaml|js)\n(#|//) docs/examples/(\S+)\n.*?```", re.DOTALL)


def configuration() -> str:
    """docs/configuration.md."""
    return reference.markdown()


def commands() -> str:
    """docs/commands.md: every command with its arguments and options."""
    group: Any = typer.main.get_command(app)
    lines = [
        "# Commands",
        "",
        "Generated from the code by `python docs/generate.py`; a test compares the two.",
        "",
        "User errors print one sentence and exit with code 2.",
        "",
    ]
    for head, names in PANELS.items():
        lines += [f"**{head}**", "", "| command | what it does |", "|---|---|"]
        lines += [
            f"| [`league {name}`](#league-{name.replace(' ', '-')}) | {_cell(command.help)} |"
            for name, command in _by_name(group)
            if name.partition(" ")[0] in names
        ]
        lines.append("")
    del lines[-1]
    for name, command in _by_name(group):
        lines += ["", f"## league {name}", "", command.help.strip(), "", f"    {_usage(name, command)}", ""]
        lines += ["| argument or option | meaning | default |", "|---|---|---|"]
        for parameter in command.params:
            if parameter.name != "help":
                lines.append(f"| `{_names(parameter)}` | {_cell(parameter.help)} | {_default(parameter)} |")
    return "\n".join(lines) + "\n"


def with_examples(text: str) -> str:
    """A page with each code block that begins with `# docs/examples/NAME` filled with that file."""

    def fill(found: re.Match[str]) -> str:
        content = (DOCS / "examples" / found[3]).read_text()
        return f"```{found[1]}\n{found[2]} docs/examples/{found[3]}\n{content}```"

    return EXAMPLE.sub(fill, text)


def with_contents(text: str) -> str:
    """A page whose paragraph that begins with "Contents:" names its sections, with links."""
    bare = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    links = [f"[{head}](#{re.sub('[^a-z0-9 -]', '', head.lower()).replace(' ', '-')})" for head in HEADS.findall(bare)]
    lines = textwrap.wrap(f"Contents: {'; '.join(links)}.", width=118, break_long_words=False, break_on_hyphens=False)
    return CONTENTS.sub(lambda _: "\n".join(lines), text, count=1)


def pages() -> dict[Path, str]:
    """Every generated page and its text."""
    extending, serving, operating = DOCS / "extending.md", DOCS / "serving.md", DOCS / "operating.md"
    return {
        DOCS / "configuration.md": configuration(),
        DOCS / "commands.md": commands(),
        extending: with_examples(with_contents(extending.read_text())),
        operating: with_contents(operating.read_text()),
        serving: with_examples(serving.read_text()),
    }


def _by_name(group: Any, prefix: str = "") -> list[tuple[str, Any]]:
    """(full name, command) of every command, those of a group in its place."""
    found: list[tuple[str, Any]] = []
    for name, command in group.commands.items():
        inner = hasattr(command, "commands")
        found += _by_name(command, f"{prefix}{name} ") if inner else [(f"{prefix}{name}", command)]
    return found


def _usage(name: str, command: Any) -> str:
    arguments = [_names(parameter) for parameter in command.params if parameter.param_type_name == "argument"]
    return " ".join(["league", name, *arguments, "[OPTIONS]"])


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    flags = ", ".join(parameter.opts) + "".join(f" / {other}" for other in parameter.secondary_opts)
    kinds = {int: "N", float: "N", Path: "PATH"}
    value = parameter.metavar or kinds.get(parameter.type_descriptor.annotation, "TEXT")
    return flags if parameter.is_flag else f"{flags} {value}"


def _default(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return "required" if parameter.required else ""
    if parameter.required:
        return "required"
    if isinstance(parameter.show_default, str):
        return f"`{parameter.show_default}`"
    return "" if parameter.is_flag or parameter.default is None else f"`{parameter.default}`"


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
