"""Files of studies with any contents: each is read, or refused with its name and an existing line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicety.cli.sweep.study import _line_of, _statements, read_study
from nicety.errors import InputError
from nicety.sweeps.grid import points_of
from sizes import examples

STUDIES = [
    """\
run = "bench latency"

[options]
mode = "rdma"
iterations = 2

[grid]
nic = ["spin-discrete", "qnix"]
sizes = [8, "4Ki"]
set."link.latency" = [
    "50 ns",  # short
    "1 us",
]
""",
    "# a schedule\nrun = 'goal run a.goal'\noptions = { L = '1us', threads = 2 }\ngrid.seed = [1, 2, 3]\n",
    """\
run = '''goal run
  a.goal'''
[grid]
"nic" = ["spin-discrete"]
breakdown = [true, false]
[options.set.bus]
gap = '20 ps'
latency = "250 ns"
""",
]
WORDS = [
    *("run", "options", "grid", "set", "nic", "[", "]", "{", "}", '"', "'", '"""', "'''", "#", "=", ".", ",", "\n"),
    *("\r\n", "true", "nan", "inf", "1979-05-27", "9" * 30, "0x" + "f" * 5000, "9" * 5000, "[" * 2000, "a." * 2000),
    *("\ufeff", "\0", "--help", "--json", "\\", "\\u0000", "sizes = [8]\n", "[grid]\n", "[[grid]]\n", "sweep", " "),
]


def found(path: Path) -> Any:
    """The result of reading: a study, or the text of the error."""
    try:
        study = read_study(path)
        points = points_of(study.grid, list(study.words), study.options, study.words)
    except InputError as error:
        return str(error)
    assert all(isinstance(word, str) for point in points for word in study.arguments(point.values))
    return study


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A study with changed, missing or foreign bytes."""
    data = draw(st.sampled_from(STUDIES)).encode()
    for _ in range(draw(st.integers(1, 5))):
        at, to = sorted(draw(st.tuples(*[st.integers(0, len(data))] * 2)))
        match draw(st.integers(0, 4)):
            case 0:
                data = data[:at] + draw(st.binary(min_size=1, max_size=1)) + data[at + 1 :]
            case 1:
                data = data[:at] + data[to:]
            case 2:
                data = data[:at]
            case 3:
                other = draw(st.sampled_from([*STUDIES, data.decode("utf-8", "replace")])).encode()
                begin, end = sorted(draw(st.tuples(*[st.integers(0, len(other))] * 2)))
                data = data[:at] + other[begin:end] + data[at:]
            case _:
                data = data[:at] + draw(st.sampled_from(WORDS)).encode() + data[at:]
    return data


@given(data=damaged())
@examples(100)
def test_a_damaged_study_is_read_or_refused(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "study.toml"
    path.write_bytes(data)
    outcome = found(path)
    if isinstance(outcome, str) and outcome.startswith(str(path)):
        line = re.match(r":(\d+): ", outcome.removeprefix(str(path)))
        assert line is None or 1 <= int(line[1]) <= data.count(b"\n") + 1


@given(words=st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=10)), max_size=30), begun=st.booleans())
@examples(100)
def test_no_text_is_more_than_refused(words: list[str], begun: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "text.toml"
    path.write_text(("run = 'bench latency'\n" if begun else "") + "".join(words), errors="replace")
    found(path)


def test_a_key_has_the_line_at_which_it_stands() -> None:
    text = (
        STUDIES[0]
        + '"x.y" = """\n[grid]\nz = 1\n"""\n[options.set]\na.b = [[1,\n2], {c = "]"}] # [\n\n# d\nd = \'#\'\n'
    )
    assert [
        _line_of(text, keys)
        for keys in (
            ["run"],
            ["grid"],
            ["grid", "set"],
            ["grid", "x.y"],
            ["options", "set", "a"],
            ["options", "set", "d"],
        )
    ] == [1, 7, 10, 14, 19, 23]
    assert _line_of(text, ["none"]) == 1
    joined = "".join(statement + "\n" for _, statement in _statements(text))
    assert tomllib.loads(joined) == tomllib.loads(text)


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("[grid]\nnic = " + "[" * 3000 + "]" * 3000, ": lists or tables are nested too deep"),
        ("[grid]\nset." + "a." * 3000 + "b = [1]", ": lists or tables are nested too deep"),
        ("[grid]\nsizes = [" + "9" * 5000 + "]", ": a number in it has too many digits"),
        ("[grid]\nsizes = [0x" + "f" * 5000 + "]", ":3: grid.sizes: a number is at most 18446744073709551615"),
        ("[grid]\n" + "#\n" * 20_000 + "nix = [1]", ":20003: grid.nix: nicety bench latency has no such option"),
    ],
)
def test_oversized_studies_are_refused(content: str, wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(f"run = 'bench latency'\n{content}\n")
    assert str(found(path)).startswith(f"{path}{wrong}")


def test_a_study_is_no_endless_file_and_shows_no_help(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert found(Path("/dev/zero")) == "/dev/zero: a study is at most 16 MiB long"
    path = tmp_path / "study.toml"
    path.write_text("run = 'bench latency --help'\n[grid]\nnic = ['qnix']\n")
    assert found(path) == f"{path}:1: run: --help: this runs nothing"
    assert capsys.readouterr().out == ""
    path.write_bytes(b"\xef\xbb\xbfrun = 'bench latency'\r\n[grid]\r\nnic = ['qnix']\r\n")
    assert found(path).run == "bench latency"
