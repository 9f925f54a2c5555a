"""Host programs at the edges: invalid times, buffers and handlers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nicety
from nicety import Buffer, Cluster, Handlers, Host

HANDLER = "#include <nicety.h>\n__handler int answer(const ptl_payload_t p, void *state) { return SUCCESS; }\n"


def pair() -> Cluster:
    return Cluster(2, "spin-discrete")


def test_computing_takes_time_and_nothing_else_does() -> None:
    async def main(host: Host) -> list[int]:
        times = [host.now_ps]
        sum(range(100_000))
        times.append(host.now_ps)
        for ns in (100, 0.1, 0.0001, 0):
            await host.compute(ns=ns)
            times.append(host.now_ps)
        return times

    assert pair().run({0: main}).results[0] == [0, 0, 100_000, 100_100, 100_101, 100_101]


@pytest.mark.parametrize("ns", [-1, float("nan"), float("inf"), "soon"])
def test_times_that_cannot_be(ns: object) -> None:
    async def main(host: Host) -> None:
        await host.compute(ns=ns)

    with pytest.raises(nicety.InputError, match=f"compute\\(ns={ns}\\): a time is a number of nanoseconds"):
        pair().run({0: main})


def test_parts_and_views_of_buffers() -> None:
    async def main(host: Host) -> None:
        buffer = host.alloc(64)
        assert not buffer.array.any()
        buffer.view(np.uint32)[:] = 0x01020304
        assert buffer.array[0] == 4
        part = buffer[8:24]
        part.array[:] = 9
        assert buffer.array.tolist()[7:25] == [1, *[9] * 16, 4]
        assert part[4:8].array.tolist() == [9] * 4
        assert len(buffer[80:]) == len(host.alloc(0).array) == 0
        with pytest.raises(nicety.InputError, match="without a step"):
            buffer[::2]
        with pytest.raises(nicety.InputError, match=r"buffer\.array\[3\]"):
            buffer[3]
        with pytest.raises(nicety.InputError, match="64 bytes are no whole number"):
            buffer.view(np.dtype("S3"))

    pair().run({0: main})


def test_memory_of_another_host() -> None:
    buffers: dict[int, Buffer] = {}

    async def main(host: Host) -> None:
        buffers[host.rank] = host.alloc(8)
        await host.barrier()
        await host.send(buffers[1 - host.rank], to=1 - host.rank)

    with pytest.raises(nicety.InputError, match="is not memory of rank"):
        pair().run(main)


def test_handlers_that_do_not_compile(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "wrong.c"
    source.write_text("int payload_handler(void) { return undeclared; }\n")

    async def main(host: Host) -> None:
        host.portals.attach(Handlers(source))

    with pytest.raises(nicety.CompileError, match=r"wrong\.c: does not compile"):
        pair().run({0: main})
    assert "undeclared" in capfd.readouterr().err


def test_a_handler_that_is_not_there(tmp_path: Path) -> None:
    source = tmp_path / "handlers.c"
    source.write_text(HANDLER)

    async def main(host: Host) -> None:
        host.portals.attach(Handlers(source, payload="answer"))
        with pytest.raises(nicety.InputError, match="reply"):
            host.portals.attach(Handlers(source, payload="reply"))

    pair().run({0: main})
