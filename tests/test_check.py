"""The checker of handlers: a suite of programs with one bug each and of their twins, the library, and the command."""

from __future__ import annotations

import json
import shlex
import signal
import struct
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nicety import Handlers, _native
from nicety._generated.types import CheckReport, Finding, FindingSide
from nicety.bench.check.fuzz import Search
from nicety.bench.check.handlers import check_handlers, check_text, extend
from nicety.build.compiler import library_source
from nicety.build.xdp import compile_xdp
from nicety.program.failures import HandlerFailure

ROOT = Path(__file__).parent.parent
SUITE = ROOT / "tests/check"
PROGRAMS: list[dict[str, Any]] = tomllib.loads((SUITE / "suite.toml").read_text())["program"]
SIZES = {"Ki": 1024}


def options(text: str) -> dict[str, Any]:
    """The options of a command line as arguments."""
    words = iter(shlex.split(text))
    found: dict[str, Any] = {}
    for flag in words:
        name, value = flag.removeprefix("--").replace("-", "_"), next(words)
        if name in ("nic", "packet_sizes", "traffic"):
            found["nics" if name == "nic" else name] = [int(value)] if name == "packet_sizes" else [value]
        else:
            found[name] = int(value.removesuffix("Ki")) * (SIZES["Ki"] if value.endswith("Ki") else 1)
    return found


def findings(program: dict[str, Any], defines: list[str], folder: Path) -> list[Finding]:
    """The findings of a program of the suite."""
    source = SUITE / f"{program['name']}.c"
    given = options(program["options"]) | {"overrides": ["hpu.cycle_limit=20000"]}
    if "<xdp.h>" in source.read_text():
        output = compile_xdp(source, output=folder / f"{program['name']}.o", defines=defines)
        return check_handlers(output, **given)["findings"]
    return check_handlers(source, defines=defines, **given)["findings"]


def line_of(side: FindingSide, file: str) -> int | None:
    """The innermost line of a call stack in the file of the program."""
    return next((frame["line"] for frame in side["stack"] if frame["file"] == file), None)


def at_bug(finding: Finding, program: dict[str, Any]) -> bool:
    """Whether a finding is the bug of a program: its kind, at one of its lines."""
    sides = [side for side in (finding["at"], finding["other"]) if side is not None]
    lines = {line_of(side, f"{program['name']}.c") for side in sides}
    return finding["kind"] == program["kind"] and bool(lines & set(program["lines"]))


def test_the_table_names_the_marked_lines() -> None:
    sources = {path.stem: path.read_text().splitlines() for path in SUITE.glob("*.c")}
    marked = {
        name: [number for number, line in enumerate(lines, 1) if line.endswith("// bug")]
        for name, lines in sources.items()
    }
    assert {program["name"]: program["lines"] for program in PROGRAMS} == marked
    assert len(PROGRAMS) == 71


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program["name"])
def test_a_seeded_bug_is_found_and_its_twin_has_no_finding(program: dict[str, Any], tmp_path: Path) -> None:
    found = findings(program, ["BUG"], tmp_path)
    assert any(at_bug(finding, program) for finding in found), found
    assert findings(program, [], tmp_path) == []


def words(*values: int) -> bytes:
    """32-bit words of a state."""
    return struct.pack(f"<{len(values)}I", *values)


TRAFFIC = "udp src=10.0.0.0/20 dst=10.0.0.2 sport=1024-2047 dport=53 size=100 packets=96"
MESSAGE: dict[str, Any] = {"nics": ["spin-discrete"], "packet_sizes": [64], "message_packets": 8, "messages": 1}
# Handlers with names or states of their own. A state is as a host's program would fill it.
OWN: list[tuple[str, dict[str, str], bytes]] = [
    ("accumulate", {}, b""),
    ("broadcast_store", {}, b""),
    ("broadcast_stream", {}, b""),
    ("collectives", {"header": "arrive"}, b""),
    ("collectives", {"header": "released"}, b""),
    ("collectives", {"header": "slot_header", "payload": "slot_payload"}, b""),
    ("datatype_list", {}, words(2, 0, 0, 0, 256, 512, 512, 0)),
    ("datatype_vector", {}, words(16, 32)),
    ("kv", {}, b""),
    ("matching", {}, b""),
    ("pingpong_store", {}, b""),
    ("pingpong_stream", {}, b""),
    ("sink_store", {}, b""),
    ("sink_stream", {}, b""),
    ("storage", {"header": "data_header", "payload": "data_payload"}, words(0, 64, 0, 0, 0, 0, 0, 0)),
    ("storage", {"header": "parity_header", "payload": "parity_payload"}, words(64, 0, 0, 0)),
]


REFUSING = {"datatype_list", "datatype_vector", "kv"}
"""Handlers that refuse random packets: these are no requests, or their offsets are outside the host's memory."""


@pytest.mark.parametrize(("name", "names", "state"), OWN, ids=lambda value: value if isinstance(value, str) else "")
def test_handlers_of_the_library_have_no_findings(name: str, names: dict[str, str], state: bytes) -> None:
    handlers = Handlers(ROOT / f"handlers/{name}.c", **names)
    given: dict[str, Any] = {"allow_failures": "fail,refused", **MESSAGE} if name in REFUSING else MESSAGE
    assert check_handlers(handlers, state=state, state_bytes=16384, **given)["findings"] == []


@pytest.mark.parametrize("path", sorted((ROOT / "handlers").glob("pspin/*.c")), ids=lambda path: path.stem)
def test_pspin_handlers_of_the_library_have_no_findings(path: Path) -> None:
    defines = ["STORE_AND_SEND"] if path.stem == "saturate" else []
    found = check_handlers(path, defines=defines, **{**MESSAGE, "nics": ["pspin"]})
    assert found["findings"] == []


FRAMES = [*(ROOT / "handlers").glob("frames/*.c"), *(ROOT / "handlers").glob("xdp/*.c")]


@pytest.mark.parametrize("path", sorted(FRAMES), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_programs_for_frames_of_the_library_have_no_findings(path: Path, tmp_path: Path) -> None:
    xdp = path.parent.name == "xdp"
    source = compile_xdp(path, output=tmp_path / "program.o") if xdp else path
    # Its state is the table of flows and the counters.
    given: dict[str, Any] = {"state_bytes": 256 << 10} if path == ROOT / "handlers/frames/firewall.c" else {}
    assert check_handlers(source, nics=["spin-100g"], traffic=[TRAFFIC], **given)["findings"] == []


FAILING = {
    "fail": """#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) { return p.offset == 64 ? FAIL : SUCCESS; }""",
    "segv": """#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    PtlHandlerDMAToHostB(p.base, 0x7fffffff, 8, PTL_ME_HOST_MEM);
    return SUCCESS;
}""",
    "short": """#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) { frame_resize(frame, 5); return FRAME_WIRE; }""",
}


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [("fail", "fail", "returned FAIL"), ("segv", "refused", "PTL_SEGV"), ("short", "fail", "a frame of 5 bytes")],
)
def test_a_run_that_fails_without_a_finding_fails_the_check(name: str, kind: str, text: str, tmp_path: Path) -> None:
    source = tmp_path / f"{name}.c"
    source.write_text(FAILING[name])
    given: dict[str, Any] = {"nics": ["spin-100g"]} if name == "short" else MESSAGE
    with pytest.raises(HandlerFailure, match=text) as failed:
        check_handlers(source, **given)
    assert failed.value.report["findings"] == []
    assert check_handlers(source, allow_failures=kind, **given)["failures"] == failed.value.report["failures"]


READERS = """\
#include <nicety.h>
typedef struct { int32_t readers; uint32_t table[4], hits; } state_t;
__handler int payload_handler(const ptl_payload_t p, void *state) {
    state_t *s = state;
    int32_t now = 0;
    if (p.offset / 64 % 4 == 3) {
        while (!__atomic_compare_exchange_n(&s->readers, &now, -1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) now = 0;
        s->table[p.base[0] & 3] += 1;
        __atomic_store_n(&s->readers, 0, __ATOMIC_RELEASE);
        return SUCCESS;
    }
    do now = __atomic_load_n(&s->readers, __ATOMIC_RELAXED);
    while (now < 0 ||
           !__atomic_compare_exchange_n(&s->readers, &now, now + 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
    uint32_t sum = s->table[0] + s->table[1] + s->table[2] + s->table[3];
    COUNT;
    __atomic_fetch_sub(&s->readers, 1, __ATOMIC_RELEASE);
    return SUCCESS;
}
"""


def test_a_lock_of_readers_and_a_writer_orders_what_it_protects(tmp_path: Path) -> None:
    source = tmp_path / "readers.c"
    source.write_text(READERS)
    given: dict[str, Any] = {"nics": ["spin-discrete"], "packet_sizes": [64], "message_packets": 8, "messages": 2}
    atomic = "COUNT=__atomic_fetch_add(&s->hits,sum>0,__ATOMIC_RELAXED)"
    assert check_handlers(source, defines=[atomic], schedules=3, **given)["findings"] == []
    found = check_handlers(source, defines=["COUNT=s->hits+=sum>0"], **given)["findings"]
    assert [(finding["kind"], finding["at"]["place"]["line"]) for finding in found] == [("race", 16)]


def test_a_plain_counter_is_found_in_every_schedule_and_cards_of_64_bits() -> None:
    for seed in range(1, 6):
        found = check_handlers(SUITE / "race_static.c", defines=["BUG"], schedules=2, seed=seed, **MESSAGE)["findings"]
        assert [finding["kind"] for finding in found] == ["race"], seed
    wide: dict[str, Any] = {"nics": ["spin-100g-rv64"], "traffic": [TRAFFIC]}
    (finding,) = check_handlers(SUITE / "outside_frame.c", defines=["BUG"], nics=["spin-100g-rv64"])["findings"]
    assert finding["kind"] == "out-of-bounds"
    assert check_handlers(ROOT / "handlers/frames/count.c", **wide)["findings"] == []


def test_the_same_seed_gives_the_same_report() -> None:
    run = partial(check_handlers, SUITE / "race_path.c", defines=["BUG"], schedules=3, **MESSAGE)
    assert run() == run()
    assert run(seed=2)["seed"] == 2


def test_the_command_prints_findings_and_ends_with_status_1(nicety: Callable[..., Any]) -> None:
    source = str(SUITE / "race_static.c")
    given = ["--nic", "spin-discrete", "--message-packets", "8", "--messages", "1"]
    failed = nicety("check", source, "-D", "BUG", *given)
    assert failed.status == 1
    first = failed.stdout.splitlines()[0]
    assert first.startswith("race_static.c:9: race: the payload handler of packet ")
    assert "  advice: write an atomic operation" in failed.stdout
    passed = nicety("check", source, *given, "--json")
    assert passed.status == 0
    assert json.loads(passed.stdout)["findings"] == []


def test_a_handler_without_an_end_is_a_finding(nicety: Callable[..., Any], tmp_path: Path) -> None:
    source = tmp_path / "endless.c"
    source.write_text(
        "#include <nicety.h>\n"
        "__handler int payload_handler(const ptl_payload_t p, void *state) {\n"
        "    for (volatile int i = 0;; i++)\n"
        "        ;\n"
        "}\n"
    )
    failed = nicety("check", str(source), "--nic", "spin-discrete", "--set", "hpu.cycle_limit=5000", "--json")
    assert failed.status == 1
    kinds = {finding["kind"] for finding in json.loads(failed.stdout)["findings"]}
    assert kinds == {"trap"}


def test_an_interrupted_search_keeps_its_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    calls = []

    def check(capture: Path) -> dict[str, Any]:
        calls.append(capture.read_bytes())
        # The first two runs have the usual frames. The third run looks for fewer packets.
        if len(calls) == 3:
            raise KeyboardInterrupt
        place = {"file": "a.c", "line": 7}
        side = {"place": place, "pc": 0, "packet": 2}
        return {"covered": 1, "findings": [{"kind": "race", "at": side, "other": None}]}

    search = Search(check, 1, "a")
    report: dict[str, Any] = {"findings": [], "covered": 0}
    with pytest.raises(KeyboardInterrupt) as raised:
        extend(report, search, 20)
    assert vars(raised.value)["report"] is report
    assert [finding["kind"] for finding in report["findings"]] == ["race"]
    (capture,) = report["fuzz"]["captures"]
    assert (tmp_path / capture["file"]).read_bytes() == calls[1]


def test_invalid_arguments_are_refused(nicety: Callable[..., Any]) -> None:
    source = str(SUITE / "race_static.c")
    for given, text in [
        (["--nic", "spin-discrete", "--schedules", "0"], "--schedules is 1 to 10000, not 0"),
        (["--nic", "spin-discrete", "--fuzz", "-1"], "--fuzz: seconds are 0 or more, not -1.0"),
        (["--nic", "spin-discrete", "--sensitivity"], "No such option: --sensitivity"),
        (["--nic", "spin-discrete", "--schedules", "2x"], "'--schedules': \"x\" is not a prefix of a number"),
        (["--nic", "spin-discrete,pspin"], "--nic: a check covers one card; name one card"),
        (["--nic", "spin-discrete", "--program", "x"], "--program: for XDP programs"),
    ]:
        refused = nicety("check", source, *given)
        assert refused.status == 2, given
        assert text in refused.stderr, refused.stderr


FLAG = """#include <frame.h>
struct shared { int flag, data; };
__handler int frame_handler(const frame_t *frame, void *state) {
    struct shared *shared = state;
    int flag = __atomic_load_n(&shared->flag, __ATOMIC_ACQUIRE);
    STORE(&shared->data, flag + 1);
    return FRAME_DROP;
}
"""


@pytest.mark.parametrize(
    ("store", "kinds"),
    [
        ("#define STORE(at, value) (*(at) = (value))", ["race"]),
        ("#define STORE(at, value) __atomic_store_n(at, value, __ATOMIC_RELEASE)", []),
    ],
)
def test_a_fence_of_an_acquire_releases_nothing(tmp_path: Path, store: str, kinds: list[str]) -> None:
    (tmp_path / "flag.c").write_text(f"{store}\n{FLAG}")
    report = check_handlers(tmp_path / "flag.c", nics=["spin-100g"], traffic=["udp size=60 packets=64"])
    assert [finding["kind"] for finding in report["findings"]] == kinds


def test_a_check_of_nothing_fails(nicety: Callable[..., Any]) -> None:
    source = str(library_source("frames/count.c"))
    refused = nicety("check", source, "--nic", "spin-100g", "--rule", "udp dport=99")
    assert refused.status == 1
    assert "no handler has run, so nothing was checked; write --rule or --traffic" in refused.stderr


def test_messages_have_the_packets_that_are_asked_for() -> None:
    source = library_source("sink_stream.c")
    runs = [
        check_handlers(source, nics=["spin-discrete"], message_packets=packets, messages=2)["runs"]
        for packets in (8, 63, 64)
    ]
    assert runs[1] > 6 * runs[0]
    assert runs[2] - runs[1] == 2, "a packet more in each message"


def test_traffic_without_a_number_is_short() -> None:
    report = check_handlers(library_source("frames/count.c"), nics=["spin-100g"], traffic="udp size=60")
    assert report["runs"] == 256


def test_findings_at_one_line_have_captures_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sides = [{"place": {"file": "a.c", "line": line}, "pc": 0, "packet": 0} for line in (7, 8, 9)]

    def check(_capture: Path) -> Any:
        findings = [{"kind": "race", "at": sides[0], "other": other} for other in sides[1:]]
        return {"covered": 1, "findings": findings}

    search = Search(check, 1, "a")
    search.run(0)
    assert [capture["file"] for capture in search.captures] == ["a.race.7.pcap", "a.race.7-2.pcap"]


SEARCH = """
import sys
from nicety.bench.check import handlers
run = handlers.Search.run
def told(search, seconds):
    print("searching", flush=True)
    run(search, seconds)
handlers.Search.run = told
try:
    handlers.check_handlers(sys.argv[1], nics=["spin-100g"], fuzz=300)
except KeyboardInterrupt as error:
    print("interrupted after", error.report["fuzz"]["runs"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process")
def test_an_interrupt_ends_a_search(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SEARCH, str(library_source("frames/count.c"))]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "searching\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=120)[0].startswith("interrupted after ")


def test_mutated_packets_reach_a_bug_and_a_capture_replays_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # No usual frame has this protocol.
    source = tmp_path / "rare.c"
    source.write_text(
        "#include <frame.h>\n"
        "__handler int frame_handler(const frame_t *frame, void *state) {\n"
        "    if (frame->data[12] == 8 && frame->data[13] != 6 && frame->data[23] == 0xff)\n"
        "        return ((uint8_t *)state)[0x10000];\n"
        "    return FRAME_DROP;\n"
        "}\n"
    )
    report = check_handlers(source, nics=["spin-100g"], traffic=[TRAFFIC], fuzz=20)
    (found,) = report["findings"]
    assert (found["kind"], found["at"]["place"]["line"]) == ("out-of-bounds", 4)
    (capture,) = report["fuzz"]["captures"]
    assert capture["packets"] == 1
    again = check_handlers(source, nics=["spin-100g"], traffic=[f"capture={capture['file']} rate=wire"])["findings"]
    assert [finding["kind"] for finding in again] == ["out-of-bounds"]


def test_a_program_without_line_tables_has_addresses_and_says_so() -> None:
    request = json.dumps({"nics": ["spin-discrete"], "packet_sizes": [64]})
    (item,) = json.loads(_native.line_rate_plan(request))["compile"]
    handlers = Handlers(SUITE / "race_static.c", defines=["BUG"], include_dirs=[SUITE])
    elf = handlers.compile(isa=item["isa"], interface=item["interface"]).elf

    def report(elf: bytes) -> CheckReport:
        found: CheckReport = json.loads(_native.check_run(request, {item["key"]: elf}, 1, None))
        return found

    whole, stripped = report(elf), report(elf.replace(b".debug_", b".nodbg_"))
    assert whole["missing"] == []
    # A line with a load and a store is one place, and its instructions are two.
    places = [{finding["at"]["pc"] for finding in report["findings"]} for report in (whole, stripped)]
    assert places[0] < places[1]
    (words,) = stripped["missing"]
    assert words == (
        "no line tables: findings have addresses instead of lines, and no inlined functions; compile with -g"
    )
    text = check_text(stripped)
    pc = stripped["findings"][0]["at"]["pc"]
    assert f"payload_handler (pc {pc:#010x}): race: " in text
    assert f"spin-discrete: {words}\n" in text


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("*(volatile uint32_t *)0x14800000 = 1;", "out-of-bounds"),
        ("frame_push(frame, 4096);", "out-of-bounds"),
        ("frame_resize(frame, 1 << 20);", "out-of-bounds"),
        ("__builtin_trap();", "trap"),
        ("((void (*)(void))0x20000000)();", "trap"),
        ('__builtin_verbose_trap("stack", "outside its memory");', "trap"),
    ],
)
def test_a_stop_is_classed_by_its_error_and_not_by_words(tmp_path: Path, body: str, kind: str) -> None:
    # The names of function and file have words that errors have too.
    path = tmp_path / "stack_frame_read-only.c"
    head = "#include <frame.h>\n__handler int frame_handler(const frame_t *frame, void *state) {\n"
    path.write_text(f"{head}{body}\nreturn FRAME_DROP;\n}}\n")
    found = check_handlers(path, nics=["spin-100g"], traffic=["udp size=60 packets=1"])["findings"]
    assert [finding["kind"] for finding in found] == [kind]
