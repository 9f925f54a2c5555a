"""Results display themselves in notebooks, and the example notebooks run."""

from __future__ import annotations

import subprocess
import sys
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest

import nicety
from nicety.show import tables, timelines

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


class Tables(HTMLParser):
    """The tables of a text, each a list of rows, and unclosed tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.captions: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.items: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in {"td", "th"}:
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in {"td", "th"}:
            self.tables[-1][-1][-1] += data
        elif self.open[-1] == "caption":
            self.captions.append(data)
        elif self.open[-1] == "li":
            self.items.append(data)


def shown(result: Any) -> Tables:
    found = Tables(result._repr_html_())
    assert found.open == []
    return found


def test_a_report_shows_its_figures() -> None:
    report = nicety.run_benchmark("latency", nics=["spin-discrete"], modes=["rdma", "portals4"], sizes=[8, 64])
    found = shown(report)
    assert found.captions == ["spin-discrete: Latency (ns)"]
    assert found.tables == [[["Size", "rdma", "portals4"], ["8", "693.685", "628.685"], ["64", "695.679", "630.679"]]]
    assert report == dict(report), "it is a plain dictionary otherwise"


@pytest.fixture(scope="module")
def latency() -> Any:
    return nicety.run_benchmark("latency", nics=["spin-discrete"], modes=["rdma", "portals4"], sizes=[8, 64])


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_a_report_becomes_a_data_frame(latency: Any, library: Any) -> None:
    frame = latency.table(library)
    assert type(frame).__module__.split(".")[0] == library
    columns = frame.to_dict(as_series=False) if library == "polars" else frame.to_pydict()
    assert columns["mode"] == ["rdma", "rdma", "portals4", "portals4"]
    assert columns["latency_ns"] == [row["latency_ns"] for row in latency["rows"]]


def test_pandas_goes_first(latency: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = ModuleType("pandas")
    pandas.__spec__ = ModuleSpec("pandas", None)
    vars(pandas)["DataFrame"] = dict
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    assert latency.table() == latency.table("pandas") == dict(latency.table("pyarrow").to_pydict())


def test_a_missing_library_is_named(latency: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "find_spec", lambda _: None)
    with pytest.raises(nicety.InputError, match=r"needs pandas or polars or pyarrow, .* install 'nicety\[pandas\]'"):
        latency.table()
    with pytest.raises(nicety.InputError, match=r"library is pandas, polars or pyarrow, not arrow"):
        latency.table("arrow")


def test_a_report_draws_its_picture(latency: Any, tmp_path: Path) -> None:
    figure = latency.plot(tmp_path / "latency.svg")
    assert figure.axes[0].get_ylabel() == "Latency (ns)"
    assert (tmp_path / "latency.svg").read_bytes().startswith(b"<?xml")
    assert len(latency.plot(breakdown=True).axes) == 2
    with pytest.raises(nicety.InputError, match=r"no percentils; leave it out"):
        latency.plot(percentils=True)


def test_a_notebook_shows_a_picture(latency: Any) -> None:
    picture, size = latency.plot()._repr_png_()
    width, height = (int.from_bytes(picture[at : at + 4]) for at in (16, 20))
    assert picture.startswith(b"\x89PNG")
    assert (width, height) == pytest.approx((2 * size["width"], 2 * size["height"]), abs=1)


def test_a_table_shows_its_first_rows() -> None:
    found = shown(nicety.Table([("a<b", list(range(30))), ("text", ["&", None, *["x"] * 28])]))
    assert found.captions == ["30 rows, the first 20"]
    assert found.tables[0][:3] == [["a<b", "text"], ["0", "&"], ["1", ""]]
    assert len(found.tables[0]) == 21
    assert shown(nicety.Table([("a", [7])])).captions == ["1 row"]


RACE = """#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    uint32_t *sum = state;
    for (uint32_t at = 0; at < 8; at++) *sum += ((volatile uint8_t *)p.base)[at];
    return SUCCESS;
}
"""


@pytest.fixture(scope="module")
def race(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("race") / "race.c"
    file.write_text(RACE)
    return file


def test_findings_show_themselves(race: Path) -> None:
    report = nicety.check_handlers(race)
    assert "race.c:4: race" in report._repr_html_()
    frame = report.table("pyarrow").to_pydict()
    assert frame["kind"] == [finding["kind"] for finding in report["findings"]]
    assert any(place.endswith("race.c:4") for place in frame["place"])
    with pytest.raises(nicety.InputError, match=r"no picture of this report"):
        report.plot()


def test_a_profile_shows_its_lines(race: Path) -> None:
    report: Any = nicety.profile_handlers(race, nics=["spin-discrete"], packet_sizes=[64], messages=2)
    row = report["rows"][0]
    frame = report.table("pyarrow").to_pydict()
    assert frame["cycles"] == [line["cycles"] for line in row["lines"]]
    assert frame["cycles_issue"] == [line["causes"]["issue"] for line in row["lines"]]
    figure = report.plot()
    groups = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert any("race.c:4: for (uint32_t at = 0" in group for group in groups)
    assert figure.get_suptitle().startswith("race.c: cycles of the hottest lines\nspin-discrete: ")
    ends = max(bar.get_x() + bar.get_width() for bar in figure.axes[0].patches)
    assert ends == pytest.approx(max(line["cycles"] for line in row["lines"]) / row["packets"])


def test_a_run_shows_its_nodes() -> None:
    async def ping(host: nicety.Host) -> str:
        await host.send(host.alloc(5000), to=1)
        return "<done> & " + "x" * 100

    async def pong(host: nicety.Host) -> int:
        return (await host.recv(host.alloc(5000))).length_bytes

    run = nicety.Cluster(2, "spin-discrete").run({0: ping, 1: pong})
    found = shown(run)
    assert found.captions == [f"{run.time_ns:,.3f} ns of virtual time, {run.events:,} events"]
    head, first, second = found.tables[0]
    assert head == ["rank", "messages matched", "host memory read bytes", "host memory written bytes", "result"]
    assert first[:-1] == ["0", "0", "5,000", "0"]
    assert second == ["1", "1", "0", "5,000", "5000"]
    assert first[-1].startswith("'<done> & xxx")
    assert len(first[-1]) == 60
    assert found.items == []


def test_a_run_that_recorded_everything_shows_its_timeline(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(host: nicety.Host) -> None:
        await host.compute(ns=100)

    assert "<img" not in nicety.Cluster(1, "spin-discrete").run(main)._repr_html_()
    run = nicety.Cluster(1, "spin-discrete", recording="everything").run(main)
    picture = run._repr_html_().partition("data:image/svg+xml;base64,")[2].partition('"')[0]
    assert "node 0: program" in b64decode(picture).decode()
    monkeypatch.setattr(timelines, "_MOST_SLICES", 0)
    assert "too many for a picture" in run._repr_html_()


def test_a_run_of_many_ranks_shows_the_first() -> None:
    async def main(host: nicety.Host) -> None:
        await host.compute(ns=1)

    run = nicety.Cluster(2, "spin-discrete").run(main)
    many = replace(run, nodes=run.nodes * 20, results={})
    found = shown(many)
    assert [row[0] for row in found.tables[0]] == ["rank", *map(str, range(32))]
    assert "and 8 more ranks" in many._repr_html_()
    assert shown(replace(run, nodes=[])).tables == [[["rank", "result"]]]


def test_a_run_shows_its_failures(tmp_path: Path) -> None:
    source = tmp_path / "fails.c"
    source.write_text(
        "#include <nicety.h>\n__handler int payload_handler(const ptl_payload_t p, void *s) { return FAIL; }\n"
    )

    async def sender(host: nicety.Host) -> None:
        await host.barrier()
        await host.portals.put(host.portals.md_bind(host.alloc(8)), 8, to=1, pt=1)

    async def receiver(host: nicety.Host) -> None:
        portals = host.portals
        handlers = portals.attach(nicety.Handlers(source))
        await portals.me_append(host.alloc(8), pt=portals.pt_alloc(pt=1), handlers=handlers)
        await host.barrier()

    run = nicety.Cluster(2, "spin-discrete", allow_failures="fail").run({0: sender, 1: receiver})
    (failure,) = shown(run).items
    assert "payload handler returned FAIL" in failure
    assert [f"rank 1: {each.text}" for each in run.nodes[1].failures] == [failure]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    done = tmp_path / "done.ipynb"
    # In a separate process: Jupyter's own warnings are not our concern.
    script = (
        "import sys, nbformat, nbclient\n"
        "notebook = nbformat.read(sys.argv[1], as_version=4)\n"
        "nbclient.NotebookClient(notebook, timeout=120, kernel_name='python3').execute()\n"
        "nbformat.write(notebook, sys.argv[2])\n"
    )
    command = [sys.executable, "-c", script, str(path), str(done)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    cells = [cell for cell in nbformat.read(done, as_version=4).cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in cells), "every cell shows something"
    tables = [
        output.data["text/html"] for cell in cells for output in cell.outputs if "text/html" in output.get("data", {})
    ]
    assert len(tables) == 3
    assert all("<table>" in table for table in tables)


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_kept_without_their_outputs(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        assert cell.cell_type == "markdown" or (cell.outputs, cell.execution_count) == ([], None)
