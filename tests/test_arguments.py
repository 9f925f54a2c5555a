"""Arguments of Python functions: one or several, dicts of changes, and the errors for anything else."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import operator
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nicety as package
from conftest import Result
from nicety.apps.salesman import climb_lengths
from nicety.build.compiler import library_source
from nicety.program.script import run_program
from nicety.shared import checks as _checks
from nicety.shared import typed as _typed
from nicety.usecases import Accumulate, Broadcast, Datatype, KeyValue, Matching, Overlap, Storage, run_usecase
from nicety.usecases.report import figure_tables, percentile_tables


def test_one_is_as_good_as_several() -> None:
    several = package.run_benchmark("latency", nics=["spin-discrete"], modes=["rdma"], sizes=[8], iterations=2)
    one = package.run_benchmark("latency", nics="spin-discrete", modes="rdma", sizes=8, iterations=2)
    assert one == several
    assert (
        package.run_benchmark("latency", nics="spin-discrete", modes="rdma", sizes=np.array([8]), iterations=2) == one
    )
    assert Broadcast(nodes=4, sizes=8).points() == Broadcast(nodes=[4], sizes=[8]).points()
    assert Matching(sizes=8, arrivals="expected").points() == Matching(sizes=[8], arrivals=["expected"]).points()
    assert KeyValue(clients=1, operations="insert").points() == KeyValue(clients=[1], operations=["insert"]).points()
    assert run_usecase(Accumulate(sizes=8), nics="spin-discrete", modes="rdma")["rows"][0]["nic"] == "spin-discrete"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: package.run_benchmark("latency", nics="spin-discrete", sizes=["8"]),
            "a size is a whole number .* not '8'",
        ),  # type: ignore[list-item]
        (lambda: package.run_benchmark("latency", nics=7, sizes=8), "a card is a text such as 'spin-discrete', not 7"),  # type: ignore[arg-type]
        (lambda: Broadcast(nodes="4", sizes=8), "a number of nodes is a whole number .* not '4'"),  # type: ignore[arg-type]
        (lambda: Datatype(size=64.0, blocks=8), "size is a whole number, not 64.0"),  # type: ignore[arg-type]
        (
            lambda: Datatype(size=64, blocks=8, layout="vector,list"),
            "one of vector and list at a time, not 'vector,list'",
        ),
        (lambda: Storage(sizes=8, servers="4"), "servers is a whole number"),  # type: ignore[arg-type]
        (lambda: KeyValue(clients=1, buckets=1.5), "buckets is a whole number"),  # type: ignore[arg-type]
        (lambda: Matching(sizes=8, eager_bytes="8Ki"), "eager_bytes is a whole number"),  # type: ignore[arg-type]
    ],
)
def test_anything_else_is_the_users_mistake(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(package.InputError, match=text):
        call()


def test_changes_to_a_card() -> None:
    assert _checks.changes({"transport.reliable": True, "hpu.cores": 8}) == ["transport.reliable=true", "hpu.cores=8"]
    assert _checks.changes("hpu.cores=8") == ["hpu.cores=8"]
    with pytest.raises(package.InputError, match="a change to the card is a text"):
        _checks.changes([8])  # type: ignore[list-item]
    package.Cluster(2, "spin-discrete", set={"transport.reliable": True})
    changed = [
        package.run_benchmark("latency", nics="spin-discrete", modes="rdma", sizes=8, overrides=overrides)
        for overrides in ({"bus.latency": "300 ns"}, ["bus.latency=300 ns"])
    ]
    assert changed[0] == changed[1]


def host_says(program: Callable[[package.Host], Any]) -> str:
    with pytest.raises(package.InputError) as raised:
        package.Cluster(2, "spin-discrete").run(program)
    return str(raised.value)


def test_a_program_that_is_not_async_is_told_so() -> None:
    def main(host: package.Host) -> None:
        host.alloc(8)

    text = "the program of rank 0 is no async function; write: async def main(host):"
    assert host_says(main) == text  # type: ignore[arg-type]


def test_portals_calls_say_what_to_write() -> None:
    async def ack(host: package.Host) -> None:
        md = host.portals.md_bind(host.alloc(8), options="PTL_MD_EVENT_SEND_DISABLE")
        await host.portals.put(md, 8, to=1, pt=1, ack="full")  # type: ignore[arg-type]

    async def entry(host: package.Host) -> None:
        host.portals.pt_alloc(pt=0)

    async def source(host: package.Host) -> None:
        await host.recv(host.alloc(8), source="any")  # type: ignore[arg-type]

    assert host_says(ack) == "'full' is no acknowledgement; there are no_ack, ack, ct_ack, oc_ack, True and False"
    assert "entry 0 belongs to send and recv" in host_says(entry)
    assert host_says(source).endswith("not 'any'; leave it out for any")


def test_a_run_without_messages_says_that_there_is_nothing_to_draw() -> None:
    async def main(host: package.Host) -> None:
        await host.compute(ns=1)

    run = package.Cluster(2, "spin-discrete").run(main)
    assert repr(run).startswith("<Run of 2 nodes, 1.000 ns: ")
    with pytest.raises(package.InputError, match="no completed message"):
        run.plot()


def test_a_program_may_return_a_tuple(nicety: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("async def main(host):\n    return host.rank, 7\n")
    done = nicety("run", "p.py")
    assert done.status == 0, done.stderr
    assert [line.split()[:4] for line in done.stdout.splitlines()[3:]] == [
        ["#", "nic", "rank", "result_0"],
        ["spin-discrete", "0", "0", "7"],
        ["spin-discrete", "1", "1", "7"],
    ]


def test_the_faults_file_is_named(nicety: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("async def main(host):\n    return 7\n")
    (tmp_path / "f.toml").write_text("seed = 7\nloss = 1e-3\n")
    done = nicety("run", "p.py", "--faults", "f.toml")
    assert ", faults f.toml\n" in done.stdout, done.stderr


def test_the_command_line_names_cards_and_tells_what_commands_do(nicety: Callable[..., Result]) -> None:
    done = nicety("bench", "latency")
    assert done.status == 2
    assert ", spin-discrete, spin-integrated, xeon-oplin." in " ".join(done.stderr.split())
    for command in ([], ["bench"]):
        done = nicety(*command, "-h")
        assert done.status == 0
        assert "..." not in done.stdout.partition("Commands:")[2]


def test_memory_tables_that_are_alike_are_one() -> None:
    cards = ["spin-discrete", "spin-integrated"]
    case = KeyValue(clients=1, requests=2, operations=["insert", "lookup"])
    report = run_usecase(case, nics=cards, modes="host", iterations=2)
    titles = [title for title, _ in figure_tables(report)]
    # A separate line per operation: lookups follow inserts, and are in the same run.
    assert titles[4:] == [
        f"spin-discrete and spin-integrated, operation {operation}, requests 2, key 16, value 64, buckets 8: "
        "read from and written to host memory in the whole run, all nodes (B)"
        for operation in ("insert", "lookup")
    ]
    title, (head, row) = percentile_tables(report)[0]
    assert title.endswith("mode host: mean time of a request in each iteration, and p99 of the requests (ns)")
    assert head[-1] == "request p99"
    assert float(row[-1]) == pytest.approx(report["rows"][0]["operation_p99_ns"])


def test_tables_that_are_not_all_alike_keep_their_own() -> None:
    report = run_usecase(Accumulate(sizes=[8, 4096]), nics=["spin-discrete", "spin-integrated"], modes="rdma")
    report["rows"][-1]["host_memory_read_bytes"] += 1
    assert [title.partition(":")[0] for title, _ in figure_tables(report)[2:]] == ["spin-discrete", "spin-integrated"]


def test_no_overlap_has_a_reason() -> None:
    notes: list[str] = []
    run_usecase(Overlap(sizes=[8, 65536]), nics="spin-discrete", modes="spin", note=notes.append)
    assert notes == ["unexpected messages of up to 8192 bytes arrive before the receive: nothing is left to hide"]


JUNK = [None, 7, -1, 1.5, float("nan"), "x", "\0", b"x", [], {}, ["x"], [7], [None], True, object(), 10**30, {"x": 1}]
"""Wrong arguments; some functions accept some of them."""


def functions(tmp_path: Path) -> list[tuple[Callable[..., Any], dict[str, Any]]]:
    """Public functions, with arguments that are refused last, so that nothing runs."""
    handlers = tmp_path / "handlers.c"
    handlers.write_text("#include <nicety.h>\n")
    changed = {"overrides": "no.key=1"}
    nothing = tmp_path / "nothing"
    return [
        (package.run_benchmark, {"benchmark": "latency", "nics": "spin-discrete", "sizes": 8, **changed}),
        (package.bench_channels, {"benchmark": "channel-latency", "sizes": 8, **changed}),
        (package.bench_registration, {"sizes": 8, **changed}),
        (package.bench_fairness, {"processes": 2, **changed}),
        (package.bench_grid, {"benchmark": "halo", "nics": "spin-discrete", "sizes": 8, **changed}),
        (
            package.bench_torus,
            {"nics": "spin-discrete", "topology": "torus:2", "duration": "1us", "load": "0.5", **changed},
        ),
        (package.bench_stream, {"nics": "niagara2-niu", **changed}),
        (package.bench_request_response, {"nics": "niagara2-niu", "connections": 1, **changed}),
        (package.bench_pcie, {"nics": "nfp-6000", "sizes": 8, **changed}),
        (package.bench_pcsa, {**changed}),
        (package.check_line_rate, {"handlers": handlers, **changed}),
        (package.count_sources, {"capture": nothing}),
        (package.solve_tsp, {"file": nothing}),
        (climb_lengths, {"file": nothing, "restarts": 1}),
        (package.compile_handlers, {"sources": [nothing]}),
        (library_source, {"name": "nothing.c"}),
        (run_program, {"path": nothing, **changed}),
        (run_usecase, {"case": Accumulate(sizes=8), "nics": "spin-discrete", **changed}),
        (package.reproduce, {"name": "nothing"}),
        (Accumulate, {"sizes": 0}),
        (Broadcast, {"nodes": 0, "sizes": 8}),
        (Datatype, {"size": 0, "blocks": 8}),
        (KeyValue, {"clients": 0}),
        (Matching, {"sizes": 0}),
        (Overlap, {"sizes": 0}),
        (Storage, {"sizes": 0}),
        (package.Cluster, {"nodes": 2, "nic": "nothing"}),
        (package.Handlers, {"sources": "handlers.c"}),
        (package.Processes, {"sources": "processes.c"}),
    ]


def test_wrong_types_are_the_users_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any value for any argument of a public function: a clear error, and no other exception."""
    monkeypatch.chdir(tmp_path)
    seen, wrong = 0, []
    for function, usual in functions(tmp_path):
        parameters = inspect.signature(function).parameters
        assert set(usual) <= set(parameters)
        for name in parameters:
            for junk in JUNK:
                given = f"{function.__name__}({name}={junk!r})"
                try:
                    function(**{**usual, name: junk})
                except package.InputError:
                    pass
                except Exception as error:
                    wrong.append(f"{given}: {type(error).__name__}: {error}")
                seen += 1
    assert wrong == []
    assert seen > 1500


def test_checked_arguments_can_be_read() -> None:
    """A type that only type checkers import would fail the first call."""
    found = 0
    for module in pkgutil.walk_packages(package.__path__, "nicety."):
        if module.name.endswith("__main__"):
            continue
        for each in vars(importlib.import_module(module.name)).values():
            for function in (each, *vars(each).values()) if isinstance(each, type) else (each,):
                checked = inspect.isfunction(function) and getattr(function, "__wrapped__", None)
                if checked and function.__code__.co_filename == _typed.__file__:
                    _typed._wanted(checked)
                    found += 1
    assert found > 20


def test_a_wrong_type_names_function_argument_and_what_it_is() -> None:
    for call, text in [
        (
            lambda: package.check_line_rate("a.c", user_header="02"),  # type: ignore[arg-type]
            "check_line_rate: user_header is bytes, not '02'; write bytes.fromhex('02')",
        ),
        (
            lambda: package.compile_handlers("a.c"),
            "compile_handlers: sources is several, each a path or a text, not 'a.c'",
        ),
        (lambda: Storage(sizes=8, servers=1.5), "Storage: servers is a whole number, not 1.5"),  # type: ignore[arg-type]
        (
            lambda: package.run_benchmark("latency", nics="qnix", sizes=8, progress=7),  # type: ignore[arg-type]
            "run_benchmark: progress is a function or None, not 7",
        ),
        (
            lambda: package.run_benchmark("speed", nics="qnix", sizes=8),  # type: ignore[arg-type]
            "run_benchmark: benchmark is 'latency' or 'bandwidth' or 'message-rate', not 'speed'",
        ),
        (lambda: package.reproduce("spin", quick="no"), "reproduce: quick is True or False, not 'no'"),  # type: ignore[arg-type]
        (lambda: package.Handlers("a.c", payload=7), "payload is a text such as 'my_payload_handler', not 7"),  # type: ignore[arg-type]
    ]:
        with pytest.raises(package.InputError) as raised:
            call()
        assert str(raised.value) == text


CALLS = {
    "alloc", "barrier", "compute", "copy", "gather", "post_recv", "recv", "send",
    "portals.application", "portals.attach", "portals.ct_alloc", "portals.ct_get", "portals.ct_inc", "portals.ct_wait",
    "portals.eq_alloc", "portals.eq_get", "portals.eq_poll", "portals.eq_wait", "portals.get", "portals.hpu_alloc",
    "portals.md_bind", "portals.me_append", "portals.me_search", "portals.pt_alloc", "portals.put", "portals.swap",
    "portals.triggered_put",
}  # fmt: skip
OF_OTHER_CARDS = {"nfp-4000": {"channels.open", "channels.start"}, "qnix": {"vni.process"}}


@pytest.mark.parametrize(("nic", "calls"), [("spin-discrete", CALLS), *OF_OTHER_CARDS.items()])
def test_wrong_types_of_a_hosts_calls_are_the_users_mistake(nic: str, calls: set[str]) -> None:
    """The same for host programs' calls."""
    seen: list[str] = []

    async def main(host: package.Host) -> None:
        buffer = host.alloc(64)
        usual = {
            "buffer": buffer, "source": buffer, "to": 1, "length_bytes": 8, "depth": 4, "name": "a", "weight": 1,
            "pt": 1, "md": 0, "get_md": 0, "ct": 0, "eq": 0, "threshold": 1, "handlers": package.Handlers("gone.c"),
        }  # fmt: skip
        for call in sorted(calls):
            method = operator.attrgetter(call)(host)
            parameters = inspect.signature(method).parameters
            for name, parameter in parameters.items():
                if parameter.kind is parameter.VAR_POSITIONAL:
                    continue
                needed = [each for each in parameters.values() if each.default is each.empty]
                given = {each.name: usual.get(each.name, 1) for each in needed if each.kind is not each.VAR_POSITIONAL}
                for junk in JUNK:
                    try:
                        method(**{**given, name: junk})
                    except package.Error:
                        continue
                    except Exception as error:
                        seen.append(f"{call}({name}={junk!r}): {type(error).__name__}: {error}")
                    if junk is None and "triggered" in call and name in {"ct", "threshold"}:
                        seen.append(f"{call}({name}=None) has been posted without a trigger")

    with contextlib.suppress(package.Error):
        package.Cluster(2, nic).run({0: main})
    assert seen == []


def test_sizes_are_the_commands_if_left_out(nicety: Callable[..., Result]) -> None:
    quick: dict[str, Any] = {"nics": "spin-discrete", "modes": "rdma", "iterations": 1, "window": 1}
    line = ["--nic", "spin-discrete", "--mode", "rdma", "--iterations", "1", "--window", "1", "--json"]
    assert package.run_benchmark("message-rate", **quick) == nicety("bench", "message-rate", *line).json()
    sizes = [row["size_bytes"] for row in package.run_benchmark("message-rate", **quick, sizes=None)["rows"]]
    assert sizes == [8 << power for power in range(10)]
    rows = package.bench_registration()["rows"]
    assert (rows[0]["size_bytes"], rows[-1]["size_bytes"]) == (64, 2 << 20)
