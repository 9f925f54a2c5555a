"""The site's sources: docs/, with the parts generated from the code.

    python docs/generate.py [FOLDER]    FOLDER/pages and FOLDER/mkdocs.yml, from which `zensical build` makes
                                        FOLDER/site; FOLDER is target/docs by default

A page may have these marks, each on a separate line:

    <!-- commands -->           every command with its options, from the command line itself
    <!-- cards -->              a table of the cards
    <!-- parameters: NAME -->   every parameter of a card, with its value, meaning and source
    <!-- columns -->            the columns of printed tables (reference/columns.toml)
    <!-- more -->               public names of the Python package that no page of its reference mentions

Console fences become HTML here: the usual highlighter takes a `# ` in a table for a prompt.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import sys
import tomllib
import typing
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import NoneType
from typing import Any

import nicety
from nicety import _native

ROOT = Path(__file__).parent.parent
DOCUMENTS = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
_MARK = re.compile(r"^<!-- (commands|cards|columns|more|parameters: (\S+)) -->$", re.MULTILINE)

# The titles of a spec's sections.
_TITLES = {
    "host": "Host",
    "host.xdp": "XDP in the driver",
    "bus": "Bus",
    "bus.pcie": "PCI Express",
    "bus.pci": "PCI",
    "link": "Link",
    "switch": "Switch",
    "send": "Sending",
    "packet": "Packets",
    "match": "Matching",
    "limits": "Limits of the interface",
    "buffer": "Packet buffer",
    "hpu": "Handler cores",
    "hpu.cycles": "Cycles of instructions and commands",
    "nfp": "Microengines",
    "memory": "Memories",
    "managers": "Channel managers",
    "mailboxes": "Mailboxes",
    "ethernet": "Ethernet port",
    "program": "Control program",
    "pio": "Programmed I/O",
    "dma": "DMA",
    "library": "Library",
    "kernel": "Operating system",
    "driver": "Driver",
    "barrier": "Barrier of the job launcher",
}


def main(folder: Path = ROOT / "target/docs") -> None:
    """Write the pages, pictures and settings of the site into a folder."""
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for name in DOCUMENTS:
        # Their links are relative to the repository, where docs/ is a folder.
        (pages / name).write_text((ROOT / name).read_text().replace("](docs/", "]("))
    for page in pages.rglob("*.md"):
        page.write_text(expand(page.read_text()))
    shutil.copy(ROOT / "mkdocs.yml", folder)


def expand(markdown: str) -> str:
    """A page with its marks replaced."""
    return _MARK.sub(lambda mark: _generated(mark[1], mark[2], markdown), markdown)


def console(source: str, language: str, class_name: str, _options: object, _markdown: object, **_others: Any) -> str:
    """A console block: prompts, typed commands, and their output. Only the commands can be copied."""
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


def _generated(what: str, name: str | None, markdown: str) -> str:
    if name is not None:
        return parameters(name)
    return {"commands": commands, "cards": card_list, "columns": columns, "more": lambda: more(markdown)}[what]()


def more(markdown: str) -> str:
    """Entries for the public names that a page and the other pages of the package's reference lack."""
    markdown += "".join(page.read_text() for page in (ROOT / "docs/reference").glob("python-*.md"))
    names = [name for name in nicety.__all__ if not re.search(rf"nicety(\.\w+)*\.{name}\b", markdown)]
    found = {name: getattr(nicety, name) for name in names if not name.startswith("__")}
    entries = [f"::: {value.__module__}.{name}" for name, value in found.items()]
    return "\n\n".join(["## More", *entries]) if entries else ""


def cards() -> list[dict[str, Any]]:
    """The shipped cards."""
    known: list[dict[str, Any]] = json.loads(_native.specs())
    return known


def card_list() -> str:
    """A table of the cards."""
    rows = ["| card | what it is |", "|---|---|"]
    rows += [f"| [`{card['name']}`]({card['name']}.md) | {card['title']} |" for card in cards()]
    return "\n".join(rows)


def parameters(name: str) -> str:
    """Every parameter of a card, a table per section of its spec."""
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
    # Parameters of a section need not be adjacent.
    sections: dict[str, list[dict[str, Any]]] = {}
    for parameter in card["parameters"]:
        sections.setdefault(parameter["key"].rpartition(".")[0], []).append(parameter)
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
    """Every command: its usage, its description, its arguments and options, as in `--help`."""
    import typer

    from nicety.cli.app import everything

    return "\n".join(_command(typer.main.get_command(everything()), "nicety", None))


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
    # The epilog begins with a mark of click, and a title.
    if examples := (command.epilog or "").splitlines()[2:]:
        yield from ("```console", *(f"$ {line.strip()}" for line in examples), "```", "")
    for each in below:
        yield from _command(command.get_command(context, each), each, context)


def _argument(parameter: Any) -> str:
    """An argument as its metavar, or as its possible words."""
    choices = getattr(parameter.type, "choices", ())
    return parameter.metavar or "|".join(str(choice.value) for choice in choices) or parameter.name.upper()


def columns() -> str:
    """The columns of printed tables, folded by command."""
    tables = tomllib.loads((ROOT / "docs/reference/columns.toml").read_text())["table"]
    lines = []
    for command, found in groupby(tables, key=lambda table: table["command"]):
        anchor = command.partition(",")[0].replace(" ", "-")
        lines += [f"## nicety {command} {{ #{anchor} }}", "", '??? note "Columns"', ""]
        for table in found:
            lines += [f"    **{table['title']}**", ""]
            for kind, cells in (("column", table.get("columns", [])), ("line", table.get("rows", []))):
                if cells:
                    lines += [f"    | {kind} | meaning | unit | field of the JSON |", "    |---|---|---|---|"]
                    lines += [f"    {_column(table, *cell)}" for cell in cells] + [""]
    return "\n".join(lines)


def _column(table: dict[str, Any], heading: str, field: str, unit: str, meaning: str | None = None) -> str:
    base = table.get("base", "rows[]")
    path = field.removeprefix("@") if field.startswith("@") or not base else f"{base}.{field}"
    text = meaning or _described(table["report"], path)
    return f"| {_escaped(heading)} | {text} | {_escaped(unit)} | `{path}` |"


def _described(report: str, path: str) -> str:
    """The description of a field in the types of a report."""
    kind, text = _type(report), ""
    for part in path.split("."):
        name = part.removesuffix("[]")
        attributes = re.findall(r"^ +(\w+): (.*(?:\n {12}.*)*)", kind.__doc__ or "", re.MULTILINE)
        described = {name: " ".join(text.split()) for name, text in attributes}
        text, kind = described[name], _inner(typing.get_type_hints(kind)[name])
    return text


def _type(report: str) -> Any:
    from nicety._generated import types
    from nicety.apps import offload
    from nicety.program.script import report as script
    from nicety.usecases import report as usecases

    return next(getattr(module, report) for module in (types, offload, script, usecases) if hasattr(module, report))


def _inner(hint: Any) -> Any:
    """The type of a field, or of the items of its list."""
    found = [each for each in typing.get_args(hint) if each is not NoneType]
    return _inner(found[0]) if found else hint


if __name__ == "__main__":
    if any(argument.startswith("-") for argument in sys.argv[1:]):
        sys.exit("usage: generate.py [FOLDER]")
    main(*map(Path, sys.argv[1:2]))
