"""`nicety goal`, and its functions: schedules, their formats, patterns and runs."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nicety as package
from conftest import PROGRAMS, Result
from sizes import examples

PING = "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n"


@pytest.fixture
def ping(tmp_path: Path) -> Path:
    path = tmp_path / "ping.goal"
    path.write_text(PING)
    return path


def test_a_run_says_when_each_host_is_done(nicety: Callable[..., Result], ping: Path, tmp_path: Path) -> None:
    # o + L + o + 7 G, with LogGOPSim's usual parameters.
    rows, arrow = tmp_path / "rows.csv", tmp_path / "rows.arrow"
    run = nicety("goal", "run", str(ping), "--json", "--csv", str(rows), "--arrow", str(arrow))
    report = json.loads(run.stdout)
    assert (report["finish_ns"], report["max_finish_ns"], report["max_host"]) == ([1500, 5542], 5542, 1)
    assert (report["events"], report["operations"], report["messages"]) == (3, 2, 1)
    assert list(csv.reader(rows.read_text().splitlines())) == [["rank", "finish_ns"], ["0", "1500.0"], ["1", "5542.0"]]
    assert arrow.stat().st_size > 0
    options = ["--L", "1us", "--o", "100ns", "--g", "0", "--G", "15.6ps", "--O", "1ns", "--S", "8"]
    text = nicety("goal", "run", str(ping), *options).stdout
    assert "# " + str(ping) + ": LogGOPS, L 1us, o 100ns, g 0, G 15.6ps, O 1ns, S 8" in text
    assert "last done   1207.000 ns, rank 1" in text
    same = package.run_schedule(
        ping, latency="1us", overhead="100ns", gap="0", gap_per_byte="15.6ps", overhead_per_byte="1ns", eager_bytes=8
    )
    assert same["finish_ns"] == [107, 1207]


def test_a_schedule_goes_through_both_formats(nicety: Callable[..., Result], tmp_path: Path) -> None:
    goal, binary, again = (tmp_path / name for name in ("a.goal", "a.bin", "b.goal"))
    made = nicety("goal", "generate", "halo-2d", "--ranks", "12", "--size", "4Ki", "-o", str(goal), "--json")
    assert json.loads(made.stdout)["operations"] == 68
    nicety("goal", "convert", str(goal), str(binary))
    nicety("goal", "convert", str(binary), str(again))
    assert again.read_text() == goal.read_text()
    assert package.run_schedule(goal)["finish_ns"] == package.run_schedule(binary)["finish_ns"]
    info = package.schedule_info(binary)
    assert (info["ranks"], info["bytes"], info["degree"], info["depth"]) == (12, 34 * 4096, 4, 1)
    assert "operations       68\n" in nicety("goal", "info", str(goal)).stdout
    printed = nicety("goal", "generate", "halo-2d", "--ranks", "12", "--size", "4Ki").stdout
    assert printed == goal.read_text()
    assert package.convert_schedule(binary, tmp_path / "c")["format"] == "text"
    assert package.generate_schedule("pipeline", tmp_path / "p.bin", ranks=3, size=1)["operations"] == 4


@pytest.mark.skipif(sys.platform == "win32", reason="files under Windows have no numbers to compare")
@pytest.mark.parametrize("output", [[], ["-o", "-"], ["-o", "link"]])
def test_a_schedule_on_stdout_goes_behind_earlier_output(tmp_path: Path, output: list[str]) -> None:
    # A link such as /dev/stdout, which a test must not put at risk.
    link = tmp_path / "link"
    link.symlink_to("/dev/fd/1")
    words = [sys.executable, "-m", "nicety", "goal", "generate", "pipeline", "--ranks", "2", "--size", "8", *output]
    with (tmp_path / "both").open("w+b") as both:
        both.write(b"# before\n")
        both.flush()
        subprocess.run(words, cwd=tmp_path, stdout=both, check=True)
    package.generate_schedule("pipeline", tmp_path / "alone.goal", ranks=2, size=8)
    assert (tmp_path / "both").read_text() == "# before\n" + (tmp_path / "alone.goal").read_text()
    assert link.is_symlink()


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege under Windows")
def test_a_schedule_goes_into_the_target_of_a_link(tmp_path: Path) -> None:
    (tmp_path / "of").mkdir()
    target, link = tmp_path / "of" / "a.goal", tmp_path / "link.goal"
    target.write_text("old")
    link.symlink_to(target)
    package.generate_schedule("pipeline", link, ranks=2, size=8)
    assert link.is_symlink()
    assert target.read_text().startswith("num_ranks 2")


@pytest.mark.parametrize(
    ("goal", "status", "said"),
    [
        ("num_ranks 1\nrank 0 {\ncalc x\n}", 2, "{file}:3:6: rank 0: a time in ns is expected, not 'x'"),
        (
            "num_ranks 1\nrank 0 {\nrecv 1b from 0 tag 3\n}",
            1,
            "rank 0: operation 0 (line 3: recv 1b from 0 tag 3): no message came",
        ),
        (
            "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\na requires b\nb requires a\n}",
            2,
            "{file}: rank 0: operations wait for each other: operation",
        ),
        ("num_ranks 1000000000000", 2, "{file}:1:11: the number of ranks is at most 4294967294"),
    ],
)
def test_a_schedule_that_cannot_run_is_told(
    nicety: Callable[..., Result], tmp_path: Path, goal: str, status: int, said: str
) -> None:
    path = tmp_path / "wrong.goal"
    path.write_text(goal)
    failed = nicety("goal", "run", str(path))
    assert failed.status == status
    assert said.format(file=path) in failed.stderr
    with pytest.raises(package.Deadlock if status == 1 else package.InputError):
        package.run_schedule(path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "{file}", "--G", "fast"], "gap_per_byte (G): "),
        (["run", "{file}", "--L", "5"], "latency (L): "),
        (["run", "{file}", "--network", "ethernet"], "--network is loggops or packets, not ethernet"),
        (["run", "{file}", "--network", "packets"], "--network packets: name a card, as in --nic spin-discrete"),
        (["run", "{file}", "--nic", "spin-discrete", "--L", "1us"], "--L: an option of LogGOPS, which has no cards"),
        (["run", "{file}", "--nic", "spin-discrete", "--network", "loggops"], "--network loggops has no cards"),
        (["run", "{file}", "--topology", "star"], "--topology: only for a run on a card; add a card, as in --nic "),
        (["run", "{file}", "--breakdown"], "--breakdown: only for a run on a card"),
        (["run", "{file}", "--faults", "loss=0.1"], "--faults: only for a run on a card"),
        (["run", "{file}", "--nic", "qnix,nfp-4000"], "--nic qnix,nfp-4000: goal run takes one card; use goal comp"),
        (["run", "{file}", "--nic", "spin"], "spin"),
        (["run", "{file}", "--nic", "spin-discrete", "--topology", "torus:3x1x1"], "torus"),
        (["compare", "{file}"], "--nic"),
        (
            ["compare", "{file}", "--nic", "spin-discrete", "--g", "1us"],
            "--g: an option of LogGOPS; add --network loggops",
        ),
        (["compare", "{file}", "--nic", "spin-discrete", "--noise", "1"], "noise"),
        (["run", "{file}", "--compat", "logsim"], "--compat is loggopsim, not logsim"),
        (["run", "{file}", "--compat", "loggopsim", "--G", "15.6ps"], "LogGOPSim takes only whole nanoseconds"),
        (["run", "nowhere.goal"], "nowhere.goal: cannot read it (No such file or directory)"),
        (
            ["generate", "brodcast", "--ranks", "2", "--size", "8"],
            'there is no pattern "brodcast"; the patterns are ',
        ),
        (
            ["generate", "gather", "--ranks", "2", "--size", "8", "--json"],
            "--json prints its document on stdout, where",
        ),
        (
            ["generate", "gather", "--ranks", "2", "--size", "8", "--compute", "1us"],
            "compute: the pattern gather has no calculations; leave this option out",
        ),
        (
            ["generate", "pipeline", "--ranks", "2", "--size", "8", "--layers", "3"],
            "layers: the pattern pipeline has no layers; leave this option out",
        ),
        (["generate", "gather", "--ranks", "0", "--size", "8"], "--ranks is 1 to 4294967294, not 0"),
        (["convert", "{file}", "/nowhere/a.bin"], "/nowhere/a.bin: cannot write it (No such file or directory)"),
    ],
)
def test_a_mistake_is_told(nicety: Callable[..., Result], ping: Path, arguments: list[str], said: str) -> None:
    failed = nicety("goal", *(each.format(file=ping) for each in arguments))
    assert failed.status == 2
    assert said in failed.stderr
    assert "Traceback" not in failed.stderr


def test_parts_ignored_by_loggopsim_are_noted(nicety: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "cycle.goal"
    path.write_text("num_ranks 1\nrank 0 {\na: calc 10\nb: calc 20\nb requires b\n}\n")
    done = nicety("goal", "run", str(path), "--compat", "loggopsim", "--json")
    report = json.loads(done.stdout)
    assert (report["finish_ns"], report["unexecuted"], report["compat"]) == ([10], 1, "loggopsim")
    assert "1 operations never ran, as in LogGOPSim" in done.stderr


def test_threads_change_nothing_on_cards(nicety: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "alltoall.goal"
    package.generate_schedule("linear-alltoall", path, ranks=5, size=10_000)
    one, several = (package.run_schedule(path, nic="spin-discrete", threads=threads) for threads in (1, 9))
    assert (one.pop("threads"), several.pop("threads")) == (1, 5)
    assert several == one
    compared = nicety("goal", "compare", path, "--nic", "spin-discrete,qnix", "--threads", "2", "--json").json()
    assert compared["rows"][0]["finish_ns"] == one["max_finish_ns"]
    capture = tmp_path / "all.pcapng"
    done = nicety("goal", "run", path, "--nic", "spin-discrete", "--threads", "2", "--capture", capture, "--json")
    assert done.json()["threads"] == 1
    for threads in ("0", "1025"):
        done = nicety("goal", "run", path, "--nic", "spin-discrete", "--threads", threads)
        assert (done.status, "threads" in done.stderr) == (2, True)


def test_threads_change_nothing(nicety: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "ring.bin"
    package.generate_schedule("ring-allreduce", path, ranks=13, size=1 << 20, iterations=2)
    one, several = (package.run_schedule(path, threads=threads) for threads in (1, 4))
    assert (one.pop("threads"), several.pop("threads")) == (1, 4)
    assert one == several
    done = nicety("goal", "run", path, "--threads", "2", "--compat", "loggopsim", "--json")
    assert done.json()["threads"] == 1
    assert "by the rules of LogGOPSim events have one order, so the run uses one thread" in done.stderr
    assert "without a latency" in nicety("goal", "run", path, "--threads", "2", "--L", "0").stderr


def test_a_pattern_without_a_size_is_told_of(nicety: Callable[..., Result]) -> None:
    done = nicety("goal", "generate", "ring-allreduce", "--ranks", "4")
    assert done.status == 2
    assert done.stderr.startswith("nicety: --size is missing: bytes of the message")


def test_a_trace_of_an_mpi_program_becomes_a_schedule(nicety: Callable[..., Result], tmp_path: Path) -> None:
    comm = "94853248035456"
    for rank in (0, 1):
        lines = [
            "MPI_Init:-:1:2:1000",
            f"MPI_Sendrecv:1002:1:4:1,1,1:{1 - rank}:7:2:4:1,1,1:{1 - rank}:7:{comm},{rank},2:9:1009",
            "MPI_Test:1009:4096:1:2:1010",
            f"MPI_Barrier:1011:{comm},{rank},2:1020",
            "MPI_Finalize:1020:-",
        ]
        (tmp_path / f"pmpi-trace-rank-{rank}.txt").write_text("\n".join(lines) + "\n")
    # In any order: the names contain the ranks.
    done = nicety("goal", "trace", "pmpi-trace-rank-1.txt", "pmpi-trace-rank-0.txt", "-o", "t.bin", "--json")
    assert done.status == 0
    assert done.json() == {
        "output": "t.bin",
        "ranks": 2,
        "calls": 10,
        "operations": 12,
        "ambiguous_calls": {"MPI_Test": 2},
        "out_of_order_calls": 0,
    }
    assert done.stderr.startswith(
        "nicety: traces do not record the requests that calls completed (2 of MPI_Test); a test"
    )
    # 2 us, a message of 4 bytes both ways, 2 us, one byte both ways.
    run = nicety("goal", "run", "t.bin", "--L", "1us", "--o", "0", "--g", "0", "--G", "0", "--json")
    assert run.json()["finish_ns"] == [6000.0, 6000.0]


@pytest.mark.parametrize(
    ("files", "wrong"),
    [
        (["rank-0.txt", "rank-2.txt"], "there is no trace of rank 1; name the traces of all ranks"),
        (
            ["rank-0.txt", "other-0.txt"],
            "other-0.txt: this is the trace of rank 0, and rank-0.txt is too; leave one out",
        ),
        (["rank.txt"], "rank.txt: its name does not end with a rank, as pmpi-trace-rank-7.txt does"),
        (["none-0.txt"], "none-0.txt: cannot read it (No such file or directory)"),
        (["bad-0.txt"], "bad-0.txt:2:15: rank 0: a communicator, as in 0,3,4, is expected, not '0,1'"),
    ],
)
def test_traces_that_are_none_or_missing_are_refused(
    files: list[str], wrong: str, nicety: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "bad-0.txt").write_text("MPI_Init:-:1:2:3\nMPI_Barrier:4:0,1:5\n")
    done = nicety("goal", "trace", *files, "-o", "out.goal")
    assert (done.status, done.stdout, done.stderr) == (2, "", f"nicety: {wrong}\n")
    assert not (tmp_path / "out.goal").exists()


def traces(folder: Path, calls: list[list[str]], end: int = 9000) -> list[str]:
    """Traces of ranks with these calls, in which @ is the communicator."""
    names = []
    for rank, lines in enumerate(calls):
        comm = f"94853248035456,{rank},{len(calls)}"
        text = "".join(f"{line.replace('@', comm)}\n" for line in lines)
        names.append(f"rank-{rank}.txt")
        (folder / names[-1]).write_text(f"MPI_Init:-:1:2:1000\n{text}MPI_Finalize:{end}:-\n")
    return names


SENT = "MPI_Send:1001:1:8:1,1,1:1:7:@:1002"
TAKEN = "MPI_Recv:1001:1:8:1,1,1:0:7:@:1:1002"
LONG = f":{2**62}:"


@pytest.mark.parametrize(
    ("calls", "end", "wrong"),
    [
        ([[SENT], []], 9000, "1 message without a receive, 0 receives without a message, 0 operations blocked by them"),
        ([[], [TAKEN]], 9000, "0 messages without a receive, 1 receive without a message"),
        ([[SENT], [TAKEN, TAKEN]], 9000, "rank 1: operation 2 (line 3: recv 8b from 0 tag 7): no message came"),
        ([[SENT], [TAKEN.replace(":7:", ":8:")]], 9000, "rank 0: operation 1 (line 2: send 8b to 1 tag 7): no receive"),
        ([[], []], 10**14, "operation 0 (line 2: calc "),
        ([[SENT.replace(":8:", LONG)], [TAKEN.replace(":8:", LONG)]], 9000, "more than 2^64 ps, 213 days"),
    ],
)  # fmt: skip
def test_traces_of_which_no_run_could_finish_are_refused(
    calls: list[list[str]], end: int, wrong: str, nicety: Callable[..., Result], tmp_path: Path
) -> None:
    names = traces(tmp_path, calls, end)
    done = nicety("goal", "trace", *names, "-o", "out.goal")
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith("nicety: these traces: ")
    assert wrong in done.stderr, done.stderr
    assert not (tmp_path / "out.goal").exists()


@examples(40)
@given(
    calls=st.lists(
        st.lists(
            st.builds(
                lambda kind, size, peer, tag, at: (
                    f"MPI_{kind}:{at}:1:{size}:1,1,1:{peer}:{tag}:@:{'1:' if kind == 'Recv' else ''}{at + 1}"
                ),
                st.sampled_from(["Send", "Recv"]),
                st.sampled_from([0, 8, 100_000, 2**40, 2**63]),
                st.sampled_from([-2, -1, 0, 1]),
                st.integers(0, 1),
                st.sampled_from([1001, 5000, 10**14]),
            )
            | st.just("MPI_Barrier:6000:@:6001"),
            max_size=4,
        ),
        min_size=2,
        max_size=2,
    )
)
def test_a_schedule_that_was_traced_runs(tmp_path_factory: pytest.TempPathFactory, calls: list[list[str]]) -> None:
    folder = tmp_path_factory.mktemp("traced")
    names = [str(folder / name) for name in traces(folder, calls)]
    for target in (folder / "out.bin", folder / "out.goal"):
        try:
            package.trace_schedule(names, target)
        except package.InputError:
            assert not target.exists()
        else:
            assert package.run_schedule(target)["ranks"] == 2


def test_traces_by_mpi_become_schedules(nicety: Callable[..., Result], tmp_path: Path) -> None:
    mpi = Path(sys.executable).parent
    compile_it = [mpi / "mpicc", "-O1", "-o", tmp_path / "traced", PROGRAMS / "traced.c"]
    for command in (compile_it, [mpi / "mpiexec", "-n", "3", "./traced"]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
    traces = sorted(path.name for path in tmp_path.glob("pmpi-trace-rank-*.txt"))
    assert nicety("goal", "trace", *traces, "-o", "traced.goal").stderr == ""
    info = nicety("goal", "info", "traced.goal", "--json").json()
    # A barrier for MPI_Comm_dup. Each of three rounds has 3 messages in the ring, 2 in the chain and 2 of a broadcast.
    # It has 4 of an allreduce with a rank that folds into another, and 6 of a barrier.
    assert (info["sends"], info["recvs"]) == (6 + 3 * (3 + 2 + 2 + 4 + 6), 57)
    assert info["bytes"] == 6 + 3 * (3 * 4000 + 2 * 4 + 2 * 80 + 4 * 2000 + 6)
    assert nicety("goal", "run", "traced.goal").status == 0


ENDED = """
import os, sys, time
import nicety.cli, nicety.apps.goal

def run(file, *, progress, **_):
    progress(412, 1000)
    os.kill(os.getpid(), int(sys.argv[1]))
    time.sleep(60)

nicety.apps.goal.run_schedule = run
sys.exit(nicety.cli.main(["goal", "run", "ping.goal", "--json"]))
"""


@pytest.mark.parametrize(("number", "status", "word"), [(2, 130, "interrupted"), (15, 143, "terminated")])
def test_a_run_that_is_ended_says_how_far_it_was(number: int, status: int, word: str, ping: Path) -> None:
    command = [sys.executable, "-c", ENDED, str(number)]
    done = subprocess.run(command, cwd=ping.parent, capture_output=True, text=True, timeout=50, check=False)
    text = "ping.goal: 41.2% of the operations were executed"
    assert (done.returncode, done.stderr) == (status, f"nicety: {text}\nnicety: {word}\n")
    assert json.loads(done.stdout) == {"error": {"kind": "Interrupted", "text": text, "executed": 0.412}}


def test_a_ping_pong_on_a_card_takes_what_its_benchmark_says(nicety: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "ping-pong.goal"
    path.write_text(
        "num_ranks 2\nrank 0 {\nsend 8b to 1\nrecv 8b from 1\n}\n"
        "rank 1 {\nr: recv 8b from 0\ns: send 8b to 0\ns requires r\n}\n"
    )
    latency = package.run_benchmark("latency", nics="spin-discrete", modes="rdma", sizes=8)["rows"][0]["latency_ns"]
    report = nicety("goal", "run", str(path), "--nic", "spin-discrete", "--breakdown", "--json").json()
    assert report["finish_ns"][0] == 2 * latency == 1387.37
    assert (report["network"], report["nic"], report["messages"], report["events"]) == (
        "packets",
        "spin-discrete",
        2,
        6,
    )
    assert sum(round(stage["ns"] * 1000) for stage in report["stages"]) == 1387370
    assert "parameters" not in report
    text = nicety("goal", "run", str(path), "--nic", "spin-discrete", "--topology", "star").stdout
    assert "spin-discrete, topology star, seed 1\n" in text
    assert "communicating" in text


def test_cards_are_compared(nicety: Callable[..., Result], tmp_path: Path) -> None:
    path, picture, rows = tmp_path / "step.goal", tmp_path / "step.svg", tmp_path / "rows.csv"
    package.generate_schedule("data-parallel", path, ranks=6, size=60_000, compute="1us", layers=2)
    options = ["--nic", "spin-discrete,spin-integrated", "--network", "loggops", "--L", "600ns", "--o", "65ns"]
    printed = nicety("goal", "compare", str(path), *options, "--plot", str(picture), "--csv", str(rows)).stdout
    assert printed.startswith(f"# nicety goal compare v{package.__version__}\n# {path}: 6 ranks, ")
    assert "# topology star, seed 1\n# LogGOPS: L 600ns, o 65ns, g 1000ns, G 6ns, O 0, S 65535\n" in printed
    assert [line.split()[-3:] for line in printed.splitlines() if line.startswith("# Time (")] == [
        ["spin-discrete", "spin-integrated", "loggops"]
    ]
    assert picture.read_text().startswith("<?xml")
    report = package.compare_schedule(path, nics=["spin-discrete", "spin-integrated"])
    table = list(csv.DictReader(rows.read_text().splitlines()))
    assert [row["nic"] for row in table] == ["spin-discrete", "spin-integrated", "loggops"]
    for row, csv_row in zip(report["rows"], table, strict=False):
        own = report["by_rank"][row["nic"]]
        exposed = [busy - both for busy, both in zip(own["communicating_ns"], own["overlapped_ns"], strict=True)]
        assert float(csv_row["finish_ns"]) == row["finish_ns"] == max(own["finish_ns"])
        assert row["exposed"]["max_ns"] == pytest.approx(max(exposed))
        assert row["computing"]["min_ns"] == row["computing"]["max_ns"] == 6000
        assert row["overlap"] == pytest.approx(sum(own["overlapped_ns"]) / sum(own["communicating_ns"]))
        assert sum(round(stage["ns"] * 1000) for stage in row["stages"]) == round(row["finish_ns"] * 1000)
        assert package.run_schedule(path, nic=row["nic"])["finish_ns"] == own["finish_ns"]
    assert "stages" not in package.compare_schedule(path, nics="qnix", network="loggops")["rows"][1]
    path.write_text("num_ranks 1\nrank 0 {\ncalc 1\n}\n")
    assert ": 1 rank, 1 operation, 0 messages\n" in nicety("goal", "compare", str(path), "--nic", "qnix").stdout


LATE = (
    "num_ranks 2\nrank 0 {\nsend 1048576b to 1\n}\nrank 1 {\na: calc 5000\nr: recv 1048576b from 0 cpu 1\n"
    "c: calc 100000\nr requires a\nc requires a\n}\n"
)


def test_cards_execute_messages_by_themselves(nicety: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "late.goal"
    path.write_text(LATE)
    one_core = ["--nic", "spin-discrete", "--set", "host.cores=1"]
    host, card = (
        nicety("goal", "run", str(path), *one_core, *mode, "--json").json() for mode in ([], ["--mode", "card"])
    )
    assert (host["mode"], host["manifest"]["modes"]) == ("host", ["host"])
    assert (card["mode"], card["manifest"]["modes"]) == ("card", ["card"])
    assert "compiler" not in host["manifest"]
    assert card["manifest"]["compiler"]["spin-discrete"]["source"] == "matching.c"
    assert (card["messages"], card["operations"]) == (host["messages"], host["operations"]) == (1, 4)
    # A mebibyte takes 20971.52 ns of the link: after the computation, or concurrently.
    assert host["max_finish_ns"] - card["max_finish_ns"] > 20_971
    assert card["max_finish_ns"] < 106_000
    text = nicety("goal", "run", str(path), "--nic", "spin-discrete", "--mode", "card").stdout
    assert ": spin-discrete, mode card, seed 1\n" in text

    report = package.compare_schedule(path, nics="spin-discrete", modes=["host", "card"], overrides=["host.cores=1"])
    rows = report["rows"]
    assert [(row["nic"], row["mode"]) for row in rows] == [
        ("spin-discrete/host", "host"),
        ("spin-discrete/card", "card"),
    ]
    assert [row["finish_ns"] for row in rows] == [host["max_finish_ns"], card["max_finish_ns"]]
    assert rows[0]["overlap"] < rows[1]["overlap"]
    assert set(report["by_rank"]) == {row["nic"] for row in rows}
    alone = package.compare_schedule(path, nics="spin-discrete", modes="card", overrides=["host.cores=1"])
    assert alone["rows"][0]["finish_ns"] == card["max_finish_ns"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["run", "--mode", "card"], "--mode: only for a run on a card; add a card, as in --nic spin-discrete"),
        (["run", "--nic", "qnix", "--mode", "card"], "--mode card: qnix has no handlers: a card of design qnix"),
        (["run", "--nic", "nfp-4000", "--mode", "card"], "--mode card: nfp-4000 has no handlers"),
        (["run", "--nic", "spin-discrete", "--mode", "hpu"], "--mode"),
        (["compare", "--nic", "spin-discrete,apenet-v5", "--mode", "card"], "--mode card: apenet-v5 has no handlers"),
        (
            ["compare", "--nic", "spin-discrete", "--mode", "hpu"],
            "--mode: there is no mode hpu; the modes are host and card",
        ),
    ],
)
def test_a_mode_that_cannot_be_is_refused(
    nicety: Callable[..., Result], tmp_path: Path, options: list[str], said: str
) -> None:
    path = tmp_path / "late.goal"
    path.write_text(LATE)
    command, *rest = options
    failed = nicety("goal", command, str(path), *rest)
    assert failed.status == 2
    assert said in failed.stderr


def test_unexecuted_operations_on_cards_are_reported(nicety: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "left.goal"
    path.write_text("num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\n}\n")
    for command in (["run"], ["compare"], ["run", "--mode", "card"]):
        failed = nicety("goal", command[0], str(path), *command[1:], "--nic", "spin-discrete")
        assert failed.status == 1
        assert "rank 0: operation 0 (line 3: send 8b to 1): no receive took it" in failed.stderr
    with pytest.raises(package.Deadlock, match="no receive took it"):
        package.run_schedule(path, nic="qnix")
    path.write_text("num_ranks 2\nrank 0 {\nsend 9b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n")
    with pytest.raises(package.RunError, match=r"rank 1: operation 0 \(line 6: recv 8b from 0\): a message of 9 bytes"):
        package.run_schedule(path, nic="spin-discrete")


def test_noise_lengthens_a_run_from_a_distribution_or_a_trace(nicety: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "calc.goal").write_text("num_ranks 2\nrank 0 {\ncalc 9000000\n}\nrank 1 {\ncalc 9000000\n}\n")
    (tmp_path / "trace.txt").write_text("# a tenth\n0 1000\n10000 1\n")

    def finish(*options: str) -> list[float]:
        report = nicety("goal", "run", "calc.goal", "--json", *options).json()
        assert ("noise" in report) == ("seed" in report) == ("--noise" in options)
        found: list[float] = report["finish_ns"]
        return found

    assert finish() == [9e6, 9e6]
    for noise in ("10us,1us", "10us,1us,fixed", "trace.txt"):
        ends = finish("--noise", noise)
        assert ends[0] != ends[1]
        assert all(abs(end - 10e6) < 5e5 for end in ends), noise
        assert finish("--noise", noise, "--threads", "2") == ends
        assert finish("--noise", noise, "--seed", "2") != ends
    assert finish("--noise", "10us,1us,rank=1")[0] == 9e6
    assert ", noise trace.txt, seed 1\n" in nicety("goal", "run", "calc.goal", "--noise", "trace.txt").stdout
    assert finish("--noise", "trace.txt,rank=1") == [9e6, finish("--noise", "trace.txt")[1]]


def test_cores_of_cards_hosts_have_the_noise_that_cpus_have_on_loggops(
    nicety: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "calc.goal").write_text("num_ranks 2\nrank 0 {\ncalc 9000000\n}\nrank 1 {\ncalc 9000000\n}\n")
    (tmp_path / "trace.txt").write_text("# a tenth\n0 1000\n10000 1\n")
    for noise in ("10us,1us", "10us,1us,fixed,rank=1", "trace.txt", "trace.txt,rank=0"):
        options = ["goal", "run", "calc.goal", "--json", "--seed", "3", "--noise", noise]
        by_rule, cards = nicety(*options).json(), nicety(*options, "--nic", "spin-discrete").json()
        assert cards["finish_ns"] == by_rule["finish_ns"] != [9e6, 9e6]
        assert cards["manifest"]["noise"] == noise
    text = nicety("goal", "run", "calc.goal", "--nic", "qnix", "--noise", "trace.txt", "--breakdown").stdout
    assert "noise trace.txt" in text
    assert re.search(r"^noise +(0\.9|1\.0)\d\d$", text, re.MULTILINE), "a tenth of 10 ms"


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (["--noise", "1ms"], "noise '1ms': no duration; write PERIOD,DURATION, as in 1ms,25us"),
        (["--noise", "bad.txt"], "noise 'bad.txt': line 2: 'x' is no time in ns"),
        (["--noise", "1ms,2ms"], "noise '1ms,2ms': the duration is not shorter than the period"),
        (["--noise", "1ms,1us,rank=2"], "noise on rank 2: the schedule has ranks 0 to 1"),
        (
            ["--noise", "1ms,1us", "--compat", "loggopsim"],
            "noise: only nicety's own rules have noise; leave compat out",
        ),
    ],
)
def test_noise_that_cannot_be_is_refused(
    options: list[str], wrong: str, nicety: Callable[..., Result], ping: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad.txt").write_text("1 1\nx 3\n")
    for nic in ([], ["--nic", "spin-discrete"]):
        if nic and "compat" in wrong:
            continue
        done = nicety("goal", "run", ping, *options, *nic)
        assert (done.status, done.stdout) == (2, "")
        assert (wrong.replace("schedule", "cluster") if nic else wrong) in done.stderr
