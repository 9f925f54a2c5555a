"""Sweeps: points of grids on executors, stored results, and studies."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given as every
from hypothesis import strategies as st

import nicety
from conftest import Result
from nicety.cli.sweep.study import read_study
from nicety.errors import InputError
from nicety.sweeps.grid import given, identity, points_of
from sizes import examples

BIN = Path(sys.executable).parent


def square(x: int, y: int = 1) -> dict[str, int]:
    if x == 3:
        raise ValueError("three is odd")
    return {"square": x * x, "y": y}


def counted(x: int, folder: str) -> int:
    """Leaves a file for each call."""
    (Path(folder) / f"{x}.{time.monotonic_ns()}").touch()
    if x == 2 and not (Path(folder) / "good").exists():
        raise ValueError("not yet")
    return x


def fatal(x: int) -> int:
    if x == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def keys(grid: dict[str, list[Any]], what: object = "f", **options: Any) -> list[str]:
    return [point.key for point in points_of(grid, what, options)]


def test_points_are_all_combinations_and_the_last_parameter_changes_fastest() -> None:
    points = points_of({"a": [1, 2], "b": ["x", "y"]}, "f", {})
    assert [tuple(point.values.values()) for point in points] == [(1, "x"), (1, "y"), (2, "x"), (2, "y")]
    assert len({point.key for point in points}) == 4


def test_a_key_is_of_everything_that_goes_into_a_point(tmp_path: Path) -> None:
    file = tmp_path / "in.goal"
    file.write_text("one")
    before = keys({"a": [1, 1.5], "file": [str(file)]}, "f", nic="qnix")
    assert keys({"file": [str(file)], "a": [1, 1.5]}, "f", nic="qnix") == before, "whatever the order"
    assert keys({"a": [1, 1.5], "file": [str(file)]}, "g", nic="qnix") != before
    assert keys({"a": [1, 1.5], "file": [str(file)]}, "f", nic="nfp-4000") != before
    assert keys({"a": [1, 1.5, 2], "file": [str(file)]}, "f", nic="qnix")[:2] == before, "a larger grid goes on"
    in_words = [point.key for point in points_of({"a": [1]}, "f", {}, [f"--in={file}"])]
    file.write_text("two")
    assert [point.key for point in points_of({"a": [1]}, "f", {}, [f"--in={file}"])] != in_words
    partly = functools.partial(square, y=str(file))
    assert given(partly) == {"y": str(file)}
    assert not set(keys({"a": [1, 1.5], "file": [str(file)]}, "f", nic="qnix")) & set(before)


def test_a_card_of_ones_own_is_known_by_its_values(tmp_path: Path) -> None:
    spec = tmp_path / "mine.toml"
    spec.write_text('extends = "qnix"\nname = "mine"\ntitle = "mine"\n')
    before = keys({"nic": [str(spec)]})
    spec.write_text('# a comment is no change\nextends = "qnix"\nname = "mine"\ntitle = "mine"\n')
    assert keys({"nic": [str(spec)]}) == before
    spec.write_text('extends = "qnix"\nname = "mine"\ntitle = "mine"\n[host]\ncores = 3\n')
    assert keys({"nic": [f"{spec},qnix"]}) != before


def test_a_function_is_its_source_and_what_it_is_given() -> None:
    assert identity(square) != identity(counted)
    assert identity(functools.partial(square, y=2)) != identity(functools.partial(square, y=3))
    assert "x * x" in str(identity(square))


@pytest.mark.parametrize(
    ("grid", "wrong"),
    [
        ({"x": []}, "x: there is no value; write at least one"),
        ({"x": "12"}, "x: the values of a parameter are several, as in [8, 64], not '12'"),
        ({"x": [1, 2, 1]}, "x: 1 appears twice"),
        ({"x": [[1]]}, "x: a value is a number, a text, True or False, not [1]"),
        ({"x": [float("nan")]}, "x: a value is a number, a text, True or False, not nan"),
        ({"x": range(2000), "y": range(501)}, "the grid has 1002000 points; a sweep has at most 1000000"),
    ],
)
def test_a_grid_that_cannot_be_is_refused(grid: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InputError) as error:
        nicety.sweep(square, grid)
    assert str(error.value) == wrong


def test_impossible_sweeps_are_refused() -> None:
    with pytest.raises(InputError, match="x is in the grid and in the options"):
        nicety.sweep(square, {"x": [1]}, options={"x": 2})
    with pytest.raises(InputError, match="cannot be sent to processes"):
        nicety.sweep(lambda x: x, {"x": [1]})
    with ThreadPoolExecutor() as threads, pytest.raises(InputError, match="leave one of the two out"):
        nicety.sweep(square, {"x": [1]}, executor=threads, jobs=2)
    with pytest.raises(InputError, match="jobs is a whole number from 1 to 1024, not 0"):
        nicety.sweep(square, {"x": [1]}, jobs=0)


def test_results_become_one_table_and_a_failed_point_a_row_of_it() -> None:
    seen: list[tuple[int, int]] = []
    with ThreadPoolExecutor(2) as threads:
        found = nicety.sweep(
            square, {"x": [2, 3, 4]}, options={"y": 7}, executor=threads, progress=lambda *done: seen.append(done)
        )
        assert threads.submit(int).result() == 0, "it stays open"
    assert found.table.columns == ["point", "x", "y", "status", "error", "square"]
    assert found.table.column("y") == [7, 7, 7], "also of the point that failed"
    assert found.table.column("square") == [4, None, 16]
    assert found.table.column("status") == ["done", "failed", "done"]
    assert found.table.column("error") == [None, "ValueError: three is odd", None]
    assert [(point.values["x"], error) for point, error in found.failed] == [(3, "ValueError: three is odd")]
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert (found.done, found.before) == (2, 0)


@pytest.mark.parametrize(
    ("returned", "columns"),
    [
        (5, {"value": [5]}),
        ([{"a": 1}, {"a": 2, "b": "x"}], {"a": [1, 2], "b": [None, "x"]}),
        ({"rows": [{"a": True}, {"a": 1}], "other": 3}, {"a": ["true", "1"]}),
        ({"inner": {"a": 1}, "list": [1, 2]}, {"inner_a": [1]}),
        ([], {}),
    ],
)
def test_a_result_is_a_value_a_row_rows_or_a_report(returned: Any, columns: dict[str, list[Any]]) -> None:
    with ThreadPoolExecutor() as threads:
        table = nicety.sweep(lambda x: returned, {"x": [1]}, executor=threads).table
    assert table.columns == ["point", "x", "status", "error", *columns]
    assert {name: table.column(name) for name in columns} == columns


def test_a_result_that_json_has_not_fails_its_point() -> None:
    with ThreadPoolExecutor() as threads:
        found = nicety.sweep(lambda x: {1, 2}, {"x": [1]}, executor=threads)
    assert found.failed[0][1] == "TypeError: a result is what JSON has, not of type set"


def test_processes_run_points_and_one_that_ends_takes_only_its_own_with_it() -> None:
    found = nicety.sweep(fatal, {"x": [0, 1, 2, 3]}, jobs=2)
    assert found.table.column("value") == [0, None, 2, 3]
    assert [error for _, error in found.failed] == ["the process that ran it has ended: killed, or out of memory"]


def test_only_failed_points_run_again(tmp_path: Path) -> None:
    calls, folder = tmp_path / "calls", tmp_path / "out"
    calls.mkdir()

    def again(*x: int) -> nicety.Sweep:
        with ThreadPoolExecutor() as threads:
            options = {"folder": str(calls)}
            return nicety.sweep(counted, {"x": list(x)}, options=options, folder=folder, executor=threads)

    def called() -> list[str]:
        names = sorted(path.name.partition(".")[0] for path in calls.iterdir())
        for path in calls.iterdir():
            path.unlink()
        return names

    first = again(1, 2)
    assert (first.done, first.before, len(first.failed), called()) == (1, 0, 1, ["1", "2"])
    (calls / "good").touch()
    second = again(1, 2, 3)
    assert (second.done, second.before, called()) == (3, 1, ["2", "3", "good"])
    assert pl.read_parquet(folder / "table.parquet")["value"].to_list() == [1, 2, 3]
    assert (folder / "table.csv").read_text().splitlines() == [
        "point,x,folder,status,error,value",
        f"0,1,{calls},done,,1",
        f"1,2,{calls},done,,2",
        f"2,3,{calls},done,,3",
    ]
    # A damaged file is no result.
    for path in (folder / "points").iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert (again(1, 2, 3).before, called()) == (0, ["1", "2", "3"])


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with ThreadPoolExecutor() as threads, pytest.raises(InputError, match="this folder holds no sweep"):
        nicety.sweep(square, {"x": [1]}, folder=tmp_path, executor=threads)
    with ThreadPoolExecutor() as threads, pytest.raises(InputError, match="no sweep can be written there"):
        nicety.sweep(square, {"x": [1]}, folder=tmp_path / "mine" / "x", executor=threads)


class Broken(Executor):
    """Runs one task, and breaks."""

    def __init__(self) -> None:
        self.runs = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.runs += 1
        if self.runs == 1:
            future.set_result(fn(*args, **kwargs))
        else:
            future.set_exception(BrokenExecutor("gone"))
        return future


def test_an_executor_that_breaks_loses_nothing_that_is_done() -> None:
    found = nicety.sweep(square, {"x": [2, 4, 5]}, executor=Broken())
    assert found.table.column("square") == [4, None, None]
    assert [error for _, error in found.failed] == ["the executor broke before it ran"] * 2


STUDY = """\
# Latency of small messages
run = "bench latency"

[options]
mode = "rdma"
iterations = 2

[grid]
nic = ["spin-discrete", "spin-integrated"]
sizes = [8, "4Ki"]
set."link.latency" = ["50 ns", "1 us"]
"""


def test_a_study_runs_its_command_at_every_point(nicety: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(STUDY)
    done = nicety("sweep", "small.toml", "--json", "--jobs", 2)
    assert (done.status, done.stderr) == (0, "")
    assert done.json() == {
        "version": "0.1.0",
        "folder": "small",
        "points": 8,
        "done": 8,
        "reused": 0,
        "failed": [],
        "files": ["small/table.csv", "small/table.parquet"],
    }
    table = pl.read_parquet(tmp_path / "small/table.parquet")
    assert table["size_bytes"].to_list() == [8, 8, 4096, 4096] * 2
    assert table.columns[:7] == ["point", "nic", "sizes", "set.link.latency", "mode", "iterations", "status"]
    assert set(table["mode"]) == {"rdma"}, "circumstances are in the table"
    point = ["--mode", "rdma", "--nic", "spin-integrated", "--sizes", "4Ki", "--iterations", "2", "--json"]
    alone = nicety("bench", "latency", *point, "--set", "link.latency=1 us")
    (row,) = alone.json()["rows"]
    assert table["latency_ns"].to_list()[-1] == row["latency_ns"]
    again = nicety("sweep", "small.toml")
    assert again.status == 0
    assert again.stdout.splitlines()[1] == "# small.toml: 8 of 8 points are done, 8 of them before"


def test_a_point_that_fails_is_told_and_the_others_are_done(nicety: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        'run = "bench latency --nic spin-discrete"\n[grid]\nmode = ["rdma", "nonsense"]\nsizes = [8]\n'
    )
    done = nicety("sweep", "s.toml", "-o", "out", "--json")
    assert done.status == 1
    (failed,) = done.json()["failed"]
    assert failed["values"] == {"mode": "nonsense", "sizes": 8}
    assert failed["error"] in done.stderr
    assert done.stderr.startswith("nicety: mode nonsense, sizes 8: ")
    assert pl.read_csv(tmp_path / "out/table.csv")["status"].to_list() == ["done", "failed"]


def test_a_command_that_ends_with_a_status_fails_its_point(nicety: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "ends.c").write_text("int main(void) { return STATUS; }\n")
    for status in (0, 1):
        assert nicety("cc", "ends.c", f"-DSTATUS={status}", "-o", f"{status}.elf").status == 0
    (tmp_path / "s.toml").write_text("run = 'hpu run'\n[grid]\nfile = ['0.elf', '1.elf']\n")
    done = nicety("sweep", "s.toml")
    assert done.status == 1
    assert "file 1.elf: the command ended with status 1: 1.elf: it ended with exit code 1" in done.stderr
    table = pl.read_csv(tmp_path / "s/table.csv")
    assert table["status"].to_list() == ["done", "failed"]
    assert nicety("sweep", "s.toml").stdout.splitlines()[1] == "# s.toml: 1 of 2 points are done, 1 of them before"


@pytest.mark.parametrize(
    ("study", "wrong"),
    [
        ("", '1: run is missing: the command, as in run = "bench latency"'),
        ("run = 3\n", '1: run: run is missing: the command, as in run = "bench latency"'),
        ("runs = 'x'", "1: runs: a study has run, options, grid; did you mean run?"),
        ("run = 'bench latency", "this is no TOML: "),
        ("run = 'bench latncy'", "1: run: there is no command 'latncy'; write one of latency, "),
        ("run = 'bench'", "1: run: this names no command; write one of latency, "),
        ("run = 'bench \"'", "1: run: this is no command (No closing quotation)"),
        ("run = 'cc x.c'", "1: run: this command has no report, so a sweep has nothing to tabulate"),
        ("run = 'sweep x.toml'", "1: run: there is no command 'sweep'"),
        ("run = 'bench latency --csv=x'", "1: run: --csv=x: a sweep keeps the report of each point"),
        ("@", "1: [grid] is empty: write an option and its values"),
        ("@grid = 3", "2: grid: write it as a table, [grid]"),
        ("@\n[grid]\n# cards\nnic = 'qnix'", "5: grid.nic: write its values as a list"),
        ("@[grid]\nnic = []", "3: grid.nic: write its values as a list, as in [8, 64]"),
        ("@[grid]\nnic = [\n'a',\n'a']", "3: grid.nic: a value appears twice"),
        ("@[grid]\nnics = ['a']", "3: grid.nics: nicety bench latency has no such option"),
        ("@[options]\nplot = 'a'", "3: options.plot: a sweep keeps the report of each point"),
        ("@[options]\nloopback = 1", "3: options.loopback: write true or false, not 1"),
        ("@[options]\nmode = true", "3: options.mode: write a number or a text, not true"),
        ("@[options]\nmode = [[1]]", "3: options.mode: a list of numbers or texts was expected"),
        ("@[grid]\nnic = ['qnix', 'qnxi']", '3: grid.nic: there is no card spec "qnxi"'),
        ("@[options]\nnic = 'qnxi'\n[grid]\nsizes = [8]", '3: options.nic: there is no card spec "qnxi"'),
        ("run = 'bench latency --nic qnxi'\n[grid]\nsizes = [8]", '1: run: there is no card spec "qnxi"'),
        ("@[options]\nnic = 'spin-discrete'\npeer = 'x'\n[grid]\nsizes = [8]", "4: options.peer: there is no card"),
        (
            "@[options]\nnic = 'spin-discrete'\n[grid]\nsizes = [8]\nset.'hpu.cores' = [4, -1]",
            "6: grid.set.hpu.cores: spin-discrete: hpu.cores=-1: expected a whole number from 1 to 1024",
        ),
        (
            "@[options]\nset.hpu.coers = 8\n[grid]\nsizes = [8]\nnic = ['spin-discrete']",
            "3: options.set.hpu.coers: spin-discrete: hpu.coers=8: unknown key, did you mean hpu.cores?",
        ),
        (
            "@[grid]\nnic = ['apenet-v5', 'spin-discrete']\nset.'tlb.entries' = [64]",
            "4: grid.set.tlb.entries: spin-discrete: tlb.entries=64: ",
        ),
        ("@[options]\nset = 3", '3: options.set: name the value to change, as in set."hpu.cores"'),
        ("@[grid]\nsizes = [8, '64X']", "3: grid.sizes: --sizes 64X: '64X' is not a number"),
        ("@[grid]\niterations = [0]", "3: grid.iterations: --iterations is 1 to 10000000, not 0"),
        ("@[grid]\niterations = ['x']", "3: grid.iterations: --iterations x: 'x' is not a number"),
        ("@[options]\nseed = 1\n[grid]\nseed = [1]", "5: grid.seed: this option is in [options], too"),
        ("@[grid]\nsizes = [8]", "1: run: Missing option '--nic'"),
        ("run = 'goal run'\n[grid]\nL = ['1us']", "1: run: Missing argument 'FILE'"),
    ],
)  # fmt: skip
def test_a_study_that_cannot_be_is_refused_with_its_line(study: str, wrong: str, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(study.replace("@", "run = 'bench latency'\n"))
    with pytest.raises(InputError) as error:
        read_study(file)
    assert str(error.value).startswith((f"{file}:{wrong}", f"{file}: {wrong}"))


def test_a_point_is_the_command_line_that_it_would_be(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(
        "run = 'nicety goal run'\n[options]\nfile = 'a.goal'\n"
        "[grid]\nL = ['1us']\nthreads = [2]\ncompat = ['loggopsim']\n"
    )
    study = read_study(file)
    (point,) = points_of(study.grid, study.words, study.options)
    assert study.arguments(point.values) == ["goal", "run", "a.goal", "--L=1us", "--threads=2", "--compat=loggopsim"]
    file.write_text(
        "run = 'bench latency'\n[options]\nnic = ['spin-discrete', 'spin-integrated']\n"
        "[grid]\nbreakdown = [true, false]\nset.transport.reliable = [true]\n"
    )
    study = read_study(file)
    found = [study.arguments(point.values) for point in points_of(study.grid, study.words, study.options)]
    common = ["bench", "latency", "--nic=spin-discrete,spin-integrated"]
    assert found == [
        [*common, "--breakdown", "--set", "transport.reliable=true"],
        [*common, "--set", "transport.reliable=true"],
    ]
    file.write_text("run = 'exec'\n[options]\nprogram = './heat 100 \"a b\"'\n[grid]\nnic = ['qnix']\nn = [2]\n")
    study = read_study(file)
    (point,) = points_of(study.grid, study.words, study.options)
    assert study.arguments(point.values) == ["exec", "--nic=qnix", "--ranks=2", "--", "./heat", "100", "a b"]
    file.write_text("run = 'exec'\n[options]\nprogram = './heat \"a'\n[grid]\nnic = ['qnix']\n")
    with pytest.raises(InputError, match=r"3: options.program: ./heat \"a: no closing quotation, as a shell reads it"):
        read_study(file)


def test_a_study_runs_real_programs(nicety: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text("from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n")
    program = f"{sys.executable} hello.py"
    (tmp_path / "cards.toml").write_text(
        f"run = 'exec'\n[options]\nprogram = '{program}'\n[grid]\nnic = ['spin-discrete', 'spin-integrated']\nn = [2]\n"
    )
    nicety("sweep", "cards.toml")
    table = pl.read_csv(tmp_path / "cards/table.csv")
    discrete, integrated = table.filter(pl.col("rank") == 0)["max_finish_ns"]
    assert 0 < integrated < discrete


def test_a_run_of_a_program_has_its_processes_and_its_status(nicety: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(
        "import sys\nfrom mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\nMPI.Finalize()\nsys.exit(int(sys.argv[1]))\n"
    )
    programs = [f"{sys.executable} ends.py {status}" for status in (0, 5)]
    (tmp_path / "s.toml").write_text(
        f"run = 'exec --nic spin-discrete'\n[options]\nn = 2\n[grid]\nprogram = {programs}\n"
    )
    done = nicety("sweep", "s.toml", "--jobs", 1)
    assert done.status == 1
    assert f"program {programs[1]}: the command ended with status 5" in done.stderr
    table = pl.read_csv(tmp_path / "s/table.csv")
    assert table["point"].to_list() == [0, 0, 1, 1]
    assert table["status"].to_list() == ["done", "done", "failed", "failed"]
    assert table["report_status"].to_list() == [0, 0, 5, 5]
    assert table["rank"].to_list() == [0, 1, 0, 1]
    alone = nicety("exec", "--nic", "spin-discrete", "-n", 2, "--csv", "alone.csv", "--", *programs[0].split())
    assert alone.status == 0
    of_ranks = pl.read_csv(tmp_path / "alone.csv").columns
    assert set(of_ranks) <= set(table.columns)
    assert table.filter(pl.col("point") == 0)["max_finish_ns"].to_list() == [table["finish_ns"][:2].max()] * 2


def test_runs_on_several_cards_are_rows_of_one_table(nicety: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text("from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n")
    (tmp_path / "s.toml").write_text(
        "run = 'exec'\n[options]\nnic = ['spin-discrete', 'spin-integrated']\n"
        f"[grid]\nprogram = ['{sys.executable} hello.py']\nn = [2]\n"
    )
    assert nicety("sweep", "s.toml").status == 0
    table = pl.read_csv(tmp_path / "s/table.csv")
    assert list(zip(table["nic"], table["rank"], strict=True)) == [
        ("spin-discrete", 0),
        ("spin-discrete", 1),
        ("spin-integrated", 0),
        ("spin-integrated", 1),
    ]


def running() -> list[int]:
    """All processes of this machine."""
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


SLOW = 'run = "bench latency --nic spin-discrete --mode rdma --sizes 8"\n[grid]\niterations = [1, 10000000]\n'


@pytest.mark.parametrize(
    ("number", "status", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_signal_ends_a_sweep_with_what_it_has(number: int, status: int, word: str, tmp_path: Path) -> None:
    (tmp_path / "slow.toml").write_text(SLOW)
    command = [sys.executable, "-m", "nicety", "sweep", "slow.toml", "--jobs", "2"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    points = tmp_path / "slow/points"
    # A file has another name until it is complete; then its sweep is notified.
    while not any(points.glob("*.json")):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)
    # As from a terminal: to all its processes.
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    told = "nicety: slow: 1 of 2 points have run; run the same command again for the others\n"
    assert (process.returncode, stderr) == (status, f"{told}nicety: {word}\n")
    end = time.monotonic() + 20
    while any(os.getpgid(each) == process.pid for each in running()):
        assert time.monotonic() < end, "its processes go on"
        time.sleep(0.05)
    assert pl.read_csv(tmp_path / "slow/table.csv")["iterations"].to_list() == [1]
    assert [path.suffix for path in points.iterdir()] == [".json"], "nothing is there half"


def run_script(text: str, folder: Path, *command: str) -> list[str]:
    """The output of a script, run in a folder."""
    (folder / "script.py").write_text(text)
    done = subprocess.run(
        [*command, sys.executable, *(["-m", "mpi4py.futures"] if command else []), "script.py"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


SCRIPT = """
import os, sys
import nicety

def work(x):
    if x == 3:
        raise ValueError("three")
    return {"square": x * x, "process": os.getpid()}

def tell(found):
    print(found.table.column("square"), [error for _, error in found.failed])
    print(os.getpid() in found.table.column("process"))

if __name__ == "__main__":
"""
TOLD = ["[1, 4, None, 16]", "False"]


def test_mpi_runs_points_on_its_ranks(tmp_path: Path) -> None:
    script = """
    from mpi4py.futures import MPIPoolExecutor
    with MPIPoolExecutor() as executor:
        tell(nicety.sweep(work, {"x": [1, 2, 3, 4]}, executor=executor))
"""
    told = run_script(SCRIPT + script, tmp_path, str(BIN / "mpiexec"), "-n", "3")
    assert told == ["[1, 4, None, 16] ['ValueError: three']", "False"]


def test_a_study_runs_on_the_ranks_of_mpi(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(STUDY)
    for ranks, folder in (("1", "one"), ("3", "three")):
        command = [BIN / "mpiexec", "-n", ranks, sys.executable, "-m", "nicety", "sweep", "small.toml", "-o", folder]
        done = subprocess.run(
            [*command, "--executor", "mpi"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stdout.count("8 of 8 points are done")) == (0, 1), done.stderr
    assert (tmp_path / "one/table.csv").read_bytes() == (tmp_path / "three/table.csv").read_bytes()


def test_dask_runs_points_on_its_workers(tmp_path: Path) -> None:
    script = """
    from distributed import Client
    with Client(n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
        tell(nicety.sweep(work, {"x": [1, 2, 3, 4]}, executor=client.get_executor()))
        address = client.scheduler.address
        print(nicety.cli.main(["sweep", "small.toml", "--executor", f"dask:{address}"]))
"""
    (tmp_path / "small.toml").write_text(STUDY)
    told = run_script(SCRIPT.replace("import nicety\n", "import nicety, nicety.cli\n") + script, tmp_path)
    assert told[:2] == ["[1, 4, None, 16] ['ValueError: three']", "False"]
    assert told[3] == "# small.toml: 8 of 8 points are done", told
    assert told[-1] == "0"


def test_a_script_that_does_not_guard_itself_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import nicety\ndef f(x):\n    return x\ntry:\n    nicety.sweep(f, {'x': [1, 2]})\n"
        "except nicety.RunError as error:\n    print(error)\n"
    )
    command = [sys.executable, "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "call sweep() under if __name__ == '__main__':" in done.stdout


@pytest.mark.parametrize(
    ("name", "status", "wrong"),
    [
        ("slurm", 2, "--executor slurm: write mpi, dask:ADDRESS, ray or ray:ADDRESS"),
        ("dask", 2, "--executor dask: write mpi"),
        ("mpi:3", 2, "--executor mpi:3: write mpi"),
        ("dask:nonsense://x", 1, "--executor dask:nonsense://x: cannot connect ("),
    ],
)
def test_an_executor_that_is_not_there_is_told(
    name: str, status: int, wrong: str, nicety: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "small.toml").write_text(STUDY)
    done = nicety("sweep", "small.toml", "--executor", name)
    assert (done.status, done.stdout) == (status, "")
    assert done.stderr.startswith(f"nicety: {wrong}")


def test_quantities_are_the_same_however_they_are_spelled() -> None:
    times = ["100ns", "0.1us", "100 ns", "100000 ps"]
    assert len({keys({"latency": [text]})[0] for text in times}) == 1
    assert len({keys({"x": [1]}, "f", latency=text)[0] for text in times}) == 1
    assert keys({"latency": ["100ns"]}) != keys({"latency": ["101ns"]})
    with pytest.raises(InputError) as error:
        nicety.sweep(square, {"x": ["1us", "100ns", "0.1us"]})
    assert str(error.value) == "x: '0.1us' appears twice, first as '100ns'"


@pytest.mark.parametrize(
    ("grid", "wrong"),
    [
        ('set."link.latency" = ["100ns", "0.1us", "100 ns"]', "set.link.latency: @: '0.1us', first as '100ns'"),
        ('sizes = ["4Ki", 8, 4096]', "sizes: @: 4096, first as '4Ki'"),
        ('sizes = ["8,4Ki", "8,4096"]', "sizes: @: '8,4096', first as '8,4Ki'"),
        ('set."hpu.cores" = [8, "8"]', "set.hpu.cores: @: '8'"),
        ('set."link.gap" = ["400 Gb/s", "20 ps/B"]', "set.link.gap: @: '20 ps/B', first as '400 Gb/s'"),
        ('mode = ["rdma", "rdma"]', "mode: @: 'rdma'"),
    ],
)  # fmt: skip
def test_values_that_mean_the_same_are_said(grid: str, wrong: str, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(f"run = 'bench latency --nic spin-discrete'\n[grid]\n{grid}\n")
    with pytest.raises(InputError) as error:
        read_study(file)
    assert str(error.value) == f"{file}:3: grid.{wrong.replace('@', 'a value appears twice')}"


def test_a_point_that_is_spelled_otherwise_is_done(nicety: Callable[..., Result], tmp_path: Path) -> None:
    for text, before in (("100ns", 0), ("0.1 us", 1)):
        run = "bench latency --nic spin-discrete --mode rdma --sizes 8"
        (tmp_path / "s.toml").write_text(f'run = "{run}"\n[grid]\nset."link.latency" = ["{text}"]\n')
        assert nicety("sweep", "s.toml", "--json").json()["reused"] == before


def _same(before: bytes, after: bytes) -> bool:
    """Whether two documents differ only in spaces between values."""
    try:
        return bool(json.loads(after) == json.loads(before))
    except ValueError:
        return False


def kept(folder: Path) -> Path:
    """A sweep of two points, which are done."""
    with ThreadPoolExecutor() as threads:
        nicety.sweep(square, {"x": [2, 4]}, folder=folder, executor=threads)
    return folder


def test_a_digit_that_changed_is_no_result(nicety: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('run = "bench latency --nic spin-discrete --mode rdma"\n[grid]\nsizes = [8]\n')
    nicety("sweep", "s.toml")
    (point,) = (tmp_path / "s/points").iterdir()
    whole, table = point.read_text(), (tmp_path / "s/table.csv").read_bytes()
    assert "693.685" in whole
    point.write_text(whole.replace("693.685", "698.685"))
    done = nicety("sweep", "s.toml", "--json")
    assert (done.status, done.json()["reused"]) == (0, 0)
    assert "damaged: the checksum does not match the contents; the point has run again" in done.stderr
    assert (tmp_path / "s/table.csv").read_bytes() == table
    assert nicety("sweep", "s.toml", "--json").json()["reused"] == 1


@examples(60)
@every(which=st.integers(0, 2), at=st.integers(0, 10_000), byte=st.integers(0, 255), cut=st.booleans())
def test_damage_is_never_a_result(
    tmp_path_factory: pytest.TempPathFactory, which: int, at: int, byte: int, cut: bool
) -> None:
    folder = kept(tmp_path_factory.mktemp("sweep") / "out")
    path = [*sorted((folder / "points").iterdir()), folder / "sweep.json"][which]
    before = path.read_bytes()
    at %= len(before)
    after = before[:at] if cut else before[:at] + bytes([byte]) + before[at + 1 :]
    path.write_bytes(after)
    page = folder / "page.html"
    if _same(before, after):
        nicety.sweep_report(folder, page)
    else:
        with pytest.raises(InputError, match=re.escape(str(path))):
            nicety.sweep_report(folder, page)
        assert not page.exists()
    with ThreadPoolExecutor() as threads:
        found = nicety.sweep(square, {"x": [2, 4]}, folder=folder, executor=threads)
    assert found.table.column("square") == [4, 16]
    assert (found.done, found.failed) == (2, [])
