"""The workbench page in a browser: a server, Chromium by Playwright, and saved pages with generated events."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from playwright.sync_api import Browser, Playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

TUTORIAL = Path(__file__).parent.parent / "docs" / "tutorial-tools.md"


def browse(playwright: Playwright, chromium: str) -> Browser:
    """Start a browser with a new, empty profile."""
    return playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)


def program(name: str) -> str:
    """A program of the tutorial on tools."""
    page = TUTORIAL.read_text(encoding="utf-8")
    found = re.search(rf'```c title="{re.escape(name)}"[^\n]*\n(.*?)```', page, re.DOTALL)
    assert found is not None, f"{TUTORIAL.name} has no {name}"
    return found[1]


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `nicety serve` on a free port; give its address, with the token, and the process."""
    command = [sys.executable, "-m", "nicety", "serve", "--no-open", "--port", "0", *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        try:
            assert server.stdout is not None
            said = ""
            for line in server.stdout:
                said += line
                if found := re.search(r"http://127\.0\.0\.1:\d+/\S*", line):
                    yield found[0], server
                    return
            raise AssertionError(said)
        finally:
            server.terminate()
            server.wait(30)


def packed(data: bytes) -> str:
    """Bytes as the page packs them: deflate without a head, in letters for addresses."""
    squeezed = zlib.compressobj(6, zlib.DEFLATED, -15)
    return base64.urlsafe_b64encode(squeezed.compress(data) + squeezed.flush()).decode().rstrip("=")


def saved_page(path: Path, events: int, tab: str = "timeline") -> None:
    """Write a saved page with a timeline of generated events: 48 lanes, each with boxes one after another."""
    names = {"cores": 32, "banks": 8, "DMA": 4, "wire": 4}
    lanes = [
        {"name": f"{group} {at}", "group": group, "node": "card"} for group, of in names.items() for at in range(of)
    ]
    random = np.random.default_rng(1)
    each = events // len(lanes)
    lengths = random.integers(2_000, 60_000, (len(lanes), each)).astype(np.float64)
    gaps = random.integers(0, 30_000, (len(lanes), each)).astype(np.float64)
    starts = np.cumsum(lengths + gaps, axis=1) - lengths
    columns: dict[str, npt.NDArray[Any]] = {
        "lane": np.repeat(np.arange(len(lanes), dtype=np.uint32), each),
        "start_ps": starts.ravel(),
        "length_ps": lengths.ravel(),
        "label": random.integers(0, 6, each * len(lanes)).astype(np.uint32),
        "packet": np.tile(np.arange(each, dtype=np.uint32), len(lanes)),
    }
    header = {
        "id": "a",
        "part": "timeline",
        "nic": "spin-100g",
        "point": "",
        "rows": each * len(lanes),
        "left_out": 0,
        "start_ps": 0,
        "end_ps": float((starts + lengths).max()),
        "lanes": lanes,
        "labels": ["frame handler", "wait", "packet in", "packet out", "access", "burst"],
        "columns": [
            {"name": name, "type": "f64" if values.dtype == np.float64 else "u32", "offset": 0, "length": len(values)}
            for name, values in columns.items()
        ],
    }
    form = dict.fromkeys(["size", "rateValue", "burst", "packets", "flows", "zipf", "src", "dst", "sport", "dport"], "")
    form |= {"protocol": "udp", "sizes": "fixed", "rate": "wire", "arrivals": "paced"}
    setup = {
        "program": {"origin": "page", "name": "sampler.c", "text": program("sampler.c")},
        "nics": ["spin-100g"],
        "options": dict.fromkeys(["header", "payload", "completion", "defines", "rules", "state"], ""),
        "set": {},
        "traffic": {
            "mode": "form",
            "form": form,
            "expression": "",
            "capture": {"upload": None, "rate": "wire", "cut": False},
            "equal": {"sizes": "", "messagePackets": "", "messages": ""},
        },
        "overload": "wait",
        "seed": 1,
    }
    nothing = dict.fromkeys(["run", "profile", "check", "previous"])
    page = {"setup": setup, "view": {"tab": tab}, "card": None, "server": None, "results": nothing}
    saved = {
        "format": 1,
        "page": packed(json.dumps(page).encode()),
        "timeline": {"header": header, "columns": {name: packed(of.tobytes()) for name, of in columns.items()}},
        "packets": None,
    }
    assets = files("nicety.serve").joinpath("assets")
    script, style = (assets.joinpath(name).read_text(encoding="utf-8") for name in ("app.js", "app.css"))
    path.write_text(
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>saved</title><style>{style}</style></head>'
        f'<body><div id="page"></div><script type="application/json" id="nicety-saved">{json.dumps(saved)}</script>'
        f"<script>{script.replace('</script', '<' + chr(92) + '/script')}</script></body></html>",
        encoding="utf-8",
    )
