"""What of the site comes from the code: commands, cards, and the documents of the repository's root.

MkDocs calls the functions whose names begin with `on_`. A page may hold these marks, each on a line of its own:

    <!-- commands -->           every command with its options, from the command line itself
    <!-- cards -->              a table of the cards
    <!-- parameters: NAME -->   every parameter of a card, with its value, meaning and source
    <!-- more -->               what the Python package offers and the page does not name

A card without a page of its own gets one that is nothing but its parameters.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nicety
from nicety import _native

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parent.parent
DOCUMENTS = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
SECTIONS = {"Guides": "guide", "Cards": "cards", "Studies": "studies", "Parts": "parts", "Reference": "reference"}
_MARK = re.compile(r"^<!-- (commands|cards|more|parameters: (\S+)) -->$", re.MULTILINE)

# What the sections of a spec are about.
_TITLES = {
    "host": "Host",
    "bus": "Bus",
    "bus.pcie": "PCI Express",
    "link": "Link",
    "switch": "Switch",
    "send": "Sending",
    "packet": "Packets",
    "match": "Matching",
    "limits": "Limits of the interface",
    "buffer": "Packet buffer",
    "hpu": "Handler processors",
    "hpu.cycles": "Cycles of instructions and commands",
    "barrier": "Barrier of the job launcher",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Have console blocks shown by `console`: the usual colours take a `# ` in a table for a prompt."""
    fence = {"name": "console", "class": "highlight", "format": console}
    config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [fence]}
    return config


def console(source: str, language: str, class_name: str, _options: object, _markdown: object, **_others: Any) -> str:
    """A console block: prompts, what is typed behind them, and what is printed. What is typed is what can be copied."""
    lines, typed = [], []
    typing = False
    for line in source.splitlines():
        if line.startswith("$ ") or typing:
            prompt = "" if typing else '<span class="gp">$ </span>'
            text = line.removeprefix("" if typing else "$ ")
            typed.append(text)
            lines.append(f'{prompt}<span class="typed">{html.escape(text)}</span>\n')
            typing = line.endswith("\\")
        else:
            lines.append(f'<span class="go">{html.escape(line)}</span>\n')
    copied = html.escape("\n".join(typed)).replace("\n", "&#10;")
    code = f"<pre><code>{''.join(lines)}</code></pre>"
    return f'<div class="language-{language} {class_name}" data-copy="{copied}">{code}</div>'


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are no files of docs/."""
    from mkdocs.structure.files import File

    for name in DOCUMENTS:
        files.append(File.generated(config, name, content=(ROOT / name).read_text()))
    for card in cards():
        path = f"cards/{card['name']}.md"
        if files.get_file_from_path(path) is None:
            text = f"# {card['name']}\n\n{card['title']}.\n\n<!-- parameters: {card['name']} -->\n"
            files.append(File.generated(config, path, content=text))
    config.nav = complete(config.nav or [], [file.src_uri for file in files.documentation_pages()])
    return files


def complete(nav: list[Any], pages: list[str]) -> list[Any]:
    """The navigation with every page of a section's folder in it, and without sections that have no page."""
    done = []
    for item in nav:
        ((title, entries),) = item.items()
        folder = SECTIONS.get(title)
        if folder is not None:
            below = sorted(page for page in pages if page.startswith(f"{folder}/"))
            entries = [*entries, *(page for page in below if page not in entries)]
        if entries:
            done.append({title: entries})
    return done


def on_page_markdown(markdown: str, **_others: Any) -> str:
    """Put in what the marks of a page ask for."""
    return _MARK.sub(lambda mark: _generated(mark[1], mark[2], markdown), markdown)


def _generated(what: str, name: str | None, markdown: str) -> str:
    if name is not None:
        return parameters(name)
    return {"commands": commands, "cards": card_list, "more": lambda: more(markdown)}[what]()


def more(markdown: str) -> str:
    """Entries for the public names that a page does not have."""
    names = [name for name in nicety.__all__ if not re.search(rf"nicety(\.\w+)?\.{name}\b", markdown)]
    found = {name: getattr(nicety, name) for name in names if not name.startswith("__")}
    entries = [f"::: {value.__module__}.{name}" for name, value in found.items()]
    return "\n\n".join(["## More", *entries]) if entries else ""


def cards() -> list[dict[str, Any]]:
    """The cards that come with nicety."""
    known: list[dict[str, Any]] = json.loads(_native.specs())
    return known


def card_list() -> str:
    """A table of the cards."""
    rows = ["| card | what it is |", "|---|---|"]
    rows += [f"| [`{card['name']}`]({card['name']}.md) | {card['title']} |" for card in cards()]
    return "\n".join(rows)


def parameters(name: str) -> str:
    """Every parameter of a card, a table for each section of its spec."""
    card = json.loads(_native.spec_show(name, []))
    lines = []
    if card["paper"]:
        lines += [f"Paper: {card['paper']}.", ""]
    lines += [f"Source: {card['source']}.", ""] if card["source"] else []
    if card["extends"]:
        bases = ", ".join(f"[`{base}`]({base}.md)" for base in card["extends"])
        own = [f"`{p['key']}`" for p in card["parameters"] if _file(p) == f"specs/{name}.toml"]
        lines += [f"Extends {bases}; its own are {_listed(own)}.", ""]
    lines += [f"Hash of all values: `{card['hash'][:16]}`...", ""]
    order = list(_TITLES)
    grouped = groupby(card["parameters"], key=lambda p: p["key"].rpartition(".")[0])
    sections = {section: list(found) for section, found in grouped}
    for section in sorted(sections, key=lambda name: order.index(name) if name in order else len(order)):
        found = sections[section]
        lines += [f"### {_TITLES.get(section, section)}", ""]
        lines += ["| key | value | what it is | kind | source |", "|---|---|---|---|---|"]
        lines += [_parameter(p) for p in found]
        lines.append("")
    return "\n".join(lines)


def _parameter(p: dict[str, Any]) -> str:
    allowed = f' <span class="note">({_escaped(p["allowed"])})</span>' if p["allowed"] else ""
    words = {"against": "against ", "replaces": "instead of ", "note": ""}
    extra = [f"{word}{p[key]}" for key, word in words.items() if p[key]]
    note = f' <span class="note">{_escaped("; ".join(extra))}</span>' if extra else ""
    cells = [
        f"`{p['key']}`",
        f'<span class="value">{_escaped(p["value"])}</span>',
        f"{_escaped(p['doc'])}{allowed}",
        f'<span class="kind {p["kind"]}">{p["kind"]}</span>',
        f"{_escaped(p['source'])}{note}",
    ]
    return f"| {' | '.join(cells)} |"


def _file(parameter: dict[str, Any]) -> str:
    return str(parameter["where"]).rpartition(":")[0]


def _escaped(text: str) -> str:
    text = html.escape(str(text), quote=False).replace("|", "&#124;")
    return re.sub(r"([*_`\[\]])", r"\\\1", text)


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else "none"


def commands() -> str:
    """Every command: its usage, what it does, its arguments and options, as `--help` has them."""
    import typer

    from nicety.cli.app import app

    return "\n".join(_command(typer.main.get_command(app), "nicety", None))


def _command(command: Any, name: str, parent: Any) -> Iterator[str]:
    import typer

    context = typer.Context(command, info_name=name, parent=parent)
    path = context.command_path
    parameters = [p for p in command.get_params(context) if not p.hidden and p.name != "help"]
    arguments = [p for p in parameters if p.param_type_name == "argument"]
    options = [p for p in parameters if p.param_type_name == "option"]
    below = command.list_commands(context) if hasattr(command, "list_commands") else []
    pieces = [path, *(["[OPTIONS]"] if options else []), *(["COMMAND"] if below else []), *map(_argument, arguments)]
    yield f"## {path}"
    yield ""
    yield _escaped((command.help or "").strip())
    yield ""
    yield f"```text\n{' '.join(pieces)}\n```"
    yield ""
    if below:
        yield "Commands: " + ", ".join(f"[`{each}`](#{path.replace(' ', '-')}-{each})" for each in below) + "."
        yield ""
    for title, found in (("argument", arguments), ("option", options)):
        if found:
            yield f"| {title} | meaning |"
            yield "|---|---|"
            for p in found:
                declared, meaning = p.get_help_record(context)
                if p in arguments:
                    declared, meaning = _argument(p), p.help or ""
                yield f"| <code>{html.escape(declared).replace('|', '&#124;')}</code> | {_escaped(meaning)} |"
            yield ""
    for each in below:
        yield from _command(command.get_command(context, each), each, context)


def _argument(parameter: Any) -> str:
    """An argument as its metavar, or as the words it may be."""
    choices = getattr(parameter.type_descriptor.annotation, "__members__", {})
    return parameter.metavar or "|".join(str(choice.value) for choice in choices.values()) or parameter.name.upper()
