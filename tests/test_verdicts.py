"""Completed runs with a failure: never a success unless the user allowed it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nicety as package
from nicety._generated.reports import Failure
from nicety.program.failures import allowed

HEAD = "#include <nicety.h>\n#include <pingpong.h>\n"
ANSWERS = """
static int answer(const ptl_payload_t p, const pingpong_t *s) {
    return PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, s->peer, s->match_bits, p.offset, NULL, 0);
}
__handler int payload_handler(const ptl_payload_t p, void *state) {
    answer(p, state);
    END
}
"""
ENDS = {
    "trap": "*(volatile int *)0x40000000 = 1; return SUCCESS;",
    "fail": "return FAIL;",
    "refused": "PtlHandlerDMAToHostB(p.base, 0, 1 << 30, PTL_ME_HOST_MEM); return SUCCESS;",
}


def write(path: Path, end: str) -> Path:
    source = path / "mine.c"
    source.write_text(HEAD + ANSWERS.replace("END", end))
    return source


@pytest.mark.parametrize("kind", ENDS)
def test_a_latency_of_handlers_that_answer_and_fail_is_no_success(nicety: Callable, tmp_path: Path, kind: str) -> None:
    write(tmp_path, ENDS[kind])
    command = ["bench", "latency", "--nic", "spin-discrete", "--sizes", "8", "--handlers", "mine.c"]
    result = nicety(*command, "--json")
    assert result.status == 1
    report = result.json()
    (row,) = report["rows"]
    assert row["latency_ns"] > 0
    assert row["verified"] is False
    assert {failure["kind"] for failure in report["failures"]} == {kind}
    (failure, *_) = report["failures"]
    assert (failure["nic"], failure["point"]) == ("spin-discrete", "mode spin-stream, 8 B")
    assert "mine.c:" in failure["text"] or kind == "fail"
    assert failure["text"] in result.stderr
    assert f"allow_failures='{kind}'" in result.stderr
    asked = nicety(*command, "--json", "--allow-failures", kind)
    assert asked.status == 0, asked.stderr
    assert asked.json() == report
    others = ",".join(other for other in ENDS if other != kind)
    assert nicety(*command, "--allow-failures", others).status == 1


def test_bandwidth_too(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "sink.c").write_text(
        "#include <nicety.h>\n__handler int payload_handler(const ptl_payload_t p, void *state) { return FAIL; }"
    )
    command = ["bench", "message-rate", "--nic", "spin-discrete", "--sizes", "8", "--handlers", "sink.c"]
    result = nicety(*command, "--json")
    assert result.status == 1
    assert "returned FAIL" in str(result.json())


def test_an_error_is_a_document_too(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text(
        "#include <nicety.h>\n"
        "__handler int payload_handler(const ptl_payload_t p, void *state) { return *(int *)0x40000000; }"
    )
    result = nicety("bench", "handlers", "mine.c", "--nic", "spin-discrete", "--packet-sizes", "64", "--json")
    assert result.status == 1
    error = result.json()["error"]
    assert error["kind"] == "HandlerTrap"
    assert "mine.c:2" in error["text"]
    # Wrong input is no failure.
    assert nicety("bench", "handlers", "gone.c", "--nic", "spin-discrete", "--json").stdout == ""


def test_a_use_case_whose_handlers_are_refused_is_no_success(nicety: Callable, tmp_path: Path) -> None:
    library = Path(package.__file__).parent.parent.parent / "handlers" / "accumulate.c"
    wrong = "    PtlHandlerDMAToHostB(p.base, 1 << 30, 4, PTL_ME_HOST_MEM);\n"
    source = library.read_text().replace("    (void)state;\n", wrong)
    (tmp_path / "mine.c").write_text(source)
    command = ["bench", "accumulate", "--nic", "spin-discrete", "--sizes", "8", "--handlers", "mine.c"]
    result = nicety(*command, "--json")
    assert result.status == 1, result.stdout
    (failure,) = result.json()["error"]["failures"]
    assert failure["kind"] == "refused"
    assert failure["text"].startswith("PtlHandlerDMAToHostB refused: PTL_SEGV, mine.c:")
    asked = nicety(*command, "--json", "--allow-failures", "refused")
    assert asked.status == 0, asked.stderr
    assert [failure["text"] for failure in asked.json()["failures"]] == [failure["text"]]


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("kind", ENDS)
def test_a_run_in_which_a_handler_failed(tmp_path: Path, kind: str, shards: int) -> None:
    handlers = package.Handlers(write(tmp_path, ENDS[kind].replace("p.base", "p.base")))

    async def main(host: package.Host) -> int:
        if host.rank == 0:
            await host.barrier()
            await host.portals.put(host.portals.md_bind(host.alloc(8)), 8, to=1, pt=5, match_bits=1)
        else:
            host.portals.pt_alloc(pt=5)
            state = (7).to_bytes(8, "little") + bytes(56)
            attached = host.portals.attach(handlers, state=state)
            await host.portals.me_append(host.alloc(8), pt=5, match_bits=1, handlers=attached)
            await host.barrier()
        return host.rank

    with pytest.raises(package.HandlerFailure) as caught:
        package.Cluster(2, "spin-discrete", shards=shards).run(main)
    run = caught.value.run
    assert run is not None
    assert run.results == {0: 0, 1: 1}
    kinds = {failure.kind for failure in run.failures}
    assert kind in kinds
    assert all(isinstance(failure, Failure) and failure.rank == 1 for failure in run.failures)
    assert f"rank 1: {caught.value.failures[0]['text']}" in str(caught.value)
    asked = package.Cluster(2, "spin-discrete", shards=shards, allow_failures=sorted(kinds)).run(main)
    assert (asked.failures, asked.time_ps) == (run.failures, run.time_ps)


def test_a_file_says_what_it_means_to_fail(nicety: Callable, tmp_path: Path) -> None:
    (tmp_path / "fails.c").write_text(
        "#include <nicety.h>\n__handler int payload_handler(const ptl_payload_t p, void *state) { return FAIL; }"
    )
    text = """
import nicety

async def main(host):
    if host.rank == 0:
        await host.barrier()
        await host.portals.put(host.portals.md_bind(host.alloc(8)), 8, to=1, pt=5, match_bits=1)
    else:
        eq = host.portals.eq_alloc(8)
        host.portals.pt_alloc(pt=5, eq=eq)
        handlers = host.portals.attach(nicety.Handlers("fails.c"))
        await host.portals.me_append(host.alloc(8), pt=5, match_bits=1, handlers=handlers)
        await host.barrier()
        return {"fail": (await host.portals.eq_wait(eq)).fail}
"""
    (tmp_path / "mine.py").write_text(text)
    result = nicety("run", "mine.py", "--json")
    assert result.status == 1
    (failure,) = result.json()["failures"]
    assert failure == {
        "nic": "spin-discrete",
        "rank": 1,
        "kind": "fail",
        "text": "payload handler returned FAIL",
        "times": 1,
    }
    assert nicety("run", "mine.py", "--allow-failures", "fail").status == 0
    (tmp_path / "mine.py").write_text('allow_failures = "fail"\n' + text)
    assert nicety("run", "mine.py").status == 0
    (tmp_path / "mine.py").write_text('allow_failures = "trap"\n' + text)
    assert nicety("run", "mine.py").status == 1


@pytest.mark.parametrize("wrong", ["traps", ["fail", "no"], 7, [7]])
def test_invalid_allowances_are_refused(wrong: Any) -> None:
    with pytest.raises(package.InputError, match="allow"):
        allowed(wrong)
    with pytest.raises(package.InputError, match="allow"):
        package.Cluster(2, "spin-discrete", allow_failures=wrong)


CODES = {
    "return DROP;": ("dropped", "yes, drops 100.0%"),
    "return SUCCESS;": ("processed", "yes"),
    "return FAIL;": ("failed", "yes, fails 100.0%"),
}


@pytest.mark.parametrize("code", CODES)
def test_a_check_says_what_became_of_the_packets(nicety: Callable, tmp_path: Path, code: str) -> None:
    (tmp_path / "mine.c").write_text(
        "#include <nicety.h>\n__handler int payload_handler(const ptl_payload_t p, void *state) { " + code + " }"
    )
    command = ["bench", "handlers", "mine.c", "--nic", "spin-discrete", "--packet-sizes", "512"]
    fate, cell = CODES[code]
    result = nicety(*command, "--json")
    assert result.status == (1 if fate == "failed" else 0)
    (row,) = result.json()["rows"]
    expected = dict.fromkeys(("processed", "dropped", "proceeded", "failed"), 0)
    # After a failed packet, the rest of its message is dropped.
    assert row["packet_dispositions"] == {**expected, fate: row["packets"]}
    returned = row["handlers"][0]["returned"]
    assert list(returned) == [code.removeprefix("return ").removesuffix(";")]
    assert returned == dict.fromkeys(returned, row["handlers"][0]["runs"])
    line = next(line for line in nicety(*command).stdout.splitlines() if line.startswith("512"))
    assert line.endswith(f"  {cell}")


HEADERS = {"PROCEED": "proceeded", "DROP": "dropped", "PROCESS_DATA": "proceeded", "FAIL": "failed"}


@pytest.mark.parametrize("code", HEADERS)
def test_a_header_handler_decides_for_all_packets(tmp_path: Path, code: str) -> None:
    (tmp_path / "mine.c").write_text(
        "#include <nicety.h>\n__handler int header_handler(const ptl_header_t h, void *state) { return " + code + "; }"
    )
    report = package.check_line_rate(
        tmp_path / "mine.c", packet_sizes=[512], message_packets=16, messages=40, allow_failures="all"
    )
    (row,) = report["rows"]
    assert row["packet_dispositions"][HEADERS[code]] == row["packets"] == 640  # type: ignore[literal-required]
    assert bool(report["failures"]) == (code == "FAIL")


def test_some_of_each(tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text("""#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    const unsigned packet = p.offset / 512;
    if (packet % 4 == 1)
        return DROP;
    if (packet % 4 == 3)
        PtlHandlerPutFromDevice(p.base, 8, 0, PTL_NO_ACK_REQ, 0, 1, 0, NULL, 0);
    return SUCCESS;
}
""")
    (row,) = package.check_line_rate(tmp_path / "mine.c", packet_sizes=[512], message_packets=16)["rows"]
    packets = row["packets"]
    dispositions = row["packet_dispositions"]
    assert (dispositions["dropped"], dispositions["processed"]) == (packets // 4, packets * 3 // 4)
    assert row["sent_per_packet"] == pytest.approx(0.25, rel=0.01)
    assert row["handlers"][0]["returned"] == {"DROP": packets // 4, "SUCCESS": packets * 3 // 4}
