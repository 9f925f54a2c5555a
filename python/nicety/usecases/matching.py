"""Message matching: the search for a message's receive, and the transfer of a long message's bytes.

| mode | messages are matched, and the gets of long ones posted, by |
|---|---|
| `host` | the receiving host's CPU, while its program waits; it copies a short message to its buffer |
| `spin` | the card, and a header handler; the CPU may compute at the same time |

| arrival | |
|---|---|
| `expected` | the receive is posted before the message is sent |
| `unexpected` | the message, or its request, arrives before the receive is posted; the CPU then helps in both modes |

The time begins with the send, or with the post of the receive if that is later. It ends when the receiver knows that it
has every byte. The overlap is defined as in the OSU micro-benchmarks. Between posting its receive and waiting for it,
the receiver computes for as long as a transfer takes alone. The overlap is the share of the transfer's time that is not
added to the time of the computation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Unpack

from nicety.errors import InputError, RunError
from nicety.program.buffers import Buffer
from nicety.program.host import Host
from nicety.program.run import Run
from nicety.requests import MatchingOptions
from nicety.shared.options import arguments_of, asked
from nicety.shared.typed import checked
from nicety.usecases.case import LATENCY, Card, Figure, Outcome, Point, Trial, UseCase, require_equal
from nicety.usecases.messenger import ANY, EVENTS, CardMessenger, CpuMessenger, Messenger

ARRIVALS: Sequence[str] = arguments_of(MatchingOptions)["arrivals"].option.default
_LARGEST = 1 << 30
"""Maximum size of a message in bytes: handlers count bytes in 32 bits."""
_TAG = 5


class Matching(UseCase):
    """A message with a tag from one host to another host, for each size.

    Args:
        given: the arguments of `MatchingOptions`.

    Raises:
        InputError: a size or an arrival is invalid.
    """

    name: ClassVar[str] = "matching"
    title: ClassVar[str] = "Matching"
    meaning: ClassVar[str] = "from the later of send and receive until the receiver knows that it has every byte"
    modes: ClassVar[Sequence[str]] = ("host", "spin")
    axis: ClassVar[str] = "size_bytes"
    figure: ClassVar[Figure] = LATENCY
    sources: ClassVar[dict[str, str]] = {"spin": "matching.c"}

    @checked
    def __init__(self, **given: Unpack[MatchingOptions]) -> None:
        sizes, eager_bytes, arrivals, overlap = asked(MatchingOptions, given).values()
        for arrival in arrivals:
            if arrival not in ARRIVALS:
                raise InputError(f"--arrival: there is no arrival {arrival!r}; there are {' and '.join(ARRIVALS)}")
        if not 0 <= eager_bytes <= _LARGEST:
            raise InputError(f"--eager: messages of 0 to 1Gi bytes ({_LARGEST}) are sent at once, not {eager_bytes}")
        for size in sizes:
            if not 1 <= size <= _LARGEST:
                raise InputError(f"--sizes: a message has 1 to 1Gi bytes ({_LARGEST}), not {size}")
        self._overlap = overlap
        self._points = [
            {"arrival": arrival, "eager_bytes": eager_bytes, "size_bytes": size}
            for arrival in dict.fromkeys(arrivals)
            for size in sizes
        ]

    def points(self) -> Sequence[Point]:
        """The points: every arrival with every size."""
        return self._points

    def payload_bytes(self, point: Point) -> int:
        """Return the size of the message in bytes."""
        return int(point["size_bytes"])

    def needs(self, _card: Card, mode: str, point: Point) -> Mapping[str, int]:
        """Return a node's needs: a second event queue, and entries for early messages and for the receive or send."""
        size, eager = point["size_bytes"], point["eager_bytes"]
        both = mode == "spin" or size > eager
        return {
            "limits.portal_table": 2,
            "limits.event_queues": 2,
            "limits.event_queue_depth": EVENTS,
            "limits.match_entries": 2 if both else 1,
            # A counter for the receive, and one for a get that the CPU must post.
            "limits.counters": 2 if mode == "spin" and size > eager and point["arrival"] == "unexpected" else 1,
            "host.memory": size + min(size, eager),
        }

    def run(self, trial: Trial) -> Outcome:
        """Send random bytes and compare the received bytes. For the overlap, repeat it with concurrent computation."""
        run, time_ps = _transfer(trial, 0)
        if not self._overlap:
            return Outcome(run, time_ps)
        run, together_ps = _transfer(trial, time_ps)
        return Outcome(run, time_ps, {"overlap_ratio": overlap_ratio(time_ps, together_ps)})


class Overlap(Matching):
    """`Matching` with the overlap as its figure in tables and pictures."""

    meaning: ClassVar[str] = "share of the transfer that is hidden by computing at the receiver for as long"
    figure: ClassVar[Figure] = Figure("overlap_ratio", "Overlap")

    def notes(self, _card: Card, _modes: Sequence[str]) -> Sequence[str]:
        """Return a note if messages arrive completely before their receive, so that there is no overlap."""
        for point in self.points():
            if point["arrival"] == "unexpected" and point["size_bytes"] <= (eager := point["eager_bytes"]):
                return [
                    f"unexpected messages of up to {eager} bytes arrive before the receive: nothing is left to hide"
                ]
        return ()

    @checked
    def __init__(self, **given: Unpack[MatchingOptions]) -> None:
        given["overlap"] = True
        super().__init__(**given)


def overlap_ratio(alone_ps: int, together_ps: int) -> float:
    """Return the hidden share of a transfer. `together_ps` is its time with a computation of `alone_ps`."""
    return min(1.0, max(0.0, 1 - (together_ps - alone_ps) / alone_ps))


async def messenger(host: Host, trial: Trial, *, eager_bytes: int, unexpected_bytes: int) -> Messenger:
    """Make the messenger of the mode, and set it up."""
    made: Messenger
    room = {"eager_bytes": eager_bytes, "unexpected_bytes": unexpected_bytes}
    if trial.handlers is None:
        made = CpuMessenger(host, match_ns=trial.card.duration_ns("host.notice"), **room)
    else:
        made = CardMessenger(host, handlers=host.portals.attach(trial.handlers), **room)
    await made.set_up()
    return made


def _transfer(trial: Trial, compute_ps: int) -> tuple[Run, int]:
    """Send one message while the receiver computes for `compute_ps`. Return the run, and the measured time."""
    point = trial.point
    size, eager, expected = point["size_bytes"], point["eager_bytes"], point["arrival"] == "expected"
    content = trial.rng().integers(0, 256, size, "uint8")

    async def sender(host: Host) -> int:
        messages = await messenger(host, trial, eager_bytes=eager, unexpected_bytes=0)
        out = host.alloc(size)
        out.array[:] = content
        await host.barrier()
        begun = host.now_ps
        sending = await messages.send(out, to=1, tag=_TAG)
        if not expected:
            await host.barrier()
        await messages.sent(sending)
        return begun

    async def receiver(host: Host) -> tuple[Buffer, int, int]:
        messages = await messenger(host, trial, eager_bytes=eager, unexpected_bytes=min(size, eager))
        back = host.alloc(size)
        if expected:
            receive = await messages.receive(back, source=0, tag=_TAG)
            await host.barrier()
            begun = host.now_ps
        else:
            await host.barrier()
            await host.barrier()
            # A barrier may take less time than a message, so wait 10 us and a nanosecond per byte for its arrival.
            await host.compute(ns=10_000 + min(size, eager))
            begun = host.now_ps
            receive = await messages.receive(back, source=ANY, tag=ANY)
        await host.compute(ns=compute_ps / 1000)
        await messages.wait(receive)
        if (receive.source, receive.tag, receive.length_bytes) != (0, _TAG, size):
            raise RunError(
                f"the receive has a message of {receive.length_bytes} bytes from rank {receive.source} with tag "
                f"{receive.tag} instead of {size} bytes from rank 0 with tag {_TAG}"
            )
        return back, begun, host.now_ps

    run = trial.cluster(2).run({0: sender, 1: receiver})
    back, begun, ended = run.results[1]
    require_equal(back.array, content, "rank 1 received")
    return run, ended - (run.results[0] if expected else begun)
