"""The page about a sweep, in a browser."""

from __future__ import annotations

import hashlib
import html
import json
import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import nicety
import nicety as package
from conftest import Result
from nicety import _native
from nicety.errors import InputError
from nicety.sweeps import page
from nicety.sweeps.page import label

STUDY = """\
run = "bench latency"

[options]
mode = "rdma,spin-stream"

[grid]
nic = ["spin-discrete", "spin-integrated"]
sizes = [8, 4096]
"""

# Moves the pointer over the first size, reads a stage, sorts by a column, chooses another figure, and shows the result.
TRY = """<script>
const seen = [];
const over = document.querySelector(".u-over"), box = over.getBoundingClientRect();
for (const name of ["mouseenter", "mousemove"])
  over.dispatchEvent(new MouseEvent(name, { clientX: box.left + 30, clientY: box.top + 30, bubbles: true }));
setTimeout(() => {
  const text = (found) => [...document.querySelectorAll(found)].map((node) => node.textContent);
  seen.push(text(".u-legend .u-label"), text(".u-legend .u-value"));
  seen.push(document.querySelector(".bar span").textContent, document.querySelector(".bar i").title);
  const first = () => document.querySelector("#table tbody tr td").textContent;
  seen.push(first());
  for (let twice = 0; twice < 2; twice += 1) document.querySelector("#table th").click();
  seen.push(first(), drawn.axes.map((axis) => [axis.label, axis._values.filter(Boolean)]), text("#y option"));
  document.getElementById("y").value = "p50_ns";
  document.getElementById("y").dispatchEvent(new Event("change"));
  seen.push(drawn.axes.map((axis) => axis.label));
  const shown = document.createElement("pre");
  shown.id = "seen";
  shown.textContent = JSON.stringify(seen);
  document.body.append(shown);
}, 50);
</script>
"""


@pytest.fixture
def browse(tool: Callable[[str], str], tmp_path: Path) -> Callable[..., str]:
    """The contents of a page once a browser has run its scripts."""

    def dump(page: Path) -> str:
        command = [tool("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000"]
        # No name of a host has an address.
        command += ["--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom", page.as_uri()]
        environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
        return done.stdout

    return dump


def test_a_browser_draws_the_page_and_tells_what_is_hovered_over(
    nicety: Callable[..., Result], browse: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "small.toml").write_text(STUDY)
    assert nicety("sweep", "small.toml").status == 0
    done = nicety("sweep", "report", "small", "-o", "page.html")
    assert (done.status, done.stdout, done.stderr) == (0, "", "")
    written = (tmp_path / "page.html").read_text()
    assert len(written) < 150_000
    # The one address is in a comment: the licence of the library asks for it.
    ((url, _),) = re.findall(r"""((?:src|href)=|url\(|@import|https?://\S+) (\S+)""", written)
    assert url == "https://github.com/leeoniya/uPlot"
    (tmp_path / "tried.html").write_text(written.replace("</body>", f"{TRY}</body>"))
    text = browse(tmp_path / "tried.html")
    (seen,) = re.findall(r'<pre id="seen">(.*?)</pre>', text)
    hashes = [json.loads(_native.spec_show(name, []))["hash"] for name in ("spin-discrete", "spin-integrated")]
    assert all(digest in text for digest in hashes)
    names, values, bar, stage, before, after, ticks, figures, chosen = json.loads(html.unescape(seen))
    # Two cards by two modes.
    assert names == [
        "Size (bytes)",
        *(f"spin-{card}, {mode}" for card in ("discrete", "integrated") for mode in ("rdma", "spin-stream")),
    ]
    assert values[:2] == ["8", "693.685"]
    assert bar == "spin-discrete, size 8 bytes, rdma"
    assert re.fullmatch(r"post [0-9.]+ ns of 693.685 ns", stage)
    assert (before, after) == ("0", "3")
    assert ticks[0] == ["Size (bytes)", ["8", "16", "32", "64", "128", "256", "512", "1Ki", "2Ki", "4Ki"]]
    assert ticks[1][0] == "Latency (ns)"
    assert [int(tick) % 100 for tick in ticks[1][1]] == [0] * len(ticks[1][1])
    assert "Latency (ns)" in figures
    assert chosen == ["Size (bytes)", "P50 (ns)"]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("half_round_trip_ns", "Half round trip (ns)"),
        ("bandwidth_bytes_per_s", "Bandwidth (bytes/s)"),
        ("messages_per_s", "Messages (1/s)"),
        ("size_bytes", "Size (bytes)"),
        ("host.cpu_percent", "Host cpu (%)"),
        ("sizes", "Size (bytes)"),
        ("ns", "Ns"),
    ],
)
def test_a_column_has_words_and_a_unit(column: str, words: str) -> None:
    assert label(column) == words


def test_the_library_is_that_of_its_makers() -> None:
    assets = Path(page.__file__).parent / "assets"
    about, *sums = (assets / "uPlot.sha256").read_text().splitlines()
    for line in sums:
        digest, name = line.split()
        assert hashlib.sha256((assets / name).read_bytes()).hexdigest() == digest
    (version,) = re.findall(r"uPlot \(v([0-9.]+)\)", (assets / "uPlot.iife.min.js").read_text())
    assert f"uPlot {version}, MIT" in about
    assert {line.split()[1] for line in sums} == {path.name for path in assets.glob("uPlot*")} - {"uPlot.sha256"}
    assert "The MIT License" in (assets / "uPlot.LICENSE").read_text()


def test_a_page_shows_only_what_texts_say(browse: Callable[..., str], tmp_path: Path) -> None:
    bad = "</script><img src=x onerror=document.title='no'>"
    with ThreadPoolExecutor() as threads:
        nicety.sweep(evil, {"text": [bad, "b"]}, folder=tmp_path / "out", executor=threads)
    nicety.sweep_report(tmp_path / "out", tmp_path / "page.html")
    text = browse(tmp_path / "page.html")
    assert "<img" not in text
    assert "<title>nicety sweep: test_sweep_page.evil</title>" in text
    # NaN is no JSON, but the page is drawn.
    assert '"nan"' in text
    assert "<tbody>" in text


def evil(text: str) -> dict[str, object]:
    if text == "b":
        raise ValueError(f"<b>{text}")
    return {"value": float("nan"), "said": text}


def test_a_page_of_a_sweep_that_has_not_begun_or_failed(browse: Callable[..., str], tmp_path: Path) -> None:
    with ThreadPoolExecutor() as threads:
        nicety.sweep(evil, {"text": ["b"]}, folder=tmp_path / "out", executor=threads)
    nicety.sweep_report(tmp_path / "out", tmp_path / "page.html")
    text = browse(tmp_path / "page.html")
    assert "0 of 1 points are done, and 1 failed." in text
    assert '<tr class="failed">' in text
    assert '<section id="plot" hidden="">' in text


def test_other_folders_have_no_page(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no sweep; name a folder that nicety sweep made"):
        nicety.sweep_report(tmp_path, tmp_path / "page.html")
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(InputError, match="nicety sweep did not write this file"):
        nicety.sweep_report(tmp_path, tmp_path / "page.html")
    with pytest.raises(InputError, match="there is no folder"):
        nicety.sweep_report(tmp_path, tmp_path / "no" / "page.html")


@pytest.mark.parametrize(
    ("file", "contents", "wrong"),
    [
        ("sweep.json", b"{", "sweep.json: damaged: the file is not JSON; run the sweep again with this folder"),
        ("sweep.json", b"\xff\xfe", "sweep.json: damaged: the file is not JSON"),
        ("sweep.json", b"[" * 100_000, "sweep.json: damaged: the file is not JSON"),
        (
            "sweep.json",
            b'{"nicety": 1, "run": 1, "options": 3, "points": [{}]}',
            "sweep.json: damaged: there is no",
        ),
        ("point", b"", "damaged: the file is not JSON; run the sweep again with this folder"),
        ("point", b"[]", "nicety sweep did not write this file"),
        ("point", b'{"key": 1, "status": "done"}', "damaged: there is no checksum"),
        ("point", b'{"key": 1, "status": "done", "checksum": ""}', "the checksum does not match"),
    ],
)
def test_a_damaged_folder_ends_in_a_sentence(
    nicety: Callable[..., Result], tmp_path: Path, file: str, contents: bytes, wrong: str
) -> None:
    with ThreadPoolExecutor() as threads:
        package.sweep(evil, {"text": ["a"]}, folder=tmp_path / "out", executor=threads)
    (point,) = (tmp_path / "out/points").iterdir()
    (point if file == "point" else tmp_path / "out" / file).write_bytes(contents)
    done = nicety("sweep", "report", "out", "-o", "page.html")
    assert (done.status, done.stdout) == (2, "")
    assert wrong in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "page.html").exists()
    # In the other's place, and no file at all.
    point.unlink()
    point.mkdir()
    assert nicety("sweep", "report", "out").status == 2
