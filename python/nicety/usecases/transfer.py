"""One message from rank 0 to rank 1, which processes it. Several use cases share this part."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from nicety.program.buffers import Buffer
from nicety.program.host import Host
from nicety.usecases.case import Outcome, Trial

if TYPE_CHECKING:
    import numpy.typing as npt

_PT = 1


async def arrival(host: Host, into: Buffer, handlers: int | None = None) -> None:
    """Append a match entry, enter a barrier with the sender, and wait for the message and its handlers."""
    portals = host.portals
    arrived = portals.ct_alloc()
    options = ["op_put", "use_once", "event_comm_disable", "event_link_disable", "event_ct_comm"]
    await portals.me_append(into, pt=portals.pt_alloc(pt=_PT), options=options, ct=arrived, handlers=handlers)
    await host.barrier()
    await portals.ct_wait(arrived, 1)


def transfer(
    trial: Trial, content: npt.NDArray[Any], receiver: Callable[[Host], Awaitable[Buffer]]
) -> tuple[Outcome, Buffer]:
    """Run the transfer. Return the time from the sender's post until `receiver` has returned, and its buffer."""

    async def sender(host: Host) -> int:
        portals = host.portals
        out = host.alloc(content.nbytes)
        out.view(content.dtype)[:] = content
        md = portals.md_bind(out, options=["event_send_disable"])
        portals.pt_alloc(pt=_PT)
        await host.barrier()
        begun = host.now_ps
        await portals.put(md, len(out), to=1, pt=_PT)
        return begun

    async def receives(host: Host) -> tuple[Buffer, int]:
        left = await receiver(host)
        return left, host.now_ps

    run = trial.cluster(2).run({0: sender, 1: receives})
    left, ended = run.results[1]
    return Outcome(run, ended - run.results[0]), left
