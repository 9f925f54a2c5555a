"""Effects of the modes on hosts in all use cases: delays by background noise, and traffic of host memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nicety.bench.messages import run_benchmark
from nicety.show.columns import fixed
from nicety.studies.claims import Ours, Tried
from nicety.studies.spin.broadcast import reports as broadcast_reports
from nicety.studies.spin.pingpong import DISCRETE, LARGE, MODES, SMALL, latency_report, rows_of, sizes_of
from nicety.studies.spin.usecases import (
    PACKET,
    WITH_F,
    accumulate_reports,
    datatype_report,
    kv_reports,
    matching_report,
    row_of,
    storage_reports,
)
from nicety.studies.study import Measured, Options, Table
from nicety.studies.tried import HOST_MEMORY, tried
from nicety.usecases import Accumulate, Broadcast, Datatype, KeyValue, Matching, Storage, UseCase, run_usecase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NOISE = "20us,5us"
_OF_MODES = {
    "rdma": "CPU",
    "host": "CPU",
    "portals4": "Portals 4",
    "spin-store": "sPIN, store",
    "spin-stream": "sPIN",
    "spin": "sPIN",
}
_TREE, _WRITES = "broadcast of 8 B to 8; half are behind it", "storage, write of 4 KiB; a server"
_COLUMNS = ("CPU", "Portals 4", "sPIN")


@dataclass(frozen=True)
class _Delay:
    """The delay that noise causes, in nanoseconds."""

    mean: float
    worst: float


@dataclass(frozen=True)
class _Case:
    """A use case with noise on the host `rank`."""

    title: str
    case: UseCase
    rank: int
    iterations: int
    modes: Sequence[str] | None = None
    overrides: Sequence[str] = ()


def _cases() -> list[_Case]:
    return [
        _Case(
            _TREE,
            Broadcast(nodes=[8], sizes=[8]),
            4,
            300,
            ["rdma", "portals4", "spin-stream"],
        ),
        _Case("accumulate, 64 KiB; the receiver", Accumulate(sizes=[LARGE]), 1, 50, overrides=WITH_F),
        _Case("rendezvous, 64 KiB; the receiver", Matching(sizes=[LARGE], arrivals=["expected"]), 1, 200),
        _Case("datatype, 64 KiB in 256 B; the receiver", Datatype(size=LARGE, blocks=[256]), 1, 50),
        _Case(_WRITES, Storage(sizes=[PACKET], operations=["write"]), 1, 50),
        _Case("storage, read of 4 KiB; a server", Storage(sizes=[PACKET], operations=["read"]), 1, 50),
        _Case("key-value store, insert; the server", KeyValue(clients=[4], operations=["insert"], requests=16), 0, 20),
    ]


def _delays(case: _Case, options: Options) -> dict[str, _Delay]:
    """Measure the delay of a use case by noise on a host. The key is the column of the mode."""
    shared: dict[str, Any] = {
        "nics": [DISCRETE],
        "modes": case.modes,
        "overrides": case.overrides,
        "seed": options.seed,
    }
    quiet = run_usecase(case.case, **shared)
    count = case.iterations // 5 if options.quick else case.iterations
    noisy = run_usecase(case.case, noise=f"{_NOISE},rank={case.rank}", iterations=count, **shared)
    return {
        _OF_MODES[row["mode"]]: _Delay(row["latency_ns"] - without["latency_ns"], row["max_ns"] - without["latency_ns"])
        for row, without in zip(noisy["rows"], quiet["rows"], strict=True)
    }


def noise(options: Options) -> Measured:
    """Measure delays by random noise, 5 us every 20 us, on a host that answers, forwards or serves."""
    answers = run_benchmark(
        "latency",
        nics=[DISCRETE],
        modes=("rdma", "portals4", "spin-stream"),
        sizes=[SMALL],
        iterations=200 if options.quick else 2000,
        noise=f"{_NOISE},rank=1",
        seed=options.seed,
    )
    quiet = rows_of(latency_report(options))
    pong, share = {}, {}
    for row in answers["rows"]:
        without = quiet[DISCRETE, row["mode"], SMALL]["latency_ns"]
        pong[_OF_MODES[row["mode"]]] = _Delay(row["latency_ns"] - without, row["max_ns"] - without)
        share[_OF_MODES[row["mode"]]] = 100 * (row["latency_ns"] / without - 1)
    delays = {"ping-pong of 8 B; the responder": pong, **{case.title: _delays(case, options) for case in _cases()}}

    worst = {column: delay.worst for column, delay in pong.items()}

    def figure() -> Figure:
        from nicety.show.bars import bars_figure

        return bars_figure(
            [title.replace("; ", ";\n") for title in delays],
            {
                column: [found[column].mean if column in found else None for found in delays.values()]
                for column in _COLUMNS
            },
            title="Noise of 5 µs every 20 µs on one host, spin-discrete",
            value="Mean delay (ns)",
        )

    return Measured(
        {
            "noise": Ours(
                worst["CPU"] > 0 and worst["Portals 4"] == worst["sPIN"] == 0,
                ", ".join(
                    f"{column} {fixed(share[column], 1)} % on average, {fixed(worst[column], 0)} ns at worst"
                    for column in _COLUMNS
                ),
                "only RDMA's reply waits for a program of the host with the noise",
            ),
        },
        tables=[_noise_table(delays)],
        figures={"noise": ("Delays by noise on one host", figure)},
        data={"noise": answers},
    )


def _noise_table(delays: Mapping[str, Mapping[str, _Delay]]) -> Table:
    def cells(delay: _Delay | None) -> list[str]:
        return ["-", "-"] if delay is None else [fixed(delay.mean, 0), fixed(delay.worst, 0)]

    return Table(
        section="Noise",
        title="Delay by noise of 5 us every 20 us on one host, discrete (ns)",
        rows=[
            ["Operation; the host", *(f"{column}, {what}" for column in _COLUMNS for what in ("mean", "worst"))],
            *(
                [title, *(cell for column in _COLUMNS for cell in cells(found.get(column)))]
                for title, found in delays.items()
            ),
        ],
        note="A host with a program that waits for the last byte notices it late in every mode; its work for "
        "others, and on the data, moves to the card",
    )


def host_memory(options: Options) -> Measured:
    """Measure memory traffic: of the host that answers a ping, and of all hosts in use cases."""
    report = latency_report(options)
    rows = rows_of(report)

    def pong(mode: str, size: int) -> float:
        """Return the bytes that the answering host's memory reads and writes per byte of a message."""
        row = rows[DISCRETE, mode, size]
        (memory,) = [each for each in row["host_memory"] if each["node"] == 1]
        return (memory["read_bytes"] + memory["written_bytes"]) / row["iterations"] / size

    sizes = sizes_of(options)
    saves = all(pong("spin-stream", size) < pong("rdma", size) for size in sizes)
    moved = {
        "ping-pong of 64 KiB, responder": {_OF_MODES[mode]: pong(mode, LARGE) for mode in MODES},
        **_moved(options),
    }
    less = {title: found["sPIN"] / found["CPU"] for title, found in moved.items()}
    columns = list(dict.fromkeys(_OF_MODES.values()))

    def pong_figure() -> Figure:
        from nicety.show.curves import figure_of
        from nicety.show.lines import Curve

        curves = [
            Curve(mode, {size: pong(mode, size) for size in sizes}, colour=number, style=number)
            for number, mode in enumerate(MODES)
        ]
        return figure_of(
            curves, title="A pong's way through host memory", x="Message size (B)", y="Bytes read and written, a byte"
        )

    def figure() -> Figure:
        from nicety.show.bars import bars_figure

        return bars_figure(
            list(moved),
            {column: [found.get(column) for found in moved.values()] for column in columns},
            title="Host memory traffic of use cases, all hosts, spin-discrete",
            value="Bytes read and written, a byte of payload",
        )

    saved = ", ".join(
        f"{title.partition(',')[0].partition(' of ')[0]} {fixed(100 * (1 - share), 0)} %"
        for title, share in less.items()
    )
    return Measured(
        {
            "memory": Ours(
                saves and all(share < 1 for share in less.values()),
                f"less by: {saved}",
                "a rendezvous and a read take the same bytes from memory to memory in every mode",
                _rendezvous(),
            ),
        },
        tables=[
            Table(
                section="Host memory",
                title="Read from and written to host memory, bytes a byte of payload, discrete",
                rows=[
                    ["Operation", *columns],
                    *(
                        [title, *(fixed(found[column], 2) if column in found else "-" for column in columns)]
                        for title, found in moved.items()
                    ),
                ],
                note="A CPU's work is counted in the lines that its cache fetches and writes back; the sender's reads "
                "are in every mode",
            )
        ],
        figures={
            "host-memory-pong": ("Traffic of a pong in the responder's memory", pong_figure),
            "host-memory": ("Traffic of use cases in the memories of all hosts", figure),
        },
    )


def _rendezvous() -> tuple[Tried, ...]:
    """Measure memory traffic of a message, matched by host and by card, as rendezvous and as eager message."""
    command = f"nicety bench matching --nic {DISCRETE} --sizes 64Ki --arrival expected"
    return tuple(
        tried(f"{command}{eager} --mode {mode}", HOST_MEMORY, 1 / LARGE, "B a byte")
        for eager in ("", " --eager 64Ki")
        for mode in ("host", "spin")
    )


def _moved(options: Options) -> dict[str, dict[str, float]]:
    """Return the traffic of all hosts' memories per byte of payload, by use case and mode."""
    tree = broadcast_reports(options)[LARGE]
    nodes = max(row["nodes"] for row in tree["rows"])
    accumulated, datatype, matching = (
        accumulate_reports(options)["4 HPUs with F"],
        datatype_report(options),
        matching_report(options),
    )
    storage, store = storage_reports(options)["4 HPUs"], kv_reports(options)["4 HPUs"]
    clients = max(row["clients"] for row in store["rows"])
    inserts = clients * row_of(store)["requests"]
    exchanged = inserts * (row_of(store)["key_bytes"] + row_of(store)["value_bytes"])
    found: dict[str, dict[str, float]] = {}

    def add(title: str, report: Any, payload: int, **wanted: Any) -> None:
        for row in report["rows"]:
            if row["nic"] == DISCRETE and all(row[name] == value for name, value in wanted.items()):
                traffic = row["host_memory_read_bytes"] + row["host_memory_written_bytes"]
                found.setdefault(title, {})[_OF_MODES[row["mode"]]] = traffic / payload

    add(f"broadcast of 64 KiB, {nodes} processes", tree, LARGE * (nodes - 1), nodes=nodes)
    add("accumulate, 64 KiB", accumulated, LARGE, size_bytes=LARGE)
    add("eager message of 4 KiB", matching, PACKET, size_bytes=PACKET)
    add("rendezvous, 64 KiB", matching, LARGE, size_bytes=LARGE)
    add("datatype, blocks of 256 B", datatype, datatype["rows"][0]["size_bytes"], block_bytes=256)
    requests = storage["rows"][0]["requests"]
    add("storage, writes of 4 KiB", storage, requests * PACKET, operation="write", size_bytes=PACKET)
    add("storage, reads of 4 KiB", storage, requests * PACKET, operation="read", size_bytes=PACKET)
    add(f"key-value store, {clients} clients", store, exchanged, clients=clients)
    return found
