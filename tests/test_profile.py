"""`nicety profile`: each cycle once, for every program of the handlers' library, and its files."""

from __future__ import annotations

import gzip
import json
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nicety import _native
from nicety._generated.types import ProfileReport, ProfileRow
from nicety.bench.profile.against import difference
from nicety.bench.profile.calls import call_tree
from nicety.bench.profile.files import pprof, speedscope
from nicety.bench.profile.page import profile_page
from nicety.bench.profile.run import profile_handlers
from nicety.bench.profile.text import profile_text
from nicety.build.sources import Handlers
from nicety.build.xdp import compile_xdp

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "handlers"

HANDLERS = [
    *((path, "spin-discrete", 256) for path in sorted(LIBRARY.glob("*.c"))),
    *((path, "spin-100g", 256) for path in sorted((LIBRARY / "frames").glob("*.c"))),
    *((path, "spin-100g-rv64", 256) for path in sorted((LIBRARY / "frames").glob("*.c"))),
    *((path, "pspin", 256) for path in sorted((LIBRARY / "pspin").glob("*.c"))),
    *((path, "spin-100g", 256) for path in sorted((LIBRARY / "xdp").glob("*.c"))),
]

# Handlers that have other names, and states that handlers cannot do without.
NAMES = {"collectives": ("slot_header", "slot_payload"), "storage": ("data_header", "data_payload")}
STATES = {
    "datatype_list": struct.pack("<2I4Q", 1, 0, 0, 0, 64 * 256, 0),
    "datatype_vector": struct.pack("<2Q", 64, 128),
}


def profiled(path: Path, nic: str, size: int, tmp_path: Path, **given: Any) -> ProfileReport:
    """The profile of a program of the library, with any failures of its handlers."""
    program: Path | Handlers = path
    if path.parent.name == "xdp":
        program = compile_xdp(path, output=tmp_path / f"{path.stem}.o")
    elif path.stem in NAMES:
        header, payload = NAMES[path.stem]
        program = Handlers(path, header=header, payload=payload)
    if path.stem in STATES:
        given = {"state": STATES[path.stem], **given}
    if path == LIBRARY / "frames" / "firewall.c":
        # Its state is the table of flows and the counters.
        given = {"state_bytes": 256 << 10, **given}
    given = {"messages": 200 if nic.startswith("spin-100g") else 2, "nics": [nic], "packet_sizes": [size], **given}
    return profile_handlers(program, allow_failures="all", **given)


def check(row: ProfileRow) -> None:
    """Each sum is that of the card's own counters."""
    card = row["card"]
    assert row["cycles"] == card["cycles"]
    assert row["runs"] == card["runs"]
    assert row["executions"] == card["instructions"]
    for parts in (row["instructions"], row["lines"], row["functions"]):
        assert sum(part["cycles"] for part in parts) == card["cycles"]
        assert sum(part["executions"] for part in parts) == card["instructions"]
        for part in parts:
            assert sum(part["causes"].values()) == part["cycles"]
    assert sum(sample["cycles"] for sample in row["samples"]) == card["cycles"]
    assert call_tree(row).cycles == card["cycles"]
    causes = row["causes"]
    assert sum(causes.values()) == card["cycles"]
    assert causes.get("bank", 0) == card["memory_wait_cycles"]
    assert causes.get("fetch", 0) == card["fetch_wait_cycles"]
    assert causes.get("cache", 0) == card["cache_wait_cycles"]
    assert causes.get("queue", 0) + causes.get("transfer", 0) == card["stalled_cycles"]


@pytest.mark.parametrize(("path", "nic", "size"), HANDLERS, ids=lambda value: getattr(value, "stem", str(value)))
def test_sums_are_the_cards_for_every_program_of_the_library(path: Path, nic: str, size: int, tmp_path: Path) -> None:
    report = profiled(path, nic, size, tmp_path)
    (row,) = report["rows"]
    check(row)
    assert row["runs"] > 0
    assert any(line["file"] == str(path) for line in row["lines"])
    # The entry of an XDP program is assembly.
    lineless = sum(not instruction["frames"] for instruction in row["instructions"])
    assert lineless <= (10 if path.parent.name == "xdp" else 0)
    assert len(row["missing"]) == (lineless > 0)


COUNTED = """#include <nicety.h>
static __attribute__((noinline)) uint32_t mixed(uint32_t value) {
    return value * 31 ^ value >> 7;
}
__handler int payload_handler(const ptl_payload_t p, void *state) {
    uint32_t *counters = state;
    const uint32_t *words = (const uint32_t *)p.base;
    uint32_t sum = 0;
    for (ptl_size_t i = 0; i < p.length / 4; i++)
        sum += mixed(words[i]);
    counters[0] += sum;
    return SUCCESS;
}
"""


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ProfileReport]:
    """A program with a loop that calls a function, and its profile with packets of 16 words."""
    path = tmp_path_factory.mktemp("counted") / "counted.c"
    path.write_text(COUNTED)
    return path, profile_handlers(path, nics=["spin-discrete"], packet_sizes=[64], messages=4)


def test_lines_have_the_instructions_of_their_loop(counted: tuple[Path, ProfileReport]) -> None:
    path, report = counted
    (row,) = report["rows"]
    check(row)
    lines = {line["line"]: line for line in row["lines"] if line["file"] == str(path)}
    # 8 messages of 64 packets before and behind the measured ones, which are 4.
    assert row["packets"] == row["runs"] == 64 * (8 + 4 + 8)
    called = lines[3]
    assert called["executions"] % (16 * row["packets"]) == 0
    assert called["cycles_mean"] == called["cycles"] / row["packets"]
    # All runs are alike.
    assert called["cycles_p99"] == called["cycles_mean"]
    tree = call_tree(row)
    (entry,) = tree.calls.values()
    assert entry.name == "payload_handler"
    mixed = next(function for function in row["functions"] if function["function"] == "mixed")
    assert entry.calls["mixed"].own == mixed["cycles"] == called["cycles"]


def test_a_percentile_is_of_single_runs(tmp_path: Path) -> None:
    path = tmp_path / "seldom.c"
    path.write_text(
        """#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    uint32_t *count = state;
    if (++*count % 50 == 0)
        for (volatile uint32_t i = 0; i < 100; i++)
            ;
    return SUCCESS;
}
"""
    )
    (row,) = profile_handlers(path, nics=["spin-discrete"], packet_sizes=[64], messages=4, overrides=["hpu.cores=1"])[
        "rows"
    ]
    check(row)
    loop = max(row["lines"], key=lambda line: line["cycles"])
    assert loop["line"] == 5
    # One run in fifty has them: more than one in a hundred.
    assert loop["cycles_p99"] == pytest.approx(loop["cycles"] / (row["runs"] // 50), rel=0.05)
    assert loop["cycles_mean"] * 40 < loop["cycles_p99"]


def test_speedscope_has_all_cycles(counted: tuple[Path, ProfileReport]) -> None:
    _, report = counted
    document = json.loads(speedscope(report))
    (profile,) = document["profiles"]
    assert sum(profile["weights"]) == profile["endValue"] == report["rows"][0]["cycles"]
    frames = document["shared"]["frames"]
    names = {frames[at]["name"] for stack in profile["samples"] for at in stack}
    assert {"payload_handler", "mixed", "counted.c:3"} <= names
    assert all(at < len(frames) for stack in profile["samples"] for at in stack)


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message of protocol buffers: numbers and bytes."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        field, kind = divmod(varint(), 8)
        if kind == 0:
            yield field, varint()
        else:
            assert kind == 2
            size = varint()
            yield field, message[at : at + size]
            at += size


def numbers(packed: bytes) -> list[int]:
    """The numbers of a packed field."""
    found, value, shift = [], 0, 0
    for byte in packed:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(value)
            value = shift = 0
    return found


def test_pprof_has_all_cycles(counted: tuple[Path, ProfileReport]) -> None:
    _, report = counted
    (row,) = report["rows"]
    parts: dict[int, list[Any]] = {}
    for field, value in fields(gzip.decompress(pprof(row))):
        parts.setdefault(field, []).append(value)
    strings = [text.decode() for text in parts[6]]
    assert strings[0] == ""
    types = [dict(fields(kind)) for kind in parts[1]]
    assert [strings[kind[1]] for kind in types] == ["executions", "cycles"]
    values = [numbers(dict(fields(sample))[2]) for sample in parts[2]]
    assert [sum(each) for each in zip(*values, strict=True)] == [row["executions"], row["cycles"]]
    locations = {dict(fields(location))[1] for location in parts[4]}
    used = {number for sample in parts[2] for number in numbers(dict(fields(sample))[1])}
    assert used == locations
    names = {strings[dict(fields(function))[2]] for function in parts[5]}
    assert {"payload_handler", "mixed"} <= names


def test_gos_pprof_reads_the_file(
    counted: tuple[Path, ProfileReport], tmp_path: Path, tool: Callable[[str], str]
) -> None:
    _, report = counted
    (row,) = report["rows"]
    file = tmp_path / "counted.pb.gz"
    file.write_bytes(pprof(row))
    command = [tool("go"), "tool", "pprof", "-top", "-sample_index=cycles", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert f"of {row['cycles']} total" in done.stdout.replace("Showing nodes accounting for", "")
    assert "payload_handler" in done.stdout
    assert "mixed" in done.stdout


def test_a_page_needs_no_network(counted: tuple[Path, ProfileReport]) -> None:
    _, report = counted
    page = profile_page(report).decode()
    assert "sum += mixed(words[i]);" in page
    assert not [word for word in ("<script", "http:", "https:", "src=", "url(") if word in page]


def test_text_shows_the_hottest_line_first(counted: tuple[Path, ProfileReport]) -> None:
    path, report = counted
    text = profile_text(report, 1)
    (row,) = report["rows"]
    assert f"{path.name}:{row['lines'][0]['line']} " in text
    assert "payload_handler" in text
    assert "the hottest 1 of" in text


def test_two_versions_are_compared_line_by_line(counted: tuple[Path, ProfileReport], tmp_path: Path) -> None:
    path, report = counted
    other = tmp_path / "other.c"
    text = path.read_text().replace("value * 31 ^ value >> 7", "value")
    other.write_text(text.replace("    uint32_t sum", "\n    uint32_t sum"))
    second = profile_handlers(other, nics=["spin-discrete"], packet_sizes=[64], messages=4)
    found = difference(report, second)
    means = [report["rows"][0]["cycles_mean"], second["rows"][0]["cycles_mean"]]
    assert sum(line["cycles_mean"] for line in found["lines"]) == pytest.approx(means[0])
    assert sum(line["other_cycles_mean"] for line in found["lines"]) == pytest.approx(means[1])
    # The line behind the new one is the same line.
    assert any((line["line"], line["other_line"]) == ("counted.c:10", "other.c:11") for line in found["lines"])
    assert sum(found["causes"].values()) == pytest.approx(means[1] - means[0])


def test_another_card_has_the_same_lines(counted: tuple[Path, ProfileReport]) -> None:
    path, report = counted
    other = profile_handlers(path, nics=["spin-integrated"], packet_sizes=[64], messages=4)
    found = difference(report, other)
    assert all(line["line"] == line["other_line"] for line in found["lines"])


def test_a_lock_has_the_lines_of_its_holder_and_waiters(tmp_path: Path) -> None:
    path = tmp_path / "lock.c"
    path.write_text(
        """#include <nicety.h>
#include <stdatomic.h>
static atomic_uint lock;
static uint32_t count;
__handler int payload_handler(const ptl_payload_t p, void *state) {
    while (atomic_exchange(&lock, 1))
        ;
    count++;
    atomic_store(&lock, 0);
    return SUCCESS;
}
"""
    )
    (row,) = profile_handlers(path, nics=["spin-discrete"], packet_sizes=[64], messages=4)["rows"]
    check(row)
    (lock,) = row["locks"]
    assert lock["variable"] == "lock"
    assert "lock.c:6" in lock["acquired_at"]
    assert "lock.c:6" in lock["waited_at"]
    assert "lock.c:9" in (lock["released_at"] or "")
    assert lock["waits"] > 0
    assert lock["wait_cycles"] > 0


def test_banks_have_the_data_in_them(tmp_path: Path) -> None:
    path = tmp_path / "banks.c"
    path.write_text(
        """#include <frame.h>
volatile uint32_t total;
__handler int frame_handler(const frame_t *frame, void *state) {
    for (volatile int round = 0; round < 20; round++) {
        total += frame->length;
        ((uint32_t *)state)[2]++;
    }
    return FRAME_DROP;
}
"""
    )
    traffic = ["udp size=60 rate=60Gbps arrivals=poisson packets=3000"]
    overrides = ["memory.l1.banks=1"]
    (row,) = profile_handlers(path, nics=["spin-100g"], traffic=traffic, overrides=overrides)["rows"]
    check(row)
    assert {"total", "state+8"} <= {bank["data"] for bank in row["banks"]}
    waits = sum(bank["wait_cycles"] for bank in row["banks"]) * row["packets"]
    assert waits == pytest.approx(row["card"]["memory_wait_cycles"])


def test_a_program_without_line_tables_says_so(counted: tuple[Path, ProfileReport]) -> None:
    path, _ = counted
    request = json.dumps({"nics": ["spin-discrete"], "packet_sizes": [64], "messages": 1})
    (item,) = json.loads(_native.line_rate_plan(request))["compile"]
    elf = Handlers(path).compile(isa=item["isa"], interface=item["interface"]).elf
    # Sections of other names are no line tables.
    text = _native.profile_run(request, {"spin-discrete": elf.replace(b".debug_", b".nodbg_")}, None)
    (row,) = json.loads(text)["rows"]
    check(row)
    (words,) = row["missing"]
    assert words.startswith("no line tables for the program: cycles there have no line, ")
    assert words.endswith("; compile with -g")
    assert {function["function"] for function in row["functions"]} == {"payload_handler", "mixed"}
    assert all(line["line"] is None for line in row["lines"])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--packet-sizes", "64,128"], "--packet-sizes: a profile covers packets of one size, not of 2 sizes"),
        (["--sensitivity"], "No such option: --sensitivity"),
        (["--against", "none.c"], "--against none.c: no such file"),
        (["--against", "no-card"], "no-card"),
        (["--html", "a", "--pprof", "a"], "--pprof a: --html writes there already"),
        (["--html", "none/a"], "none/a"),
        (["--lines", "0"], "--lines"),
    ],
)
def test_wrong_arguments_have_one_line(
    nicety: Callable[..., Any], counted: tuple[Path, ProfileReport], arguments: list[str], error: str
) -> None:
    path, _ = counted
    done = nicety("profile", path, "--nic", "spin-discrete", "--messages", "1", *arguments)
    assert done.status == 2
    assert error in done.stderr
    assert done.stdout == ""


def test_the_command_writes_files_and_one_document(
    nicety: Callable[..., Any], counted: tuple[Path, ProfileReport], tmp_path: Path
) -> None:
    path, _ = counted
    files = ["--html", "a.html", "--speedscope", "a.json", "--pprof", "a.pb.gz"]
    done = nicety(
        "profile", path, "--nic", "spin-discrete", "--packet-sizes", "64", "--messages", "4", "--json", *files
    )
    assert (done.status, done.stderr) == (0, "")
    (row,) = json.loads(done.stdout)["rows"]
    check(row)
    assert all((tmp_path / name).stat().st_size > 0 for name in ("a.html", "a.json", "a.pb.gz"))
    again = nicety("profile", path, "--nic", "spin-discrete", "--packet-sizes", "64", "--messages", "4", "--json")
    assert again.stdout == done.stdout


def test_a_file_beside_a_comparison_says_which_program_it_has(
    nicety: Callable[..., Any], counted: tuple[Path, ProfileReport], tmp_path: Path
) -> None:
    path, _ = counted
    (tmp_path / "b.c").write_text(path.read_text())
    options = ["--nic", "spin-discrete", "--packet-sizes", "64", "--messages", "1"]
    done = nicety("profile", path, *options, "--against", "b.c", "--html", "a.html", "--speedscope", "a.json")
    words = f"it has only the profile of {path}; for a file of b.c, profile it without --against"
    assert (done.status, done.stderr) == (0, f"nicety: a.html: {words}\nnicety: a.json: {words}\n")
