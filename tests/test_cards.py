"""The list of cards, their differences, new files, and the schema of files."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import nicety as package
from conftest import Result
from nicety import _native
from nicety.shared.cards import card_names, differences, new_text, schema

ROOT = Path(__file__).parent.parent
NAMES = card_names()


def test_cards_are_listed_with_their_sources() -> None:
    found = {card.name: card for card in package.cards()}
    assert list(found) == NAMES
    assert found["spin-integrated"].extends == ("spin-discrete",)
    assert found["spin-integrated"].title == "sPIN on a card integrated with the host processor"
    assert found["qnix"].design == "qnix"
    assert all(card.source for card in found.values())


def test_differences_are_the_keys_of_a_file_that_extends() -> None:
    found = differences("spin-discrete", "spin-integrated")
    assert [(each["key"], each["values"]) for each in found] == [
        ("bus.latency", ["250 ns", "50 ns"]),
        ("bus.gap", ["15.6 ps/B", "6.7 ps/B"]),
    ]


def test_equal_values_in_other_units_are_no_difference() -> None:
    assert differences("spin-discrete", "spin-discrete", overrides=["bus.latency=0.25 us"]) == []
    (found,) = differences("spin-discrete", "spin-discrete", overrides=["bus.latency=251 ns"])
    assert found["values"] == ["250 ns", "251 ns"]


def test_a_key_of_one_card_alone_is_a_difference(nicety: Callable[..., Result]) -> None:
    found = {each["key"]: each["values"] for each in nicety("specs", "diff", "qnix", "nfp-4000", "--json").json()}
    assert found["managers.read"][0] is None
    lines = nicety("specs", "diff", "qnix", "nfp-4000").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(found)
    assert lines[0].split() == ["#", "key", "qnix", "nfp-4000", "meaning"]
    assert nicety("specs", "diff", "qnix", "qnix").stdout == "qnix and qnix: the same values\n"
    assert nicety("specs", "diff", "qnix", "gone").status == 2


@pytest.mark.parametrize("base", NAMES)
def test_a_new_file_has_all_values_as_comments(tmp_path: Path, base: str) -> None:
    text = new_text(base, "mine")
    file = tmp_path / "mine.toml"
    for whole in (text, re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE)):
        file.write_text(whole)
        assert differences(base, str(file)) == []
    # The second text has each value itself, and none from the card that it extends.
    card = json.loads(_native.spec_show(str(file), []))
    assert {value["kind"] for value in card["parameters"]} == {"user"}


def test_specs_new_writes_a_file_once(nicety: Callable[..., Result], tmp_path: Path) -> None:
    done = nicety("specs", "new", "spin-discrete")
    assert (
        done.stdout
        == "my-spin-discrete.toml: extends spin-discrete; edit it, and write --nic ./my-spin-discrete.toml\n"
    )
    file = tmp_path / "my-spin-discrete.toml"
    file.write_text(file.read_text().replace('# latency = "250 ns"', 'latency = "100 ns"'))
    assert nicety("specs", "check", file.name).status == 0
    (found,) = differences("spin-discrete", str(file))
    assert found["values"] == ["250 ns", "100 ns"]
    assert nicety("specs", "new", f"./{file.name}", "next.toml").status == 0
    assert differences(str(file), str(tmp_path / "next.toml")) == []
    again = nicety("specs", "new", "spin-discrete")
    assert (again.status, again.stdout) == (2, "")
    assert again.stderr == "nicety: my-spin-discrete.toml: it is there already; name another file\n"
    assert "write mine.toml" in nicety("specs", "new", "qnix", "mine.txt").stderr
    assert "gone" in nicety("specs", "new", "gone", "its.toml").stderr
    assert not (tmp_path / "its.toml").exists()


@pytest.fixture(scope="module")
def validator() -> Any:
    known = schema()
    jsonschema.Draft7Validator.check_schema(known)
    return jsonschema.Draft7Validator(known)


SPECS = sorted(path for path in (ROOT / "specs").glob("*.toml") if path.name != "Cargo.toml")


@pytest.mark.parametrize("file", SPECS, ids=lambda file: file.stem)
def test_the_schema_takes_every_card(validator: Any, file: Path) -> None:
    assert [error.message for error in validator.iter_errors(tomllib.loads(file.read_text()))] == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[hpu]\ncores = 0\n", ["hpu", "cores"]),
        ("[hpu]\ncores = true\n", ["hpu", "cores"]),
        ('[bus]\nlatency = "fast"\n', ["bus", "latency"]),
        ('[bus]\nkind = "pcix"\n', ["bus", "kind"]),
        ('[bus]\nlatency = { value = "1 ns", kind = "guessed" }\n', ["bus", "latency"]),
        ('[bus]\nlatency = { value = "1 ns", sorce = "x" }\n', ["bus", "latency"]),
        ("[hpu.cycles]\nmul = -1\n", ["hpu", "cycles", "mul"]),
    ],
)
def test_the_schema_finds_mistakes(validator: Any, text: str, place: list[str]) -> None:
    own = tomllib.loads('name = "a"\ntitle = "b"\nextends = "spin-discrete"\n' + text)
    assert [list(error.path) for error in validator.iter_errors(own)] == [place]


def test_the_schema_describes_keys(nicety: Callable[..., Result]) -> None:
    found = nicety("specs", "schema").json()
    latency = found["properties"]["bus"]["properties"]["latency"]
    assert "one crossing between host and card" in latency["description"]
    assert "250 ns" in latency["description"]
    assert found["properties"]["bus"]["properties"]["pci"]["properties"]
