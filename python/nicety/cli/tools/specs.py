"""`nicety specs`: the cards."""

from __future__ import annotations

import json
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nicety.cli.options import GROUPS, Csv, Json, Overrides, Plot, complete_cards, group
from nicety.errors import InputError
from nicety.shared.checks import one_of

if TYPE_CHECKING:
    from nicety.cli.files import Files

specs = group(GROUPS["specs"])


_Card = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A card's name, or the path of a spec file.", autocompletion=complete_cards),
]


@specs.callback()
def _list(context: typer.Context, as_json: Json = False) -> None:
    if context.invoked_subcommand is not None:
        return
    from nicety import _native
    from nicety.cli.output import print_json, say
    from nicety.show.columns import align

    known = json.loads(_native.specs())
    if as_json:
        print_json(known)
        return
    say("\n".join(align([[spec["name"], spec["title"]] for spec in known])) + "\n")


@specs.command("show")
def _show(
    name: _Card,
    overrides: Overrides = None,
    as_json: Json = False,
) -> None:
    """Print every value of a card with its source and the evidence for it."""
    from nicety import _native
    from nicety.cli.output import print_json, say
    from nicety.shared.text import printable
    from nicety.show.columns import align

    spec = json.loads(_native.spec_show(name, overrides or []))
    if as_json:
        print_json(spec)
        return
    heading = [f"{spec['name']}: {spec['title']}"]
    heading += [f"{what}: {spec[what]}" for what in ("paper", "source") if spec[what]]
    if spec["extends"]:
        heading.append(f"extends {', '.join(spec['extends'])}")
    heading.append(f"hash {spec['hash']}")
    rows = [["# key", "value", "kind", "source"]]
    rows += [[p["key"], p["value"], p["kind"], _source(p)] for p in spec["parameters"]]
    # A title may have line breaks; here each heading is one line.
    lines = [f"# {printable(line)}" for line in heading]
    say("\n".join([*lines, "", *align(rows)]) + "\n")


def _source(parameter: dict[str, Any]) -> str:
    """Return the source of a value, and in parentheses the other known facts about the value."""
    extra = [
        f"{what} {parameter[key]}" if what else parameter[key]
        for what, key in (("against", "against"), ("instead of", "replaces"), ("", "note"))
        if parameter[key]
    ]
    source: str = parameter["source"]
    return f"{source} ({'; '.join(extra)})" if extra else source


@specs.command("diff")
def _diff(
    one: Annotated[
        str,
        typer.Argument(metavar="A", help="A card's name, or the path of a spec file.", autocompletion=complete_cards),
    ],
    other: Annotated[str, typer.Argument(metavar="B", help="The other card.", autocompletion=complete_cards)],
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a value of B, for example hpu.cores=8."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the keys in which two cards differ, with both values. Equal values in other units are no difference."""
    from nicety.cli.output import print_json, say
    from nicety.shared.cards import differences
    from nicety.show.columns import align

    found = differences(one, other, overrides=overrides or [])
    if as_json:
        print_json(found)
        return
    if not found:
        say(f"{one} and {other}: the same values\n")
        return
    rows = [["# key", one, other, "meaning"]]
    rows += [
        [each["key"], *("-" if value is None else value for value in each["values"]), each["doc"]] for each in found
    ]
    say("\n".join(align(rows)) + "\n")


@specs.command("new")
def _new(
    base: Annotated[
        str,
        typer.Argument(
            metavar="FROM", help="The card to begin with: a name, or a path.", autocompletion=complete_cards
        ),
    ],
    file: Annotated[
        Path | None, typer.Argument(metavar="[NAME.toml]", help="The file to write; by default my-FROM.toml.")
    ] = None,
) -> None:
    """Write a spec file that extends a card: each value is a comment with its meaning, to be edited.

    An existing file is not overwritten.
    """
    from nicety.cli.output import say
    from nicety.shared.cards import write_new

    target = file or Path(f"my-{Path(base).stem if base.endswith('.toml') else base}.toml")
    write_new(base, target)
    say(f"{target}: extends {base}; edit it, and write --nic {_as_argument(target)}\n")


def _as_argument(file: Path) -> str:
    """Return the path of a spec file as a word of a shell's command line. A name without a folder would be a card's."""
    return shlex.quote(str(file if file.is_absolute() or len(file.parts) > 1 else f"./{file}"))


@specs.command("schema")
def _schema() -> None:
    """Print the JSON schema of spec files, for completion and checks in editors by taplo.

    Write it to a file, card.json, and put "#:schema ./card.json" in line 1 of a spec file. VS Code needs the extension
    Even Better TOML.
    """
    from nicety.cli.output import print_json
    from nicety.shared.cards import schema

    print_json(schema())


@specs.command("check")
def _check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The path of a spec file.")],
) -> None:
    """Check a spec file, and report the place and the correction of each error."""
    from nicety import _native
    from nicety.cli.output import say

    if Path(file).is_dir():
        raise InputError(f"{file}: this is a folder; name a spec file in it, such as {Path(file) / 'card.toml'}")
    _native.spec_check(file)
    say(f"{file}: ok\n")


@specs.command("score")
def _score(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A card with published measurements, for example nfp-6000.")
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option("--rows", metavar="FILE.csv", help="Own measurements in place of the shipped rows."),
    ] = None,
    tests: Annotated[
        list[str] | None,
        typer.Option("--test", metavar="TEST[,TEST]", help="Compare only these tests, for example LAT_DMA_RD."),
    ] = None,
    all_rows: Annotated[bool, typer.Option("--all", help="Print all rows with the figures of the model.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure fewer sizes and nodes, for a card that studies measure.")
    ] = False,
    plot: Plot = None,
    csv: Csv = None,
    as_json: Json = False,
) -> None:
    """Compare a card's published measurements with the figures that its spec gives.

    The rows are marked by their use: constants were fitted to calibrated rows. Seen rows were known before a mechanism
    or a value was chosen, and predicted rows were not. Inputs and consequences are no predictions either.
    """
    from nicety.cli.arguments import parse_names
    from nicety.cli.files import Files
    from nicety.studies.score.rows import TESTS
    from nicety.studies.score.scoring import scored_cards

    if name is None and rows is None:
        raise InputError("no card named; write for example nicety specs score nfp-6000, or --rows FILE.csv")
    chosen = parse_names(tests, "--test") if tests else []
    for test in chosen:
        if test not in TESTS:
            raise InputError(f"--test {test}: write {one_of(list(TESTS))}")
    files = Files(plot=plot, csv=csv)
    files.check()
    if name is not None and rows is None and name not in scored_cards():
        if chosen:
            raise InputError(f"--test {chosen[0]}: the published rows of {name} are claims of studies; leave it out")
        _score_claims(name, files, quick=quick, as_json=as_json)
        return
    if quick:
        raise InputError("--quick: rows of benchmarks are measured in full; name fewer with --test")
    _score_rows(name, rows, files, chosen, all_rows=all_rows, as_json=as_json)


def _score_claims(name: str, files: Files, *, quick: bool, as_json: bool) -> None:
    from nicety.cli.output import print_json, say
    from nicety.cli.progress import progress
    from nicety.studies.score.cards import card_score
    from nicety.studies.score.cards_text import card_figure, card_text

    with progress("preparing") as bar:
        report = card_score(name, quick=quick, progress=partial(bar.advance, description="measuring"))
    files.write(report, lambda: card_figure(report))
    if as_json:
        print_json(report)
    else:
        say(card_text(report))


def _score_rows(
    name: str | None, rows: Path | None, files: Files, chosen: list[str], *, all_rows: bool, as_json: bool
) -> None:
    from nicety.cli.output import print_json, say
    from nicety.cli.progress import progress
    from nicety.studies.score.rows import rows_of_file
    from nicety.studies.score.scoring import score
    from nicety.studies.score.text import score_figure, score_text

    given = rows_of_file(rows, name or "") if rows is not None else None
    if given is not None and name is not None:
        given = [row for row in given if row.card == name]
        if not given:
            raise InputError(f"{rows}: no row is of card {name}; name a card of the file, or leave the name out")
    with progress("preparing") as bar:
        advance = partial(bar.advance, description="measuring")
        report = score(name or str(rows), given, tests=chosen, progress=advance)
    files.write(report, lambda: score_figure(report))
    if as_json:
        print_json(report)
    else:
        say(score_text(report, all_rows=all_rows))


@specs.command("fit")
def _fit(
    rows: Annotated[
        Path, typer.Option("--rows", metavar="FILE.csv", help="Own measurements; the column fit names keys to fit.")
    ],
    base: Annotated[
        str,
        typer.Option(
            "--from", metavar="SPEC", help="The card to begin with: a name, or a path.", autocompletion=complete_cards
        ),
    ] = "ethernet-100g",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="NAME.toml", help="The spec file to write.")
    ] = None,
    csv: Csv = None,
    as_json: Json = False,
) -> None:
    """Fit keys of a card's spec to own measurements, and predict the other measurements.

    A row with a key in its column fit determines that key, by bisection on the simulation. The other rows are
    predicted. Their deviations give the verdict. Without --output nothing is written.
    """
    from nicety.cli.files import Files
    from nicety.cli.output import note, print_json, say
    from nicety.cli.progress import progress
    from nicety.shared.cards import check_new, new_file
    from nicety.shared.files import write_whole
    from nicety.show.tables import csv_text
    from nicety.studies.score.fit import fit
    from nicety.studies.score.fit_text import fit_table, fit_text
    from nicety.studies.score.rows import rows_of_file

    Files(csv=csv).check()
    if output is not None:
        check_new(output)
    target = output or Path("mine.toml")
    given = rows_of_file(rows, base)
    with progress("preparing") as bar:
        report = fit(given, base, target.stem, place=str(rows), progress=partial(bar.advance, description="fitting"))
    if output is not None:
        new_file(output, report["spec"])
    if csv is not None:
        write_whole(csv, csv_text(fit_table(report, given)).encode())
    if as_json:
        print_json(report)
    else:
        say(fit_text(report))
    if output is not None:
        note(f"{output}: extends {base}; write --nic {_as_argument(output)}")
