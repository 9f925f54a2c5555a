"""Commands that cards refuse, and traps inside functions of nicety.h: the handler, the line, and the count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import nicety as package
from nicety._generated.reports import RefusedCommand

SWALLOW = """#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, 99, 1, 0, NULL, 0);
    PtlHandlerCTInc(1);
    return SUCCESS;
}
"""
PROGRAM = """
import nicety

async def main(host):
    if host.rank == 0:
        await host.barrier()
        md = host.portals.md_bind(host.alloc(3 * 4096))
        await host.portals.put(md, 3 * 4096, to=1, pt=5, match_bits=1)
    else:
        host.portals.pt_alloc(pt=5)
        handlers = host.portals.attach(nicety.Handlers("swallow.c"), state=bytes(64))
        await host.portals.me_append(host.alloc(3 * 4096), pt=5, match_bits=1, handlers=handlers)
        await host.barrier()
        WAIT
"""


@pytest.fixture
def swallow(tmp_path: Path) -> Path:
    path = tmp_path / "swallow.c"
    path.write_text(SWALLOW)
    return path


@pytest.mark.usefixtures("swallow")
def test_a_line_rate_check_tells_of_refusals(nicety: Callable, tmp_path: Path) -> None:
    command = ["bench", "handlers", "swallow.c", "--nic", "spin-discrete", "--packet-sizes", "1Ki,4Ki"]
    failed = nicety(*command, "--json")
    assert failed.status == 1
    command += ["--allow-failures", "refused"]
    rows = nicety(*command, "--json").json()["rows"]
    assert rows == failed.json()["rows"]
    for row in rows:
        # The check gives its entry a counter, so CTInc is valid.
        (put,) = row["refused_commands"]
        assert put == {
            "command": "PtlHandlerPutFromDevice",
            "code": "PTL_ARG_INVALID",
            "place": "swallow.c:3",
            "times": put["times"],
        }
        # The whole run, including the messages before and after the measured ones.
        assert put["times"] >= row["packets"]
        assert put["times"] % row["message_packets"] == 0
    result = nicety(*command, "--csv", "rows.csv")
    assert result.status == 0
    head, line, _ = (tmp_path / "rows.csv").read_text().splitlines()
    times = rows[0]["refused_commands"][0]["times"]
    assert (head.split(",")[-1], line.split(",")[-1]) == ("commands_refused", str(times))
    assert f"# 1024, 4096 B: {times} PtlHandlerPutFromDevice refused: PTL_ARG_INVALID, swallow.c:3\n" in result.stdout


def test_accesses_beyond_host_memory_are_refused(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "far.c").write_text(
        "#include <nicety.h>\n"
        "__handler int payload_handler(const ptl_payload_t p, void *state) {\n"
        "    PtlHandlerDMAToHostB(p.base, 0, 16, PTL_HANDLER_HOST_MEM);\n"
        "    return SUCCESS;\n"
        "}\n"
    )
    command = ["bench", "handlers", "far.c", "--nic", "spin-discrete", "--packet-sizes", "64", "--json"]
    (row,) = nicety(*command, "--handler-memory", "8").json()["rows"]
    (refused,) = row["refused_commands"]
    assert (refused["command"], refused["code"]) == ("PtlHandlerDMAToHostB", "PTL_SEGV")
    assert refused["place"] == "far.c:3"
    (row,) = nicety(*command, "--handler-memory", "16").json()["rows"]
    assert row["refused_commands"] == []


@pytest.mark.parametrize("shards", [1, 2])
def test_a_run_has_them_by_node(swallow: Path, shards: int) -> None:
    async def main(host: package.Host) -> None:
        scope: dict = {}
        text = PROGRAM.replace('"swallow.c"', repr(str(swallow))).replace("WAIT", "await host.compute(ns=1000)")
        exec(text, scope)
        await scope["main"](host)

    run = package.Cluster(2, "spin-discrete", shards=shards, allow_failures="refused").run(main)
    assert run.nodes[0].refused_commands == []
    assert run.nodes[1].refused_commands == [
        RefusedCommand("PtlHandlerPutFromDevice", "PTL_ARG_INVALID", "swallow.c:3", 3),
        RefusedCommand("PtlHandlerCTInc", "PTL_ARG_INVALID", "swallow.c:4", 3),
    ]
    assert {failure.kind for failure in run.nodes[1].failures} == {"refused"}
    assert "commands that cards refused" in run._repr_html_()


@pytest.mark.usefixtures("swallow")
def test_run_tells_of_refusals(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM.replace("WAIT", "await host.compute(ns=1000)"))
    result = nicety("run", "mine.py")
    assert result.status == 1
    assert "allow_failures='refused'" in result.stderr
    assert nicety("run", "mine.py", "--allow-failures", "refused").stdout == result.stdout
    assert result.stdout.splitlines()[-2:] == [
        "# spin-discrete, rank 1: 3 PtlHandlerPutFromDevice refused: PTL_ARG_INVALID, swallow.c:3",
        "# spin-discrete, rank 1: 3 PtlHandlerCTInc refused: PTL_ARG_INVALID, swallow.c:4",
    ]
    put, count = nicety("run", "mine.py", "--json").json()["refused_commands"]
    assert put == {
        "nic": "spin-discrete",
        "rank": 1,
        "command": "PtlHandlerPutFromDevice",
        "code": "PTL_ARG_INVALID",
        "place": "swallow.c:3",
        "times": 3,
    }
    assert count == {**put, "command": "PtlHandlerCTInc", "place": "swallow.c:4"}


@pytest.mark.usefixtures("swallow")
def test_a_deadlock_has_a_note(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM.replace("WAIT", "await host.recv(host.alloc(8))"))
    result = nicety("run", "mine.py")
    assert result.status == 1
    note = "  note: the card of rank 1 refused 3 PtlHandlerPutFromDevice: PTL_ARG_INVALID, swallow.c:3"
    assert note in result.stderr.splitlines()


def test_a_trap_in_a_function_of_the_card_names_its_caller(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "wrong.c").write_text(
        "#include <nicety.h>\n"
        "static inline __attribute__((always_inline)) void add(uint64_t *to) {\n"
        "    uint64_t before;\n"
        "    PtlHandlerFAdd(to, &before, 1);\n"
        "}\n"
        "__handler int payload_handler(const ptl_payload_t p, void *state) {\n"
        "    add((uint64_t *)state + 1);\n"
        "    return SUCCESS;\n"
        "}\n"
    )
    command = ["bench", "handlers", "wrong.c", "--nic", "spin-discrete", "--packet-sizes", "64", "--state-bytes", "8"]
    result = nicety(*command)
    assert result.status == 1
    assert "in PtlHandlerFAdd, called in add at wrong.c:4 (pc " in result.stderr
    assert "nicety_command" not in result.stderr
    # Many packets, one reason.
    assert result.stderr.count("payload handler stopped") == 1
    assert " times)" in result.stderr
