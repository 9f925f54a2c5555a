"""Tours: the card's are those of this machine, a run can be continued, and refusals."""

from __future__ import annotations

import json
import math
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nicety as package
from nicety.apps import gpu
from nicety.apps.salesman import tour_text


def problem(points: list[tuple[int, int]], name: str = "some") -> str:
    lines = [f"{node} {x} {y}" for node, (x, y) in enumerate(points, 1)]
    head = f"NAME: {name}\nTYPE: TSP\nDIMENSION: {len(points)}\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
    return head + "\n".join(lines) + "\nEOF\n"


def ring(count: int) -> list[tuple[int, int]]:
    angles = [2 * math.pi * k / count for k in range(count)]
    return [(round(1000 * math.cos(angle)), round(1000 * math.sin(angle))) for angle in angles]


def some(count: int, seed: int = 1) -> list[tuple[int, int]]:
    dice = random.Random(seed)
    return [(dice.randrange(4000), dice.randrange(4000)) for _ in range(count)]


def length(points: list[tuple[int, int]], tour: list[int]) -> int:
    legs = zip(tour, [*tour[1:], tour[0]], strict=True)
    return sum(math.floor(math.dist(points[a - 1], points[b - 1]) + 0.5) for a, b in legs)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(points: list[tuple[int, int]], name: str = "some.tsp") -> Path:
        path = tmp_path / name
        path.write_text(problem(points))
        return path

    return written


def test_the_shortest_tour_of_a_ring_goes_round_it(write: Callable[..., Path]) -> None:
    points = ring(12)
    random.Random(4).shuffle(points)
    report = package.solve_tsp(write(points), restarts=20, climbers=7, compare="cpu")
    assert report["length"] == length(points, report["tour"]) == 12 * 518
    assert sorted(report["tour"]) == list(range(1, 13))
    assert report["cpu"]["length"] == report["length"]
    assert report["card_climbs_per_s"] == pytest.approx(20 / report["card_time_ns"] * 1e9)
    assert (report["jobs"], report["job_climbs"]) == (1, 20)


def test_distances_and_climbers_change_time_and_no_tour(write: Callable[..., Path]) -> None:
    path = write(some(30))
    runs = [
        package.solve_tsp(path, restarts=15, climbers=climbers, distances=distances)  # type: ignore[arg-type]
        for climbers, distances in [(1, "table"), (8, "table"), (8, "root"), (59, "root")]
    ]
    assert len({(run["length"], run["climb"], tuple(run["tour"])) for run in runs}) == 1
    one, eight, root, _ = (run["card_time_ns"] for run in runs)
    assert eight < one / 4
    # A root takes hundreds of cycles, and a table lookup 37.
    assert root > 2 * eight


MATRIX = """NAME: matrix
TYPE: TSP (a comment)
DIMENSION: 6
EDGE_WEIGHT_TYPE: EXPLICIT
EDGE_WEIGHT_FORMAT: LOWER_ROW
EDGE_WEIGHT_SECTION
7 900000
7 900000 900000 7
900000 900000 900000 7
7 900000 900000 900000 7
EOF
"""


def test_distances_of_a_file_are_looked_up_in_the_hosts_table(tmp_path: Path) -> None:
    path = tmp_path / "matrix.tsp"
    path.write_text(MATRIX)
    report = package.solve_tsp(path, restarts=20, climbers=5, compare="cpu")
    assert (report["length"], report["edge_weight_type"]) == (6 * 7, "EXPLICIT")
    assert report["cpu"]["length"] == report["length"]
    assert report["table"] == {"made_by": "host", "memory": "CLS", "distance_bytes": 4}
    assert "# distances: EXPLICIT, looked up in the host's table in CLS, 4 bytes each\n" in tour_text(report)
    times = []
    for overrides, memory in [
        ([], "CLS"),
        (["memory.cls.size=64 B"], "CTM"),
        (["memory.cls.size=64 B", "memory.ctm.size=64 B"], "IMEM"),
        (["memory.cls.size=64 B", "memory.ctm.size=64 B", "memory.imem.size=18112 B"], "EMEM"),
    ]:
        run = package.solve_tsp(path, restarts=20, climbers=5, overrides=overrides)
        assert run["table"]["memory"] == memory
        assert (run["length"], run["climb"], run["tour"]) == (report["length"], report["climb"], report["tour"])
        times.append(run["card_time_ns"])
    assert times == sorted(times)
    with pytest.raises(package.InputError, match="--distances root: the card computes only EUC_2D distances of whole"):
        package.solve_tsp(path, distances="root")


def test_cities_that_cls_does_not_hold_have_the_hosts_table(write: Callable[..., Path]) -> None:
    path = write(some(30))
    own = package.solve_tsp(path, restarts=5, climbers=5)
    assert own["table"] == {"made_by": "card", "memory": "CLS", "distance_bytes": 2}
    hosts = package.solve_tsp(path, restarts=5, climbers=5, overrides=["memory.cls.size=1 KiB"])
    assert hosts["table"] == {"made_by": "host", "memory": "CTM", "distance_bytes": 2}
    assert (own["length"], own["climb"], own["tour"]) == (hosts["length"], hosts["climb"], hosts["tour"])
    assert "table" not in package.solve_tsp(path, restarts=5, climbers=5, distances="root")


def test_jobs_add_up(write: Callable[..., Path]) -> None:
    path = write(some(20))
    whole = package.solve_tsp(path, restarts=10, climbers=4)
    parts = package.solve_tsp(path, restarts=10, climbers=4, job=4)
    assert (parts["jobs"], parts["job_climbs"]) == (3, 4)
    assert (whole["length"], whole["climb"], whole["tour"]) == (parts["length"], parts["climb"], parts["tour"])
    assert parts["card_time_ns"] > whole["card_time_ns"]
    assert parts == package.solve_tsp(path, restarts=10, climbers=4, job=4)


def test_a_run_is_gone_on_with(write: Callable[..., Path], tmp_path: Path) -> None:
    path, state = write(some(20)), tmp_path / "state.json"
    options: dict[str, Any] = {"climbers": 4, "job": 4}
    fresh = package.solve_tsp(path, restarts=14, **options)
    first = package.solve_tsp(path, restarts=8, resume=state, **options)
    assert [(job["first"], job["climbs"]) for job in json.loads(state.read_text())["jobs"]] in (
        [(0, 4), (4, 4)],
        [(4, 4), (0, 4)],
    )
    seen: list[tuple[int, int]] = []
    more = package.solve_tsp(
        path, restarts=14, resume=state, progress=lambda done, total: seen.append((done, total)), **options
    )
    assert more == fresh
    assert first["length"] >= more["length"]
    assert all(8 <= done <= total == 14 for done, total in seen)
    assert package.solve_tsp(path, restarts=14, resume=state, **options) == fresh


def test_an_interrupt_keeps_what_is_done(write: Callable[..., Path], tmp_path: Path) -> None:
    path, state = write(some(40)), tmp_path / "state.json"
    command = [
        sys.executable,
        "-m",
        "nicety",
        "tsp",
        str(path),
        "--restarts",
        "100000",
        "--job",
        "30",
        "--climbers",
        "3",
    ]
    with subprocess.Popen([*command, "--resume", str(state)], stderr=subprocess.PIPE, text=True) as run:
        for _ in range(600):
            if state.exists() and json.loads(state.read_text())["jobs"]:
                break
            time.sleep(0.1)
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=60)
    assert (run.returncode, errors) == (130, "nicety: interrupted\n")
    kept = json.loads(state.read_text())["jobs"]
    assert kept
    assert all(job["climbs"] == 30 for job in kept)


def test_the_command(nicety: Callable[..., Any], write: Callable[..., Path]) -> None:
    points = some(15)
    path = write(points)
    done = nicety("tsp", path, "--nic", "nfp-4000", "--restarts", "6", "--climbers", "3", "--compare", "cpu", "--json")
    assert done.status == 0, done.stderr
    report = done.json()
    assert report["length"] == length(points, report["tour"])
    assert report["cpu"]["threads"] >= 1
    done = nicety("tsp", path, "--restarts", "6", "--climbers", "3", "--compare", "cpu")
    assert f"# shortest tour: {report['length']}, from climb {report['climb']}" in done.stdout
    assert "measured here" in done.stdout


def test_a_graphics_processor_has_to_find_the_same_tour(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(some(12))
    card = package.solve_tsp(path, restarts=4, climbers=2)
    tour = [city - 1 for city in card["tour"]]
    asked = []

    def climbs(cities: Any, numbers: Any, *, seed: int) -> gpu.GpuClimbs:
        asked.append((len(cities), list(numbers), seed))
        return gpu.GpuClimbs(card["length"], card["climb"], tour, 0.5, "some device")

    monkeypatch.setattr(gpu, "climbs", climbs)
    report = package.solve_tsp(path, restarts=4, climbers=2, compare=["cpu", "gpu"])
    assert report["gpu"] == {
        "processor": "some device",
        "device_time_s": 0.5,
        "climbs_per_s": 8.0,
        "length": card["length"],
    }
    assert asked == [(12, [0], 1), (12, [0, 1, 2, 3], 1)]
    assert "measured here, without moving data: some device" in tour_text(report)
    tour.reverse()
    with pytest.raises(package.RunError, match="one of the programs is wrong"):
        package.solve_tsp(path, restarts=4, climbers=2, compare="gpu")


def test_without_opencl_a_graphics_processor_is_refused(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(package.InputError, match=r"needs PyOpenCL; pip install .* or leave out --compare gpu"):
        package.solve_tsp(write(some(12)), compare="gpu")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--climbers", "60"], "60 climbers on 60 microengines, one for the manager; write 1 to 59"),
        (["--set", "hpu.cores=1"], "59 climbers on 1 microengine, which is the manager's; the card needs at least 2"),
        (["--distances", "guess"], "--distances is root or table, not guess"),
        (["--compare", "abacus"], "--compare abacus: cpu or gpu"),
        (["--nic", "spin-discrete"], "a card of design portals has no microengines"),
        (["--restarts", "4000000", "--job", "10"], "400000 jobs of 10 climbs are too many; write --job 400 or more"),
        (["--resume", "."], "--resume .: this is a folder; name a file in it"),
        (["--resume", "none/state"], "--resume none/state: cannot write it (No such file or directory)"),
        (
            ["--set", "memory.cls.size=1 KiB", "--set", "memory.imem.size=18 KiB", "--set", "memory.emem.size=1 KiB"],
            "the distances of 30 cities take 1856 bytes, and neither IMEM (18432 bytes, 18048 of them for the job)",
        ),
    ],
)
def test_invalid_options_are_refused(
    nicety: Callable[..., Any], write: Callable[..., Path], arguments: list[str], text: str
) -> None:
    done = nicety("tsp", write(some(30)), "--restarts", "3", *arguments)
    assert (done.status, done.stdout) == (2, "")
    assert text in done.stderr, done.stderr


def test_files_of_others_are_refused(nicety: Callable[..., Any], write: Callable[..., Path], tmp_path: Path) -> None:
    path, state = write(some(10)), tmp_path / "state.json"
    done = nicety("tsp", path, "--restarts", "2", "--climbers", "2", "--resume", state)
    assert done.status == 0, done.stderr
    for file, arguments, text in [
        (path, ["--climbers", "2", "--seed", "2"], "it was written for another --seed"),
        (path, ["--climbers", "3"], "it was written for another number of --climbers"),
        (path, ["--climbers", "2", "--job", "1"], "it was written for another number of climbs in a --job"),
        (write(some(10, seed=5), "other.tsp"), ["--climbers", "2"], "it was written for another problem"),
        (path, ["--climbers", "2", "--set", "hpu.clock=800 MHz"], "it was written for another card"),
    ]:
        done = nicety("tsp", file, "--restarts", "2", "--resume", state, *arguments)
        assert (done.status, done.stdout) == (2, "")
        assert text in done.stderr, done.stderr
    text = state.read_text()
    for damage in ("", "{}", text.replace('"tour":[', '"tour":[0,'), text[: len(text) // 2]):
        (tmp_path / "damaged").write_text(damage)
        done = nicety("tsp", path, "--restarts", "2", "--climbers", "2", "--resume", tmp_path / "damaged")
        assert (done.status, done.stdout) == (2, "")
        assert "not a valid file of nicety tsp" in done.stderr, done.stderr


def test_a_damaged_file_is_refused(write: Callable[..., Path], tmp_path: Path) -> None:
    """A changed digit, a tour of other cities, a byte anywhere: its checksum detects it."""
    path, state = write(some(10)), tmp_path / "state.json"
    options: dict[str, Any] = {"restarts": 4, "climbers": 2, "job": 2, "resume": state}
    right = package.solve_tsp(path, **options)
    whole = state.read_bytes()
    rng = random.Random(1)
    places = rng.sample(range(len(whole)), 60)
    for place in [*places, whole.index(b'"length":') + 9, whole.index(b'"time_ps":') + 10]:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.randrange(3)
        state.write_bytes(damaged)
        with pytest.raises(package.InputError, match=r"--resume .*state\.json: (not a valid file|it was written for)"):
            package.solve_tsp(path, **options)
        assert state.read_bytes() == damaged
    state.write_bytes(whole)
    assert package.solve_tsp(path, **options) == right
    old = whole.replace(b'"nicety_tsp":3', b'"nicety_tsp":2')
    state.write_bytes(old)
    with pytest.raises(package.InputError, match="another version of nicety"):
        package.solve_tsp(path, **options)


def test_a_full_disk_leaves_the_file_before(write: Callable[..., Path], tmp_path: Path) -> None:
    path, state = write(some(10)), tmp_path / "state.json"
    options: dict[str, Any] = {"climbers": 2, "job": 2, "resume": state}
    package.solve_tsp(path, restarts=2, **options)
    whole = state.read_bytes()
    (tmp_path / "state.json.new").symlink_to("/dev/full")
    with pytest.raises(package.InputError, match=r"state\.json: cannot write it \(No space left on device\)"):
        package.solve_tsp(path, restarts=4, **options)
    assert state.read_bytes() == whole
    assert not (tmp_path / "state.json.new").is_symlink()


def test_invalid_problems_are_refused(nicety: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "bad.tsp"
    for contents, text in [
        (
            problem(some(10)).replace("EUC_2D", "XRAY1"),
            "bad.tsp:4: EDGE_WEIGHT_TYPE XRAY1: write one of EUC_2D, EUC_3D, CEIL_2D, ATT, GEO, ",
        ),
        (problem(some(10)).replace("TYPE: TSP", "TYPE: HCP"), "bad.tsp:2: TYPE HCP: only symmetric problems, TYPE TSP"),
        (problem(some(4)), "bad.tsp:3: DIMENSION 4: the card's program takes 5 to 256 cities"),
        ("", "bad.tsp:1: the file ends without a NODE_COORD_SECTION"),
        (MATRIX.replace("7 900000\n7", "7 -1\n7"), "bad.tsp:7: distance -1: distances are 0 or more"),
        (MATRIX.replace("EOF", "FIXED_EDGES_SECTION"), "bad.tsp:11: FIXED_EDGES_SECTION: a climb does not keep fixed"),
    ]:
        path.write_text(contents)
        done = nicety("tsp", path)
        assert (done.status, done.stdout) == (2, "")
        assert text in done.stderr, done.stderr
    path.write_bytes(b"\xff\xfe")
    assert "this is not text" in nicety("tsp", path).stderr
    assert "cannot read it (No such file or directory)" in nicety("tsp", tmp_path / "none.tsp").stderr
