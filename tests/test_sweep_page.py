"""The page about a sweep, in a browser."""

from __future__ import annotations

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

STUDY = """\
run = "bench latency"

[options]
mode = "rdma,spin-stream"

[grid]
nic = ["spin-discrete", "spin-integrated"]
sizes = [8, 4096]
"""

# Records errors, hovers over a mark and a stage, sorts by a column, and shows the result.
TRY = """<script>
const seen = [], hover = (node) => {
  node.dispatchEvent(new MouseEvent("mouseenter"));
  const tip = document.getElementById("tip");
  seen.push(tip.hidden ? "hidden" : tip.textContent);
  node.dispatchEvent(new MouseEvent("mouseleave"));
  seen.push(String(tip.hidden));
};
hover(document.querySelector("circle"));
hover(document.querySelector("rect.stage"));
const first = () => document.querySelector("#table tbody tr td").textContent;
seen.push(first());
for (let twice = 0; twice < 2; twice += 1) document.querySelector("#table th").click();
seen.push(first());
document.getElementById("y").value = "p50_ns";
document.getElementById("y").dispatchEvent(new Event("change"));
seen.push(document.querySelector("#picture svg").getAttribute("aria-label"));
const shown = document.createElement("pre");
shown.id = "seen";
shown.textContent = JSON.stringify(seen);
document.body.append(shown);
</script>
"""


@pytest.fixture
def browse(tool: Callable[[str], str], tmp_path: Path) -> Callable[..., str]:
    """The contents of a page once a browser has run its scripts."""

    def dump(page: Path) -> str:
        command = [tool("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", page.as_uri()]
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
    page = (tmp_path / "page.html").read_text()
    assert len(page) < 100_000
    assert re.findall(r"""(?:src|href)=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)""", page) == []
    (tmp_path / "tried.html").write_text(page.replace("</body>", f"{TRY}</body>"))
    text = browse(tmp_path / "tried.html")
    (seen,) = re.findall(r'<pre id="seen">(.*?)</pre>', text)
    hashes = [json.loads(_native.spec_show(name, []))["hash"] for name in ("spin-discrete", "spin-integrated")]
    assert all(digest in text for digest in hashes)
    mark, gone, stage, gone_again, before, after, drawn = json.loads(html.unescape(seen))
    assert mark.splitlines()[0] == "nic spin-discrete, mode rdma"
    assert mark.splitlines()[1:] == ["sizes 8", "latency_ns 693.685"]
    assert re.fullmatch(r"spin-discrete, 8, rdma\npost [0-9.]+ ns of 693.685 ns", stage)
    assert (gone, gone_again) == ("true", "true")
    assert (before, after) == ("0", "3")
    assert drawn == "p50_ns over sizes"
    # Two cards by two modes by two sizes.
    assert text.count("<circle") == 8
    assert text.count("<polyline") == 4


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
    with pytest.raises(InputError, match="this was not written by nicety sweep"):
        nicety.sweep_report(tmp_path, tmp_path / "page.html")
    with pytest.raises(InputError, match="there is no folder"):
        nicety.sweep_report(tmp_path, tmp_path / "no" / "page.html")


@pytest.mark.parametrize(
    ("file", "contents", "wrong"),
    [
        ("sweep.json", b"{", "sweep.json: it is damaged: this is no JSON; the sweep, run again with its folder"),
        ("sweep.json", b"\xff\xfe", "sweep.json: it is damaged: this is no JSON"),
        ("sweep.json", b"[" * 100_000, "sweep.json: it is damaged: this is no JSON"),
        (
            "sweep.json",
            b'{"nicety": 1, "run": 1, "options": 3, "points": [{}]}',
            "sweep.json: it is damaged: it has no",
        ),
        ("point", b"", "it is damaged: this is no JSON; the sweep, run again with its folder, runs what is damaged"),
        ("point", b"[]", "this was not written by nicety sweep"),
        ("point", b'{"key": 1, "status": "done"}', "it is damaged: it has no checksum"),
        ("point", b'{"key": 1, "status": "done", "checksum": ""}', "its checksum is of something else"),
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
