"""`nicety run`: the reports of a file's programs, and their error messages."""

from __future__ import annotations

import csv
import json
import os
import pty
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from typer.testing import CliRunner

import nicety as package
from nicety.cli.app import everything
from nicety.program.script import run_program
from nicety.show.traces import RecordingWarning
from sizes import examples

CARDS = "spin-discrete,spin-integrated"
PING = """
async def main(host):
    ball, peer = host.alloc(8), 1 - host.rank
    await host.barrier()
    begun = host.now_ns
    if host.rank == 0:
        await host.send(ball, to=peer)
        await host.recv(ball, source=peer)
        return {"round_trip_ns": host.now_ns - begun, "bytes": len(ball), "card": "under test"}
    await host.recv(ball, source=peer)
    await host.send(ball, to=peer)
"""


@pytest.fixture
def program(tmp_path: Path, nicety: Callable) -> Callable:
    """Run a program by its text, with options."""

    def run(text: str, *options: str) -> object:
        (tmp_path / "mine.py").write_text(text)
        return nicety("run", "mine.py", *options)

    return run


def test_a_row_for_each_card(program: Callable) -> None:
    document = program(PING, "--nic", CARDS, "--json").json()
    of_cards = ["failures", "messages_dropped", "frames_lost", "refused_commands", "handler_lines", "traffic"]
    assert list(document) == ["program", "version", "seed", "manifest", "rows", *of_cards]
    assert [document[name] for name in of_cards] == [[], [], [], [], [], []]
    assert [(row["nic"], row["rank"]) for row in document["rows"]] == [("spin-discrete", 0), ("spin-integrated", 0)]
    discrete, integrated = document["rows"]
    assert list(discrete) == ["nic", "rank", "round_trip_ns", "bytes", "card", "time_ns", "host_memory"]
    assert discrete["round_trip_ns"] > integrated["round_trip_ns"] > 0
    assert discrete["host_memory"] == [{"node": n, "read_bytes": 8, "written_bytes": 8} for n in (0, 1)]
    assert set(document["manifest"]["specs"]) == set(CARDS.split(","))

    text = program(PING, "--nic", CARDS)
    assert (text.status, text.stderr) == (0, "")
    lines = [line.split() for line in text.stdout.splitlines()]
    assert ["#", "nic", "rank", "round_trip_ns", "bytes", "card", "time_ns"] in lines
    figures = [f"{discrete[name]:.3f}" for name in ("round_trip_ns", "time_ns")]
    assert ["spin-discrete", "0", figures[0], "8", "under", "test", figures[1]] in lines


def test_it_is_the_cluster_s_own_time(program: Callable) -> None:
    (row,) = program(PING, "--json", "--set", "bus.latency=300 ns").json()["rows"]
    text = program(PING, "--set", "bus.latency=300 ns", "--set", "hpu.cores=8").stdout
    assert text.splitlines()[1].endswith(", set bus.latency=300 ns, hpu.cores=8")
    scope: dict = {}
    exec(PING, scope)
    run = package.Cluster(2, "spin-discrete", set={"bus.latency": "300 ns"}).run(scope["main"])
    assert run.results[0]["round_trip_ns"] == row["round_trip_ns"]
    assert run.time_ns == row["time_ns"]


def test_programs_by_rank_and_what_a_file_says(program: Callable) -> None:
    text = """
async def sender(host):
    await host.compute(ns=10_000 * (host.rank + 1))
    await host.send(host.alloc(8), to=2, tag=host.rank)
    return host.now_ns

async def receiver(host):
    for _ in range(2):
        await host.recv(host.alloc(8))

programs = {0: sender, 1: sender, 2: receiver}
"""
    document = program(text, "--json").json()
    assert (document["manifest"]["nodes"], document["manifest"]["topology"]) == (3, "star")
    assert [(row["rank"], sorted(row)) for row in document["rows"]] == [
        (rank, ["host_memory", "nic", "rank", "result", "time_ns"]) for rank in (0, 1)
    ]
    silent = "async def main(host):\n    await host.compute(ns=1.5)\nnodes, topology = 4, 'star'\n"
    (row,) = program(silent, "--json").json()["rows"]
    assert (row["rank"], row["time_ns"], len(row["host_memory"])) == (None, 1.5, 4)
    text = program(silent).stdout
    assert "rank" not in text
    assert "spin-discrete" in text.splitlines()[-1]
    assert program(silent, "--nodes", "2", "--topology", "pair", "--json").json()["manifest"]["nodes"] == 2


def test_arguments_neighbours_and_prints(program: Callable, tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\n")
    text = """
import sys
from dataclasses import dataclass
from neighbour import A

@dataclass
class B:
    x: int

print("loaded")

async def main(host):
    print("rank", host.rank)
    return {"arguments": " ".join(sys.argv[1:]), "name": __name__ == "__main__", "x": A(1).x + B(2).x}
"""
    result = program(text, "--json", "a", "--", "--b", "c")
    row = result.json()["rows"][0]
    assert (row["arguments"], row["name"], row["x"]) == ("a --b c", False, 3)
    assert result.stderr == "loaded\nrank 0\nrank 1\n"
    assert program(text, "a").stdout.startswith("loaded\nrank 0\nrank 1\n# nicety run mine.py")
    assert not (tmp_path / "__pycache__" / "mine.cpython-311.pyc").exists()


def test_the_same_seed_gives_the_same_bytes_and_noise_another_time(program: Callable) -> None:
    text = "async def main(host):\n    await host.compute(ns=1e6)\n    return host.now_ns\n"
    noisy = ["--noise", "100us,10us", "--json"]
    first, second = program(text, *noisy, "--seed", "7"), program(text, *noisy, "--seed", "7")
    assert first.stdout == second.stdout
    assert program(text, *noisy, "--seed", "8").json()["rows"] != first.json()["rows"]
    assert [row["result"] for row in program(text, "--json").json()["rows"]] == [1e6, 1e6]


def test_rows_as_csv(program: Callable, tmp_path: Path) -> None:
    text = """
async def main(host):
    return {"shared": 1.5, "fine": True} if host.rank == 0 else {"shared": "a, b", "only": None, "count": 7}
"""
    document = program(text, "--nic", CARDS, "--csv", "rows.csv", "--json").json()
    head, *rows = csv.reader((tmp_path / "rows.csv").read_text().splitlines())
    memory = [f"host_memory_{node}_{way}_bytes" for node in (0, 1) for way in ("read", "written")]
    assert head == ["nic", "rank", "shared", "fine", "only", "count", "time_ns", *memory]
    assert [row[:6] for row in rows] == [
        [nic, *cells]
        for nic in CARDS.split(",")
        for cells in (["0", "1.5", "true", "", ""], ["1", "a, b", "", "", "7"])
    ]
    assert [float(row[6]) for row in rows] == [row["time_ns"] for row in document["rows"]]
    assert program(SUM, "--csv", "rows.csv").status == 0
    assert (tmp_path / "rows.csv").read_text().splitlines()[1].startswith("spin-discrete,,2.5,")
    clash = program(f"async def main(host):\n    return {{'{memory[0]}': 1}}\n", "--csv", "rows.csv")
    assert clash.status == 2
    assert f"a program returned '{memory[0]}'" in clash.stderr


def test_a_timeline(program: Callable, tmp_path: Path) -> None:
    plain = program(PING)
    traced = program(PING, "--trace", "run.pftrace", "--trace-scale", "ps")
    assert (traced.status, traced.stdout, traced.stderr) == (0, plain.stdout, "")
    scope: dict = {}
    exec(PING, scope)
    run = package.Cluster(2, "spin-discrete", recording="everything").run(scope["main"])
    run.trace(tmp_path / "same.pftrace", scale="ps")
    assert (tmp_path / "run.pftrace").read_bytes() == (tmp_path / "same.pftrace").read_bytes()
    with pytest.raises(package.InputError, match="a timeline is of one card; name one of spin-discrete, spin-int"):
        run_program(tmp_path / "mine.py", nics=CARDS.split(","), trace=tmp_path / "t")


def test_a_timeline_that_is_not_whole_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def incomplete(*_: object, **__: object) -> None:
        warnings.warn("it lacks its end", RecordingWarning, stacklevel=1)

    monkeypatch.setattr(package.Run, "trace", incomplete)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SUM)
    result = CliRunner().invoke(everything(), ["run", "mine.py", "--trace", "t"])
    assert result.exit_code == 0
    assert "it lacks its end" in result.stderr
    assert "RecordingWarning" not in result.stderr


SUM = "async def main(host):\n    await host.compute(ns=2.5)\n"


@pytest.mark.parametrize(
    ("text", "status", "stderr"),
    [
        ("async def main(host)\n    pass\n", 2, ["mine.py:1: expected ':'", "async def main(host)"]),
        ("x = '\n", 2, ["mine.py:1: unterminated string"]),
        ("x = 1\0\n", 2, ["mine.py: source code string cannot contain null bytes"]),
        ("x = 1\n", 2, ["mine.py: it defines no program; write 'async def main(host):'"]),
        (f"{SUM}programs = {{0: main}}\n", 2, ["defines main and programs"]),
        ("main = 1\n", 2, ["main is no function"]),
        ("programs = []\n", 2, ["programs is a dict of ranks to async functions"]),
        ("programs = {0: 1}\n", 2, ["programs is a dict of ranks"]),
        ("def main(host):\n    return 1\n", 2, ["the program of rank 0 is no async function; write: async def main"]),
        (f"{SUM}nodes = 'two'\n", 2, ["nodes is a whole number, not 'two'"]),
        (f"{SUM}nodes = 3\ntopology = 'pair'\n", 2, ["a pair has 2 nodes, not 3"]),
        (f"{SUM}topology = 7\n", 2, ["topology is a name"]),
        (f"{SUM}topology = 'rink'\n", 2, ["no topology 'rink'"]),
        (f"{SUM}    return [1]\n", 2, ["rank 0 returned a value of type list; return a number"]),
        (f"{SUM}    return {{'a': {{}}}}\n", 2, ["rank 0 returned a value of type dict as 'a'"]),
        (f"{SUM}    return {{1: 2}}\n", 2, ["with 1 as a key"]),
        (f"{SUM}    return {{'rank': 2}}\n", 2, ["'rank', which is already a column"]),
        (
            f"def half(x):\n    return x / 0\n\n{SUM}    half(1)\n",
            1,
            [
                "nicety: spin-discrete: ZeroDivisionError: division by zero\n",
                "  in the program of rank 0, at 2.5 ns of virtual time\n",
                "  mine.py:6, in main: half(1)\n  mine.py:2, in half: return x / 0\n",
            ],
        ),
        ("raise ValueError\n", 1, ["nicety: ValueError\n  mine.py:1, in <module>: raise ValueError\n"]),
        ("import json\njson.loads('{')\n", 1, ["JSONDecodeError: ", "\n  mine.py:2, in <module>: json.loads('{')\n"]),
        ("import no_such_module\n", 1, ["ModuleNotFoundError: No module named 'no_such_module'", "mine.py:1"]),
        ("import sys\nsys.exit('usage: mine.py N')\n", 1, ["nicety: usage: mine.py N\n"]),
        ("import sys\nsys.exit(3)\n", 3, []),
        *(
            (
                f"import sys\n\n{SUM}    sys.exit({code})\n",
                1,
                [
                    f"nicety: spin-discrete: sys.exit({code}) is an error in a program of a host; write return to end ",
                    "\n  in the program of rank 0, at 2.5 ns of virtual time\n  mine.py:5, in main: sys.exit(",
                ],
            )
            for code in ("", "0", "3", "'no input'")
        ),
        (
            "async def main(host):\n    await host.recv(host.alloc(8), tag=1)\n",
            1,
            ["spin-discrete: deadlock at ", "program 'rank 1', waits since", "tag 1"],
        ),
        (
            "async def main(host):\n    await host.send(host.alloc(8), to=9)\n",
            2,
            ["there is no rank 9; the cluster has ranks 0 to 1\n  mine.py:2, in main: await host.send("],
        ),
        (
            "import asyncio\n\nasync def main(host):\n    await asyncio.sleep(1)\n",
            2,
            [
                "rank 0 awaits asyncio; a host program may await only",
                "\n  mine.py:4, in main: await asyncio.sleep(1)\n",
            ],
        ),
        (
            "import asyncio\n\nasync def main(host):\n    await asyncio.sleep(0)\n",
            2,
            ["something foreign", "\n  mine.py:4, in main: await asyncio.sleep(0)\n"],
        ),
    ],
)
def test_failing_programs_are_reported(program: Callable, text: str, status: int, stderr: list[str]) -> None:
    result = program(text, "--json")
    assert result.status == status
    if status == 1:
        assert set(result.json()["error"]) == {"kind", "text"}
    else:
        assert result.stdout == ""
    for words in stderr:
        assert words in result.stderr
    assert "nicety/python" not in result.stderr
    assert "cluster.py" not in result.stderr


def test_errors_of_a_neighbour_name_it(program: Callable, tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("def broken(\n")
    result = program("import neighbour\n")
    assert result.status == 2
    assert result.stderr.startswith("nicety: neighbour.py:1: ")


def test_files_that_are_none(nicety: Callable, tmp_path: Path) -> None:
    assert "gone.py: no such file" in nicety("run", "gone.py").stderr
    (tmp_path / "folder.py").mkdir()
    result = nicety("run", "folder.py")
    assert (result.status, result.stdout) == (2, "")
    assert "folder.py: a folder" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--nic", "spin-discrete,spin-discreet"], "spin-discreet"),
        (["--nic", "spin-discrete,,"], "an empty name"),
        (["--set", "hpu.coers=8"], "hpu.cores"),
        (["--noise", "1ms"], "PERIOD,DURATION"),
        (["--topology", "rink"], "pair, star"),
        (["--topology", "fat-tree:7"], "an even number of ports"),
        (["--nodes", "0"], "--nodes"),
        (["--nic", CARDS, "--trace", "t"], "--trace t: a timeline is of one card; name one with --nic"),
        (["--trace-scale", "ps"], "--trace-scale: there is no timeline; name a file for one with --trace"),
        (["--csv", "no/rows.csv"], "--csv no/rows.csv: there is no folder no; make it first"),
        (["--csv", "x", "--trace", "x"], "--trace x: --csv writes there already; name another file"),
    ],
)
def test_invalid_options_are_refused(program: Callable, options: list[str], message: str) -> None:
    result = program("async def main(host):\n    print('it runs')\n", *options)
    assert (result.status, result.stdout) == (2, "")
    assert message in result.stderr


def test_an_unknown_card_is_said_before_the_file_is_loaded(program: Callable) -> None:
    result = program("print('loaded')\n" + SUM, "--nic", "no-card")
    assert (result.status, result.stdout) == (2, "")
    assert "no-card" in result.stderr


def test_two_cards_of_one_name(program: Callable, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "spin-discrete"\nextends = "spin-discrete"\n')
    result = program(SUM, "--nic", "spin-discrete,./mine.toml")
    assert result.status == 2
    assert "two of the cards are called spin-discrete" in result.stderr


def test_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("""import pathlib

async def main(host):
    pathlib.Path("begun").touch()
    while True:
        await host.compute(ns=1)
""")
    command = [sys.executable, "-m", "nicety", "run", "mine.py", "--json"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "begun").exists():
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout, stderr) == (130, "", "nicety: interrupted\n")


def on_a_terminal(tmp_path: Path, *arguments: str) -> tuple[str, str]:
    """The output of a command to stdout, and to a terminal as stderr."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "nicety", *arguments]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        stdout, _ = process.communicate(timeout=120)
    os.close(ours)
    assert process.returncode == 0, seen
    return stdout.decode(), seen.decode()


SLOW = """
import time

async def main(host):
    await host.compute(ns=1)
    time.sleep(1.3)
    return 1
"""


def test_progress_is_shown_on_a_terminal_where_it_takes_long(tmp_path: Path, program: Callable) -> None:
    assert program(SLOW, "--json").stderr == ""
    stdout, seen = on_a_terminal(tmp_path, "run", "mine.py", "--nic", CARDS, "--json")
    assert len(json.loads(stdout)["rows"]) == 4
    assert "running on spin-discrete" in seen
    assert "running on spin-integrated" in seen
    assert "1/2" in seen

    program(SUM)
    _, seen = on_a_terminal(tmp_path, "run", "mine.py")
    assert seen == ""

    bench = ["bench", "latency", "--nic", "spin-discrete", "--mode", "rdma", "--iterations", "60000", "--json"]
    stdout, seen = on_a_terminal(tmp_path, *bench, "--sizes", "8,16,32,64,128,256")
    assert len(json.loads(stdout)["rows"]) == 6
    assert "measuring" in seen
    assert "/6" in seen


QUIET = """
import nicety
refusing = nicety.Handlers("refusing.c")

async def main(host):
    memory = host.alloc(64)
    host.portals.pt_alloc(pt=1)
    if host.rank == 1:
        await host.portals.me_append(memory, pt=1, handlers=host.portals.attach(refusing))
    await host.barrier()
    if host.rank == 0:
        await host.portals.put(host.portals.md_bind(memory), 64, to=1, pt=1)
        await host.portals.put(host.portals.md_bind(memory), 64, to=1, pt=2)
"""


def test_failures_on_a_card_fail_the_run(program: Callable, tmp_path: Path) -> None:
    handler = "__handler int payload_handler(const ptl_payload_t p, void *state) { return FAIL; }"
    (tmp_path / "refusing.c").write_text(f"#include <nicety.h>\n{handler}\n")
    ended = program(QUIET, "--json")
    assert ended.status == 1
    document = json.loads(ended.stdout)
    text = "payload handler returned FAIL"
    failure = {"nic": "spin-discrete", "rank": 1, "kind": "fail", "text": text, "times": 1}
    assert document["failures"] == [failure]
    first = "a put from rank 0, pt 2, match bits 0x0: its portal table index is not in use"
    assert document["messages_dropped"] == [{"nic": "spin-discrete", "rank": 1, "messages": 1, "first": first}]
    assert f"spin-discrete: rank 1: {text}" in ended.stderr
    assert f"the card of rank 1 dropped 1 message: {first}" in ended.stderr


def test_lost_frames_are_reported(program: Callable, tmp_path: Path) -> None:
    (tmp_path / "send.c").write_text(
        "#include <nfp.h>\n__process void send(uint32_t to) {\n    uint32_t frame[16] = {1};\n"
        "    nfp_eth_send_to(to, 7, frame, 60, 0, 0);\n    nfp_eth_send_to(to, 7, frame, 60, 0, 0);\n"
        "    nfp_eth_send(to, frame, 60, 0, 0);\n}\n"
    )
    ended = program(
        "import nicety\n\nasync def main(host):\n    if host.rank == 1:\n"
        "        host.channels.start(nicety.Processes('send.c'), 'send', microengine=0, args=[0])\n"
        "    await host.compute(ns=100_000)\n    return {}\n",
        "--nic",
        "nfp-4000",
        "--json",
    )
    assert ended.status == 0
    assert json.loads(ended.stdout)["frames_lost"] == [{"nic": "nfp-4000", "rank": 0, "unclaimed": 2, "waiting": 1}]
    lost = "2 frames for queues that no process had opened and 1 frame that no process took"
    assert f"the port of rank 0 lost {lost}" in ended.stderr


@examples(50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    named=st.dictionaries(
        st.text(min_size=1).filter(lambda name: name not in {"nic", "rank", "time_ns", "host_memory"}),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        max_size=4,
    )
)
def test_whatever_is_returned_comes_out(tmp_path: Path, named: dict[str, object]) -> None:
    path = tmp_path / "any.py"
    path.write_text(f"nan, inf = float('nan'), float('inf')\nasync def main(host):\n    return {named!r}\n")
    report = run_program(path)
    if not named:
        assert [row["rank"] for row in report["rows"]] == [None]
        return
    for row in report["rows"]:
        for name, value in named.items():
            odd = isinstance(value, float) and str(value) in {"nan", "inf", "-inf"}
            assert row[name] == (str(value) if odd else value)
    json.dumps(report, allow_nan=False)
    from nicety.program.script.report import program_text

    assert program_text(report).startswith("# nicety run ")
