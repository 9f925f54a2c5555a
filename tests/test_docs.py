"""The documentation's pages do what they show, are complete, and become a site."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from console import MAKE, PICTURES, ROOT, Shell, blocks, pages, pictures, run_page, same, steps
from nicety import _native

DOCS = ROOT / "docs"


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_does_what_it_shows(page: Path, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.run("go version")
    if shell.status and "$ go build" in page.read_text():
        pytest.skip("there is no Go toolchain (go)")
    if shutil.which("gdb-multiarch") is None and "$ gdb-multiarch" in page.read_text():
        pytest.skip("there is no gdb-multiarch")
    run_page(page.read_text(), tmp_path, whole=os.environ.get("HYPOTHESIS_PROFILE") == "soak")


def test_pages_are_short_enough_to_read() -> None:
    """The limits of docs/contributing/style.md."""
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= 450
    for page in (DOCS / "guide").glob("*.md"):
        text = re.sub(r"^( *)```.*?^\1```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        assert len(text.split()) <= 2500, page


def test_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for page in pages():
        for block in blocks(page.read_text()):
            for line in block.text.splitlines():
                found = MAKE.match(line)
                assert found is None or f"\n{found[1]}:" in makefile, f"{page}: {line}"


def test_every_picture_is_shown_and_drawn_by_a_page() -> None:
    kept = [picture.name for picture in PICTURES.iterdir()]
    shown = {name: [page for page in pages() if name in pictures(page.read_text())] for name in kept}
    assert len(shown) >= 4
    for name, found in shown.items():
        code = [block.text for page in found for block in blocks(page.read_text())]
        assert any(name in text for text in code), f"docs/pictures/{name}: no page that shows it draws it"
    named = {name for page in pages() for name in pictures(page.read_text())}
    assert named == set(shown)


def test_every_function_of_a_handler_is_described() -> None:
    page = (DOCS / "reference/handlers.md").read_text()
    header = (ROOT / "handlers/include/nicety.h").read_text()
    declared = re.findall(r"^NICETY_INLINE \w+ (PtlHandler\w+)\(", header, re.MULTILINE)
    assert len(declared) > 15
    described = re.findall(r"^#### (\w+)", page, re.MULTILINE)
    assert sorted(described) == sorted([*declared, "printf"])
    # The signatures are those of the header, with any line breaks.
    flat = re.sub(r"\s+", " ", header)
    for name in declared:
        (signature,) = re.findall(rf"\w+ {name}\([^;]*\);", re.sub(r"\s+", " ", page))
        assert signature[:-1] in flat, signature


@pytest.mark.parametrize("enum", ["SUCCESS", "PTL_OK", "PTL_ME_HOST_MEM"])
def test_every_value_of_a_handler_is_described(enum: str) -> None:
    page = (DOCS / "reference/handlers.md").read_text()
    header = (ROOT / "handlers/include/nicety.h").read_text()
    (body,) = (body for body in re.findall(r"enum \{(.*?)\};", header, re.DOTALL) if enum in body)
    names = re.findall(r"^ +([A-Z_]+) =", body, re.MULTILINE)
    assert enum in names
    # Values that are named together with a family, or that are plain failures.
    apart = {name for name in names if name.endswith("_PENDING")} | {"PTL_FAIL"}
    assert [name for name in names if name not in apart and f"`{name}`" not in page] == []


def test_every_stage_is_described() -> None:
    declared = [(ROOT / "crates/types/src/stage.rs"), *(ROOT / "crates").glob("nic*/src/**/stages.rs")]
    row = re.compile(r"^ +(?:pub const )?[A-Z_]+ = [0-9]+, \"([^\"]+)\";", re.MULTILINE)
    names = [name for path in declared for name in row.findall(path.read_text())]
    assert len(names) > 40
    page = (DOCS / "concepts.md").read_text()
    # A row may describe several.
    first_cells = " ".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE))
    assert [name for name in names if f"`{name}`" not in first_cells and not name.endswith(", queued")] == []
    queued = page.split("A name with `queued`", 1)[1].split("##", 1)[0]
    assert [name for name in names if name.endswith(", queued") and f"`{name.split(',')[0]}`" not in queued] == []


def test_keys_of_the_parts_that_a_file_chooses_exist() -> None:
    page = (DOCS / "cards/adding.md").read_text().split("## Parts that a file chooses", 1)[1].split("## ", 1)[0]
    named = set(re.findall(r"`([a-z_.]+\.[a-z_]+)`", page)) | set(re.findall(r"`\[([a-z_.]+)\]`", page))
    assert len(named) > 25
    cards = [card["name"] for card in json.loads(_native.specs())]
    shown = [json.loads(_native.spec_show(name, [])) for name in cards]
    optional = ["link.ports=2", "router.latency=1 ns", "link.stuffing=16 B", "link.stuffing_every=256 B"]
    optional += [f"link.{axis}.latency=1 ns" for axis in "xyz"]
    shown.append(json.loads(_native.spec_show("spin-discrete", optional)))
    shown.append(json.loads(_native.spec_show("qnix", ["bus.kind=pci"])))
    keys = {parameter["key"] for card in shown for parameter in card["parameters"]}
    known = keys | {key.rpartition(".")[0] for key in keys}
    assert named - known == set()


def test_the_worked_examples_add_up() -> None:
    page = (DOCS / "timing.md").read_text()
    tables = re.findall(r"\| step \| ns \|\n\|---\|---\|\n((?:\|.*\n)+)", page)
    assert len(tables) == 4
    for table in tables:
        *parts, total = [line.rstrip(" |").rpartition("| ")[2].strip("*") for line in table.splitlines()]
        assert sum(map(Decimal, parts)) == Decimal(total)
    # nicety has the same result: `sum` in its output is this, or half of it if the table is a round trip.
    printed = [Decimal(value) for value in re.findall(r"^sum +([0-9.]+)$", page, re.MULTILINE)]
    totals = [Decimal(value) for value in re.findall(r"\| \*\*sum\*\* \| \*\*([0-9.]+)\*\* \|", page)]
    ways = [1, 1, 2, 2]
    for by_nicety, total, way in zip(printed, totals, ways, strict=True):
        assert abs(by_nicety - total / way) <= Decimal("0.0005")


class Text(HTMLParser):
    """The text of a page, and its external resources."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.remote: list[str] = []
        self.copied: list[str] = []
        self.tables = 0
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tables += tag == "table"
        if "data-copy" in given:
            self.copied.append(given["data-copy"] or "")
        fetched = given.get("src") or (given.get("href") if tag == "link" else None) or ""
        if re.match("(https?:)?//", fetched):
            self.remote.append(fetched)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def generate() -> dict[str, Any]:
    """The generator of the site's sources."""
    return runpy.run_path(str(DOCS / "generate.py"))


@pytest.fixture(scope="module")
def site(generate: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Text]:
    """The site's pages, by their paths."""
    folder = tmp_path_factory.mktemp("docs")
    generate["main"](folder)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(folder / "mkdocs.yml")]
    environment = os.environ | {"PYTHONPATH": str(DOCS)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    built = folder / "site"
    return {str(page.relative_to(built)): Text(page.read_text()) for page in built.rglob("*.html")}


def test_the_site_needs_nothing_from_elsewhere(site: dict[str, Text]) -> None:
    assert len(site) > 12
    assert {name: page.remote for name, page in site.items() if page.remote} == {}


def test_every_page_is_in_the_site(site: dict[str, Text]) -> None:
    names = [str(page.relative_to(DOCS).with_suffix(".html")) for page in pages() if page.is_relative_to(DOCS)]
    assert [name for name in names if name not in site] == []
    mark = re.compile("<!-- (commands|cards|more|parameters: [a-z])")
    assert [name for name, page in site.items() if mark.search(page.text)] == []


def test_every_value_of_every_card_is_in_the_site(site: dict[str, Text]) -> None:
    for card in json.loads(_native.specs()):
        page = site[f"cards/{card['name']}.html"].text
        assert f"{card['name']} {card['title']}" in site["cards/index.html"].text
        for parameter in json.loads(_native.spec_show(card["name"], []))["parameters"]:
            for part in ("key", "value", "doc", "kind", "source"):
                assert " ".join(str(parameter[part]).split()) in page, (card["name"], parameter["key"], part)


def test_every_command_and_option_is_in_the_site(site: dict[str, Text]) -> None:
    import typer

    from nicety.cli.app import everything

    page = site["reference/commands.html"].text

    def check(command: object, name: str) -> int:
        assert name in page
        for parameter in command.params:
            if parameter.name != "help" and not parameter.hidden:
                for option in parameter.opts if parameter.param_type_name == "option" else ():
                    assert option in page, f"{name} {option}"
                assert " ".join((parameter.help or "").split()) in page, f"{name}: {parameter.name}"
        return 1 + sum(check(below, f"{name} {word}") for word, below in getattr(command, "commands", {}).items())

    assert check(typer.main.get_command(everything()), "nicety") >= 8


def test_every_page_is_in_the_navigation() -> None:
    settings = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    named = re.findall(r"- (?:\w+: )?(\S+\.md)$", settings, re.MULTILINE)
    assert len(named) == len(set(named))
    below = {str(page.relative_to(DOCS)) for page in pages() if page.is_relative_to(DOCS)}
    assert set(named) == below | {"ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"}
    shipped = {f"cards/{card['name']}.md" for card in json.loads(_native.specs())}
    assert shipped <= set(named), "every card has a page"


def test_every_public_name_is_in_the_site(site: dict[str, Text], generate: dict[str, Any]) -> None:
    import nicety

    page = " ".join(part.text for name, part in site.items() if name.startswith("reference/python"))
    names = [name for name in nicety.__all__ if name != "__version__"]
    assert [name for name in names if not re.search(rf"\b{name}\b", page)] == []
    markdown = (DOCS / "reference/python.md").read_text()
    assert "## More" not in generate["expand"](markdown)
    # A name that the page omits is added to it.
    markdown = markdown.replace("::: nicety.shared.cards.CardInfo", "")
    assert "\n## More\n\n::: nicety.shared.cards.CardInfo\n" in generate["expand"](markdown)


def test_every_table_of_a_page_is_a_table_of_the_site(site: dict[str, Text], generate: dict[str, Any]) -> None:
    for path in pages():
        if path.is_relative_to(DOCS):
            markdown = re.sub(r"(?ms)^ *```.*?^ *```", "", generate["expand"](path.read_text()))
            tables = re.findall(r"(?m)^ *\|[ :|-]*-[ :|-]*\| *$", markdown)
            found = site[str(path.relative_to(DOCS).with_suffix(".html"))].tables
            # Descriptions of functions have tables of their own.
            assert found == len(tables) or (found > len(tables) and "\n::: " in markdown), path


def test_signatures_are_those_of_the_functions(site: dict[str, Text]) -> None:
    pages = [part.text for name, part in site.items() if name.startswith("reference/python")]
    assert [page[:60] for page in pages for mark in ("Annotated", "Unpack", "**given", "Option(") if mark in page] == []
    page = site["reference/python-benchmarks.html"].text
    (signature,) = re.findall(r"run_benchmark \( (.*?) \) ->", page)
    for part in ("nics : Names", 'sizes : Numbers | None = "8:4Mi" or "8:4Ki"', "window : int | None = 64"):
        assert part in signature, signature
    # The description of an option is that of its command.
    assert "Number of messages in a window; not for latency." in page


def test_consoles_tell_what_is_typed_from_what_is_printed(site: dict[str, Text]) -> None:
    copied = [text for page in site.values() for text in page.copied]
    assert len(copied) > 20
    assert "nicety cc echo.c\nls *.elf" in copied
    assert [text for text in copied if text.startswith("$") or not text.strip()] == []


# The runner of the pages must notice wrong ones.

PAGE = '```text title="a.txt"\none\ntwo\nthree\n```\n\n```console\n$ cat a.txt\none\n...\nthree\n```\n'


def test_a_page_that_shows_what_happens(tmp_path: Path) -> None:
    assert run_page(PAGE, tmp_path) == PAGE


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (PAGE.replace("$ cat a.txt\none", "$ cat a.txt\n1"), "the page shows"),
        ("```console\n$ false\n```\n", "status 1"),
        ("```console\n$ false\n$ echo $?\n0\n```\n", "the page shows"),
        ("    nicety specs show nothing\n", "status 2"),
        ("```sh\nnicety specs show nothing\n```\n", "status 2"),
        ("```python\nassert False\n```\n", "AssertionError"),
        ('```c\n#include <nicety.h>\nint x = "y";\n```\n', "does not compile"),
    ],
)
def test_a_page_that_shows_something_else(page: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=words):
        run_page(page, tmp_path)


LONG = "```console\n$ printf '2 parts\\n\\na\\n1\\n\\nb\\n2\\n'\n2 parts\n\na\n1\n\nb\n2\n```\n"


@pytest.mark.parametrize("printed", [r"1 part\n\nb\n2", r"\n\na\n1\n\nb\n2", r"\n\na\n1"])
def test_a_part_of_what_a_page_shows(printed: str, tmp_path: Path) -> None:
    page = f"<!-- part: printf '{printed}' -->\n{LONG}"
    assert run_page(page, tmp_path) == page
    # The rest of it must be right if all of it runs.
    wrong = page.replace("2 parts\n\n", "3 parts\n\n")
    assert run_page(wrong, tmp_path) == wrong
    with pytest.raises(AssertionError, match="the page shows"):
        run_page(wrong, tmp_path, whole=True)
    assert run_page(wrong, tmp_path, update=True) == page


@pytest.mark.parametrize("printed", [r"\n\nb\n2\n\na\n1", r"\n\nb\n3", r"\n\nb", "2 parts", ""])
def test_a_part_that_a_page_does_not_show(printed: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="the page shows"):
        run_page(f"<!-- part: printf '{printed}' -->\n{LONG}", tmp_path)


def test_a_page_is_written_anew(tmp_path: Path) -> None:
    wrong = PAGE.replace("one\n...", "1\n...") + "- in a list\n\n    ```console\n    $ echo 2\n    1\n    ```\n"
    right = run_page(wrong, tmp_path, update=True)
    assert "$ cat a.txt\none\ntwo\nthree\n" in right
    assert right.endswith("    $ echo 2\n    2\n    ```\n")
    assert run_page(right, tmp_path) == right


def test_pictures_that_look_otherwise_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setattr("console.PICTURES", kept)
    page = "```console\n$ echo new > a.svg\n```\n\n![A](../pictures/a.svg)\n![B](../pictures/drawn-elsewhere.svg)\n"
    with pytest.raises(AssertionError, match="is missing"):
        run_page(page, tmp_path)
    run_page(page, tmp_path, update=True)
    run_page(page, tmp_path)
    (kept / "a.svg").write_text("old\n")
    with pytest.raises(AssertionError, match="looks otherwise now"):
        run_page(page, tmp_path)


def test_commands_of_several_lines(tmp_path: Path) -> None:
    (step,) = steps("$ echo a \\\n      b\na b\n")
    assert Shell(tmp_path).must(step.command) == step.shown == ["a b"]


def test_any_lines_are_any_lines() -> None:
    assert same(["a", "...", "z"], ["a", "z"])
    assert same(["..."], ["a", "b"])
    assert same(["/.../c"], ["/a/b/c"])
    assert not same(["/.../c"], ["/a/b/d"])
    assert not same(["a", "...", "z"], ["a", "b"])
    assert not same(["a.c"], ["abc"])
    assert same(["7.7 s on one core of this machine"], ["8.42 s on one core of this machine"])
    assert not same(["7.7 s on one core"], ["8.4 s on one core"])
