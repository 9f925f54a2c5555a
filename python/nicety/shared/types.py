"""Requests and reports of benchmarks and applications: plain dicts, as in JSON.

Made of the types in Rust by `crates/bench/tests/python_types.rs`, and not to be changed by hand.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, Required, TypedDict

from nicety.shared.checks import U32, Expressions, Faults, Names, Numbers, Overrides, Place
from nicety.shared.options import Option, shared


@shared
class NetworkOptions(TypedDict, total=False):
    """The network of a run, and what is random in it.

    Attributes:
        faults: Faults of the network: a TOML file, or a line such as
            loss=1e-3,corrupt=1e-4,duplicate=1e-3,reorder=1e-3:5us,burst=4,seed=7,fail=hosts.1@2ms.
        flow_control: What keeps the buffers of switches from overflowing: `credits`; `none`: switches drop packets; or
            `pfc`: they pause who sends. Behind that as in none,buffer=1Mi,per=shared,alpha=1/2 or
            pfc,buffer=256Ki,xoff=128Ki,xon=120Ki,headroom=40Ki,quanta=65535. Default: credits.
        noise: Background noise on the hosts' CPUs, as in 1ms,25us; add ,fixed for a fixed period, and ,rank=N for one
            host; or a file with a trace of it.
        seed: Of every random stream: the same seed gives the same report to the last byte.
        topology: How hosts are joined: `pair`; `star`: hosts around a switch; `fat-tree:PORTS`, as in fat-tree:36, or
            `fat-tree:PORTS:LEVELS:ROUTING`; `torus:XxYxZ`, as in torus:4x4x4; or `ring:SWITCHES`. Default: what so many
            hosts need.
    """

    faults: Annotated[Faults | None, Option(metavar="FILE.toml|LINE")]
    flow_control: Annotated[str | None, Option(metavar="credits|none|pfc[,KEY=VALUE]")]
    noise: Annotated[str | None, Option(metavar="PERIOD,DURATION")]
    seed: Annotated[int | None, Option(default=1)]
    topology: Annotated[str | None, Option(metavar="NAME")]


Addressing = Literal["virtual", "physical"]
"""The addresses that puts name."""


class Burst(TypedDict):
    """A run in which the first packets come at once.

    Attributes:
        packets: Packets offered.
        at_once: The first of them, which come as fast as the wire brings them.
        later_fraction: How fast the later half of all comes through, over the traffic's rate: 1 as soon as one behind
            the burst leaves when it is due. Where packets are lost, the part of those behind the burst that is not.
            None where the run was stopped.
        stopped: Why the run was stopped, if it was.
    """

    packets: int
    at_once: int
    later_fraction: float | None
    stopped: str | None


class CardManifest(TypedDict):
    """The identification of a card in a report's manifest.

    Attributes:
        title: The card's title.
        spec_hash: Hash over all resolved values.
    """

    title: str
    spec_hash: str


class CardPart(TypedDict):
    """A part of a card at the line rate.

    Attributes:
        part: `handler processors`, `matching unit`, `link`, `bus to card`, `bus to host`, `send engine`, `packet
            writer`, `cluster DMA`, `packet sender`, `packets in flight` (the places of packets in clusters), `packet
            slots`, `lock`, `contended word` (one that handlers try to change until nobody was faster), `memory bank`,
            `cache misses` (the part of the processors' time that they wait for lines), `message contexts` (those of
            messages that handlers have not done with), `host` or `packet buffer`.
        name: Which one, where there are several: the word of a lock with the line that acquires it, a memory's bank,
            the level behind the caches, a cluster, the key of the spec that says how many places there are, or a CPU of
            the host.
        load: Its load: the part of its capacity that packets at the line rate need.
        headroom: The capacity that is left, as a part of it; below 0, that is missing.
        sustains: The rate that the part sustains, over the line rate; none if packets do not need it.
    """

    part: str
    name: str | None
    load: float
    headroom: float
    sustains: float | None


ChannelBenchmark = Literal["channel-latency", "channel-bandwidth"]
"""A benchmark of channels."""


class ChannelManifest(TypedDict):
    """The inputs that reproduce a report.

    Attributes:
        specs: The cards, by name.
        overrides: `--set` overrides, as given.
        noise: Background noise on the host's CPUs, as given.
        compiler: The programs that ran on cards, by card and mode; the caller, which compiled them, fills this in.
    """

    specs: dict[str, CardManifest]
    overrides: list[str]
    noise: str | None
    compiler: NotRequired[dict[str, ProgramManifest]]


class ChannelRow(TypedDict):
    """One measurement: a card, a mode, a direction and a message size.

    Which of the figures it has depends on the benchmark.

    Attributes:
        nic: The card.
        mode: The kind of messages: `direct` or `indirect`.
        direction: The direction: `host-to-card` or `card-to-host`.
        size_bytes: Message size in bytes; for the bandwidth of direct messages, the size of what is sent in parts of 56
            bytes, of which each process sends at most 500, as all of them are alike.
        memory: The memory of the card that they are moved to or from: `ctm` if indirect ones of a latency fit it,
            `emem` otherwise.
        verified: Whether every byte was checked at the receiving end, and was right.
        bandwidth_bytes_per_s: Throughput of all processes together, the mean over the runs.
        iterations: Messages measured individually.
        latency_ns: Latency of a message, from the call to its return with the acknowledgement of the other end: the
            mean.
        max_ns: The maximum.
        message_bytes: Bytes of each message.
        messages: Messages of all processes in a run.
        min_ns: The minimum.
        p50_ns: The median.
        p999_ns: The 99.9th percentile.
        p99_ns: The 99th percentile.
        payload_bytes: Bytes of all of them, which were moved.
        processes: Processes that move the payload together, each with a thread of the host.
        runs: Runs, which differ in the begin times of threads, and in noise.
        stages: The stages of the latency, which add up to it.
        stddev_bytes_per_s: Its standard deviation over the runs.
    """

    nic: str
    mode: str
    direction: str
    size_bytes: int
    memory: str
    verified: bool
    bandwidth_bytes_per_s: NotRequired[float]
    iterations: NotRequired[int]
    latency_ns: NotRequired[float]
    max_ns: NotRequired[float]
    message_bytes: NotRequired[int]
    messages: NotRequired[int]
    min_ns: NotRequired[float]
    p50_ns: NotRequired[float]
    p999_ns: NotRequired[float]
    p99_ns: NotRequired[float]
    payload_bytes: NotRequired[int]
    processes: NotRequired[int]
    runs: NotRequired[int]
    stages: NotRequired[list[Stage]]
    stddev_bytes_per_s: NotRequired[float]


class ContextRow(TypedDict):
    """A number of contexts on a card.

    Attributes:
        nic: The card.
        contexts: Contexts that count.
        updates: Updates that they make in all, on one microengine.
        cycles_total: Cycles from the start of the first context, while the others wait for it, to the end of the last.
        cycles_computing: Of these: a context computed.
        cycles_asleep: Of these: every context with work was asleep.
        cycles_switching: Of these: the microengine switched to another context.
        context_cycles_asleep: Cycles that contexts waited for memories, all contexts together.
        context_cycles_ready: Cycles that contexts were ready while another one had the microengine, all contexts
            together.
        time_ns: `cycles_total` as time.
        updates_per_s: Updates a second of the whole card, of two references each, with as many contexts on every
            microengine, in steady state.
        updates_per_s_settled: The same if the bits are set already, so that an update makes one reference.
        line_rate_packets_per_s: 64-byte packets a second that `updates_per_s` sustains, with one update each.
        line_rate_bits_per_s: The Ethernet that carries them, with 84 bytes for each.
    """

    nic: str
    contexts: int
    updates: int
    cycles_total: int
    cycles_computing: int
    cycles_asleep: int
    cycles_switching: int
    context_cycles_asleep: int
    context_cycles_ready: int
    time_ns: float
    updates_per_s: float
    updates_per_s_settled: float
    line_rate_packets_per_s: float
    line_rate_bits_per_s: float


class CpuFigures(TypedDict):
    """The climbs' time on this machine's CPUs.

    Unlike all else, it is measured, and differs from run to run.

    Attributes:
        processor: The processor's name, where the system gives it.
        threads: Threads that climbed.
        wall_time_s: Seconds that it took.
        climbs_per_s: Climbs a second.
        length: The shortest tour's length: that of the card.
    """

    processor: str | None
    threads: int
    wall_time_s: float
    climbs_per_s: float
    length: int


class Crossover(TypedDict):
    """The crossover of a card: where translating begins to pay.

    Attributes:
        nic: The card.
        crossover_bytes: The smallest size, between the smallest and largest measured one, from which on translating
            takes no longer than copying; none if copying is faster up to the end.
    """

    nic: str
    crossover_bytes: int | None


class Damage(TypedDict):
    """Where the capture is damaged.

    Attributes:
        packet: The packet, the first one being 1.
        byte: The byte of the file.
        text: The damage.
    """

    packet: int
    byte: int
    text: str


class DataCache(TypedDict):
    """The data caches before a level of memory, over the whole run.

    Accesses are hits, misses or passed.

    Attributes:
        level: The level behind them, as the card's spec names it.
        accesses: Accesses for a packet.
        hits: Loads and stores for a packet that found their lines.
        misses: Those that did not.
        passed: Atomic operations for a packet, which go past the caches.
        miss_rate: Misses over loads and stores; none without any.
        written_back: Lines for a packet that were written to memory, since they made room or an atomic operation came.
        handed_over: Lines for a packet that another cache had changed, and handed over.
        invalidated: Accesses for a packet for which other caches gave their lines up.
        waited_cycles: Cycles for a packet that loads and stores took longer than hits.
        load: The part of the time of all processors that this is at line rate.
        lines: The source lines that waited most; the first few.
        stale_accesses: Accesses of the whole run to words that another cache had changed, where nothing keeps caches
            coherent: handlers have seen the newest bytes all the same, and would not on the card.
        stale_lines: The source lines with the most of them; the first few.
    """

    level: str
    accesses: float
    hits: float
    misses: float
    passed: float
    miss_rate: float | None
    written_back: float
    handed_over: float
    invalidated: float
    waited_cycles: float
    load: float
    lines: list[WaitingLine]
    stale_accesses: int
    stale_lines: list[StaleLine]


Distances = Literal["root", "table"]
"""How a climber computes distances."""


class ExchangeRow(TypedDict):
    """A card and a number of connections.

    Attributes:
        nic: The card.
        connections: Connections, each with a client.
        size_bytes: Bytes of a request.
        reply_bytes: Bytes of a reply.
        think_ns: What a client waits between a reply and its next request.
        requests: Requests whose reply came in the measured time.
        requests_per_s: The same a second.
        latency_ns: From a client's call that sends a request until it has its reply, the mean; likewise the following.
        min_ns: The shortest.
        p50_ns: The median.
        p99_ns: The 99th percentile, by nearest rank.
        p999_ns: The 99.9th percentile.
        max_ns: The longest.
        late_requests: Requests without a reply at the end of the measured time; they are in none of these figures.
        cpu_ns_per_request: CPU time of the server a request.
        cpus: CPUs of the server's operating system.
        cpu_utilisation: The share of the time of all its CPUs in which they worked.
        cpu_ns_per_packet: CPU time a packet.
        instructions_per_packet: Instructions a packet.
        first_misses_per_packet: Loads a packet that missed a core's first-level cache.
        second_misses_per_packet: Of these, loads that missed the shared cache, too.
        breakdown: The CPU time a packet, by function group.
        context_switches_per_packet: Context switches a packet.
        cross_calls_per_packet: Calls from one CPU to another a packet.
        interrupts_per_packet: Interrupts a packet.
        interrupt_ns: CPU time of a receive channel's interrupt handler before it takes frames: entered, and registers
            read.
        retransmissions: Segments that rank 0 and its peer sent again.
        dropped: Frames that rank 0's card, kernel threads and protocols dropped.
        packets: The packets: frames that rank 0's card received, or sent where it transmits.
        verified: Whether every byte that came was checked, and was right.
        late_max_ns: The longest that the reply to one of them took.
        ports: The ports of the network over the whole run, if it has a flow control without credits.
    """

    nic: str
    connections: int
    size_bytes: int
    reply_bytes: int
    think_ns: float
    requests: int
    requests_per_s: float
    latency_ns: float
    min_ns: float
    p50_ns: float
    p99_ns: float
    p999_ns: float
    max_ns: float
    late_requests: int
    cpu_ns_per_request: float
    cpus: int
    cpu_utilisation: float
    cpu_ns_per_packet: float
    instructions_per_packet: float
    first_misses_per_packet: float
    second_misses_per_packet: float
    breakdown: list[GroupUsage]
    context_switches_per_packet: float
    cross_calls_per_packet: float
    interrupts_per_packet: float
    interrupt_ns: float
    retransmissions: int
    dropped: int
    packets: int
    verified: bool
    late_max_ns: NotRequired[float]
    ports: NotRequired[list[NetworkPortReport]]


class FailedPoint(TypedDict):
    """A point of a benchmark whose run failed, so that it has no row.

    Attributes:
        point: The card and the point.
        kind: The exception that Python has for the error, such as `RunError` or `Deadlock`; `KeyboardInterrupt`, the
            benchmark was interrupted there.
        text: The error.
    """

    point: str
    kind: str
    text: str


class FairnessRow(TypedDict):
    """A number of processes that send at once, each to a process of its own on the other host.

    Attributes:
        nic: The card.
        processes: Processes that send, and as many that receive.
        size_bytes: Bytes of a message.
        messages: Messages of each process.
        bandwidth_bytes_per_s: Payload bytes a second of all together, until the last process has received its last
            message.
        process_mean_bytes_per_s: Throughput of a process until it has received its last message, the mean over them.
        process_min_bytes_per_s: The minimum.
        process_max_bytes_per_s: The maximum.
        jain_index: Jain's index of the throughputs: 1 if all are equal, 1/n if one of n gets everything.
        verified: Whether every byte was checked at the receiving end, and was right.
    """

    nic: str
    processes: int
    size_bytes: int
    messages: int
    bandwidth_bytes_per_s: float
    process_mean_bytes_per_s: float
    process_min_bytes_per_s: float
    process_max_bytes_per_s: float
    jain_index: float
    verified: bool


class Flow(TypedDict):
    """One direction of a pattern that has several.

    Attributes:
        source: The rank that sends.
        target: The rank that receives.
        bandwidth_bytes_per_s: Payload bytes a second.
        latency_ns: Half a round trip, the mean over the iterations.
        max_ns: The longest iteration.
        messages_per_s: Messages a second.
        min_ns: The shortest iteration.
    """

    source: int
    target: int
    bandwidth_bytes_per_s: NotRequired[float]
    latency_ns: NotRequired[float]
    max_ns: NotRequired[float]
    messages_per_s: NotRequired[float]
    min_ns: NotRequired[float]


class GpuFigures(TypedDict):
    """The climbs' time on a graphics processor, by its own clock: without compiling, and without moving data.

    Attributes:
        processor: The device's name.
        device_time_s: Seconds that it took.
        climbs_per_s: Climbs a second.
        length: The shortest tour's length: that of the card.
    """

    processor: str
    device_time_s: float
    climbs_per_s: float
    length: int


GridBenchmark = Literal["halo", "allreduce"]
"""The benchmark's name."""


class GridManifest(TypedDict):
    """The inputs that reproduce a report of a benchmark on a grid.

    Attributes:
        specs: The cards, by name.
        overrides: `--set` overrides, as given.
        grid: The grid of ranks, as in 4x4x2.
        topology: The topology.
        noise: Background noise on the hosts' CPUs, as given.
        faults: The faults of the network, as given, if there are any.
        flow_control: The flow control of the network, as given, if it was.
    """

    specs: dict[str, CardManifest]
    overrides: list[str]
    grid: str
    topology: str
    noise: str | None
    faults: NotRequired[str]
    flow_control: NotRequired[str]


class GridRow(TypedDict):
    """A card and a size: of a face in a halo exchange, of the vector in an all-reduce.

    Attributes:
        nic: The card.
        nodes: Number of hosts.
        size_bytes: Bytes of a face, or of the vector.
        iterations: Iterations measured.
        time_ns: Duration of an iteration, the mean: of a halo exchange over iterations and ranks, which follow each
            other without a barrier; of an all-reduce over iterations, each from a barrier to the end on the last rank.
        min_ns: The shortest iteration.
        p50_ns: The median.
        p99_ns: The 99th percentile, by nearest rank.
        max_ns: The longest iteration.
        sent_bytes: Payload bytes that a node sends in an iteration: the node that sends most.
        sent_bytes_per_s: The same a second.
        hops_mean: Links that a packet crosses, the mean over all packets: one to a switch is one, and a torus has none
            between a host and its router.
        verified: Whether every value was compared with what it has to be, and was right.
        algorithm_bytes_per_s: Of an all-reduce: bytes of the vector over the time, the algorithm bandwidth.
        faces: Of a halo exchange: faces of a rank, each with a neighbour.
        lower_bound_ns: Of an all-reduce: the time in which a node's link moves 2 (n - 1) / n of the vector's bytes,
            which every algorithm has to send from each of n nodes.
        ports: The ports of the network over the whole run, if it has a flow control without credits.
    """

    nic: str
    nodes: int
    size_bytes: int
    iterations: int
    time_ns: float
    min_ns: float
    p50_ns: float
    p99_ns: float
    max_ns: float
    sent_bytes: int
    sent_bytes_per_s: float
    hops_mean: float
    verified: bool
    algorithm_bytes_per_s: NotRequired[float]
    faces: NotRequired[int]
    lower_bound_ns: NotRequired[float]
    ports: NotRequired[list[NetworkPortReport]]


class GroupUsage(TypedDict):
    """What a function group has used.

    Attributes:
        group: Its name.
        ns_per_packet: CPU time a packet.
        instructions_per_packet: Instructions a packet.
        first_misses_per_packet: Loads a packet that missed a core's first-level cache.
        second_misses_per_packet: Of these, loads that missed the shared cache, too.
    """

    group: str
    ns_per_packet: float
    instructions_per_packet: float
    first_misses_per_packet: float
    second_misses_per_packet: float


class Growth(TypedDict):
    """Handler processor time that grew while the run went on.

    Attributes:
        first_ns: Time of a packet in the first quarter of the packets.
        last_ns: The same in the last quarter; or, where it has jumped behind that began, in the last packets.
        mean_ns: The same over all of them.
    """

    first_ns: float
    last_ns: float
    mean_ns: float


class HandlerFigures(TypedDict):
    """Statistics of the runs of one handler.

    Attributes:
        handler: `header`, `payload` or `completion`.
        runs: Number of runs.
        cycles_mean: Cycles on its processor, including start, end and waits.
        cycles_p99: The 99th percentile, by nearest rank.
        cycles_max: The maximum.
        instructions_mean: Instructions.
        instructions_p99: The 99th percentile.
        instructions_max: The maximum.
        time_ns_mean: Time on its processor.
        time_ns_p99: The 99th percentile.
        queued_ns_mean: Wait for a processor when ready.
        returned: Number of runs by return code.
    """

    handler: str
    runs: int
    cycles_mean: float
    cycles_p99: int
    cycles_max: int
    instructions_mean: float
    instructions_p99: int
    instructions_max: int
    time_ns_mean: float
    time_ns_p99: float
    queued_ns_mean: float
    returned: dict[str, int]


class HandlerLines(TypedDict):
    """Lines that handlers printed in a benchmark, over all runs and cards.

    Attributes:
        shown: Lines that the cards showed, at most 1000 a run and card.
        left_out: The others.
    """

    shown: int
    left_out: int


class HandlerMemory(TypedDict):
    """The memory of handlers, over the whole run.

    Attributes:
        ideal: Pieces of memory in no level, in which no access waits for another.
        ideal_cycles: The section of the card's spec with the cycles of an access to them: `hpu.cycles`, or
            `hpu.overlap` where instructions overlap.
        uncontended: Levels that processors share and in which no access waits for another, as the card's spec says.
        accesses: Accesses of handlers for a packet: loads, stores, atomic operations and commands.
        shared_accesses: Of these, accesses to levels in which processors wait for one another.
        levels: Levels in which they do.
        caches: Levels behind data caches.
        code_lines_filled: Lines for a packet that instruction caches were filled with.
        fetch_wait_cycles: Cycles for a packet that handlers waited for their code.
    """

    ideal: list[str]
    ideal_cycles: str
    uncontended: list[str]
    accesses: float
    shared_accesses: float
    levels: list[MemoryLevel]
    caches: list[DataCache]
    code_lines_filled: float
    fetch_wait_cycles: float


class HostMemory(TypedDict):
    """Bytes that a node's card read from its host's memory, and wrote to it.

    Attributes:
        node: The rank.
        read_bytes: Bytes read.
        written_bytes: Bytes written.
    """

    node: int
    read_bytes: int
    written_bytes: int


class LineRateRow(TypedDict):
    """One measurement: a card and a packet size.

    Attributes:
        nic: The card.
        packet_bytes: Payload of a packet.
        message_packets: Packets of a message.
        messages: Messages measured.
        packets: Packets measured; of traffic, those handled.
        cycles_mean: Cycles of a payload handler: the mean; none if the program has no payload handler or it never ran.
        cycles_p99: The 99th percentile.
        instructions_mean: Instructions of a payload handler: the mean.
        instructions_p99: The 99th percentile.
        packet_fates: The fates of the packets.
        sent_per_packet: Packets that the card sent per packet received, over the whole run.
        handlers: Each handler that ran.
        handler_ns: Handler processor time per packet: its payload handler, and its share of header and completion
            handlers, including waits for transfers and commands. Of traffic, per packet offered.
        growth: How that has grown while the run went on, if it has, as where tables fill up: then loads of processors
            are those of the last quarter of the packets.
        handler_budget_ns: Its budget: the time between two packets, times the processors.
        hpus_needed: Handler processors that are busy at line rate; none if no number suffices, because another resource
            is overloaded.
        hpus: Handler processors that the card has.
        sustains_line_rate: Whether the card sustains the line rate for ever, as far as it is modelled.
        verdict: `yes`; `barely` where it does, with a part loaded to 90 % or more; `no`; or `not judged` where it would
            be one of the first two, and handlers share words in memory whose contention is not modelled on this card
            (`unmodelled`).
        limiting_part: The part of the card that limits: what `limited_by` has, or else what limits in the last run that
            was `tried`, or the part with the highest load.
        capacity_fraction: The rate that the card sustains, over the line rate: above 1 it could do more. It is found by
            the runs that were `tried`, between `sustained_fraction` and `not_sustained_fraction`; where the load of a
            part gives the same within a hundredth, it is that.
        tried: Runs with the same traffic at other rates, in their order: the search for the rate that the card
            sustains. None where a burst stops handlers, and where the card's own wire limits at the line rate.
        sustained_fraction: The highest rate of these runs that the card sustained, over the line rate; 1 where no
            higher one did, and it keeps up. None without a search, and where it sustained none.
        not_sustained_fraction: The lowest rate above that it did not sustain; none where it sustained all that was
            looked for.
        burst: A run at the traffic's rate that a burst comes before, where handlers wait for locks, words or lines, or
            where a run that was tried was stopped.
        parts: The parts of the card with their headroom at the line rate, the most loaded first. The packet buffer is
            among them where no other part is overloaded, and no handler yields its processor.
        limited_by: The bottleneck, if the card cannot keep up: `handler processors`, `matching unit`, `link`, `bus to
            card`, `bus to host`, `send engine`, `packet writer`, `cluster DMA`, `packet sender`, `packets in flight`,
            `packet slots`, `lock` (a word that one handler at a time holds), `contended word` (one that handlers try to
            change until nobody was faster), `memory bank`, `host` (the part of it that takes frames), or `cache misses`
            where handler processors would keep up without their waits for lines. If none is overloaded, `packet buffer`
            where the sender waits for credits, `message contexts` where messages have all of them (`hpu.contexts`), or
            `waiting` where handlers wait for one another.
        reachable_fraction: The fraction of line rate that any number of handler processors would reach: the limit of
            the other resources.
        packet_interval_ns: The time between packets at line rate.
        packet_wire_bytes: Bytes of a packet on the link, including its header.
        line_rate_packets_per_s: Packets a second at line rate.
        packets_per_s: Packets a second that were processed. Where packets were lost, the others in the time of all.
        line_rate_fraction: The same over the line rate.
        bandwidth_bytes_per_s: Their payload.
        buffer_packets_used: The most packets in the packet buffer at once.
        buffer_packets: Its capacity in packets.
        loads: The load of each resource at line rate.
        locks: Words of memory that handlers have waited for, by their loads; the first few.
        retries: The word that is no lock and to which handlers came back most often, if they came back to any.
        memory: The memory of handlers: what of it is shared, and who waits there.
        unmodelled: Words that handlers share in memory whose contention is not modelled.
        refused_commands: Commands of handlers that the card refused, in the whole run: messages before and after those
            measured are in it.
        sensitivity: The assumed values of the card's spec to which the verdict is most sensitive, if it was asked for.
        traffic: The traffic, and what became of it, if packets are not the wire's: then all figures are over the whole
            run, the line rate is that of the traffic, and sizes are means.
    """

    nic: str
    packet_bytes: int
    message_packets: int
    messages: int
    packets: int
    cycles_mean: float | None
    cycles_p99: int | None
    instructions_mean: float | None
    instructions_p99: int | None
    packet_fates: PacketFates
    sent_per_packet: float
    handlers: list[HandlerFigures]
    handler_ns: float
    growth: Growth | None
    handler_budget_ns: float
    hpus_needed: int | None
    hpus: int
    sustains_line_rate: bool
    verdict: Literal["yes", "barely", "not judged", "no"]
    limiting_part: str
    capacity_fraction: float
    tried: list[TriedRate]
    sustained_fraction: float | None
    not_sustained_fraction: float | None
    burst: Burst | None
    parts: list[CardPart]
    limited_by: str | None
    reachable_fraction: float
    packet_interval_ns: float
    packet_wire_bytes: int
    line_rate_packets_per_s: float
    packets_per_s: float
    line_rate_fraction: float
    bandwidth_bytes_per_s: float
    buffer_packets_used: int
    buffer_packets: int
    loads: Loads
    locks: list[Lock]
    retries: Retries | None
    memory: HandlerMemory
    unmodelled: Unmodelled | None
    refused_commands: list[RefusedCommand]
    sensitivity: NotRequired[Sensitivity]
    traffic: NotRequired[TrafficFigures]


class Loads(TypedDict):
    """The load of each resource at line rate: above 1 it cannot keep up.

    Over the whole run.

    Attributes:
        hpus: The handler processors, over the messages measured.
        matching: The matching unit.
        link: The card's own link, with the packets that handlers send.
        bus_to_card: The host bus, towards the card.
        bus_to_host: The host bus, towards host memory.
        lock: The word of memory that handlers hold longest one at a time, a lock, with its hand-over from one to the
            next.
        contended_word: The word that handlers load and change if nobody was faster, and to which they came back most
            often: from the load to the change, and to the next load.
        memory_bank: The busiest bank of a level of memory that processors share; 0 where the card has no such level.
        send_engine: The send engine of a card of Portals messages: it begins a message a gap behind the one before, or
            when that has left.
        packet_writer: On a card with clusters of handler processors, the writer of its packet buffer, which takes a
            beat a cycle.
        cluster_dma: The busiest DMA engine of a cluster, with packets and with what handlers have copied.
        packet_sender: The sender of handlers' packets there.
        command_engine: Where handlers are written for PsPIN, the command engine with the most occupied places
            (`hpu.commands.engine_commands`).
        memory_channel: The busiest channel between these engines and the card's memories (`hpu.interconnect`).
        packets_in_flight: The places that packets have in clusters, from when they are assigned to one until their
            handlers and the commands of these have ended (`hpu.packets.in_flight`), without their waits for the copy
            and for a processor.
        packet_slots: The slots of packets, likewise: of the packet buffer or of the clusters' memories, whichever has
            fewer to spare.
        host: The part of the host that has most to do with the frames that come to it, such as the CPU of a receive
            channel's interrupts; none on cards whose host takes no packets.
    """

    hpus: float
    matching: float
    link: float
    bus_to_card: float
    bus_to_host: float
    lock: float
    contended_word: float
    memory_bank: float
    send_engine: float | None
    packet_writer: float | None
    cluster_dma: float | None
    packet_sender: float | None
    command_engine: float | None
    memory_channel: float | None
    packets_in_flight: float | None
    packet_slots: float | None
    host: float | None


class Lock(TypedDict):
    """A word of memory that handlers hold one at a time, over the whole run.

    It is a lock if they wait for it; else it may be one.

    Attributes:
        word: The word, such as `byte 8 of the state`.
        taken_at: The source line that acquires it.
        given_back_at: The source line that releases it, if it is another one.
        waited_at: The source line that waits for it, or would.
        waits: Number of waits. With none it is no part with a load: handlers did not meet, or have another use for it.
        held_ns: Time that a packet holds it.
        handed_over_ns: Time per packet that it is free while a handler waits.
        load: Its load at line rate, held or handed over.
        most_packets_per_s: The most packets a second with any number of handler processors, since two cannot hold it,
            if it is handed over at once.
    """

    word: str
    taken_at: str
    given_back_at: str | None
    waited_at: str
    waits: int
    held_ns: float
    handed_over_ns: float
    load: float
    most_packets_per_s: float


class Manifest(TypedDict):
    """The inputs that reproduce a report.

    Attributes:
        specs: The cards, by name.
        overrides: `--set` overrides, as given.
        compiler: The programs that ran on cards, by card and mode; the caller, which compiled them, fills this in.
    """

    specs: dict[str, CardManifest]
    overrides: list[str]
    compiler: NotRequired[dict[str, ProgramManifest]]


Memory = Literal["host", "gpu"]
"""The memory at one end of a message."""


class MemoryLevel(TypedDict):
    """A level of memory in which processors wait for one another, over the whole run.

    Attributes:
        level: The level, as the card's spec names it.
        accesses: Accesses for a packet, wherever their bytes lie.
        waited_cycles: Cycles for a packet that they waited for banks, beside the latency.
        busiest: The bank that was busy longest, or the level's unit for atomic operations.
        busiest_accesses: Its accesses for a packet, lines of code among them.
        busiest_waited_cycles: Cycles for a packet that processors waited for it.
        load: Its load at line rate.
        most_packets_per_s: The most packets a second with any number of handler processors, by the time for which a
            packet occupies it.
        lines: The source lines that waited most for the level; the first few.
    """

    level: str
    accesses: float
    waited_cycles: float
    busiest: str
    busiest_accesses: float
    busiest_waited_cycles: float
    load: float
    most_packets_per_s: float
    lines: list[WaitingLine]


MessagesBenchmark = Literal["latency", "bandwidth", "message-rate"]
"""A benchmark."""


class MessagesManifest(TypedDict):
    """The inputs that reproduce a report of a benchmark between hosts.

    Attributes:
        specs: The cards, by name.
        overrides: `--set` overrides, as given; the peer's card has none.
        pattern: The pattern of sources and targets.
        topology: The topology.
        noise: Background noise on the hosts' CPUs, as given.
        compiler: The programs that ran on cards, by card and mode; the caller, which compiled them, fills this in.
        faults: The faults of the network, as given, if there are any.
        flow_control: The flow control of the network, as given, if it was.
        peer: The card of every host but rank 0, if it is another one.
        puts: The options of mode put, if it was measured.
    """

    specs: dict[str, CardManifest]
    overrides: list[str]
    pattern: str
    topology: str
    noise: str | None
    compiler: NotRequired[dict[str, ProgramManifest]]
    faults: NotRequired[str]
    flow_control: NotRequired[str]
    peer: NotRequired[PeerManifest]
    puts: NotRequired[Puts]


class MovedValue(TypedDict):
    """A check with one value moved.

    Attributes:
        value: The value set.
        verdict: The verdict with it.
        limiting_part: The part that limits then.
        capacity_fraction: The rate that the card sustains over the line rate.
        capacity_packets_per_s: The same in packets a second: the line rate may have moved.
    """

    value: str
    verdict: Literal["yes", "barely", "not judged", "no"]
    limiting_part: str
    capacity_fraction: float
    capacity_packets_per_s: float


class NetworkPortReport(TypedDict):
    """The use of a port of a host or switch, in a network without credits.

    Attributes:
        at: The host or switch, such as `hosts.1` or `switch.0`.
        port: The number of the port there.
        peer: The host or switch at the far end of its link.
        dropped_packets: Packets that were dropped at this port.
        dropped_bytes: Their bytes on the wire.
        reason: Why packets are dropped here, if any are: `queue full`, those for this port; `no headroom`, those that
            came by it though its sender was paused; `packet buffer full`, by a card.
        peak_bytes: Most bytes at once in the queue before the port; with pauses, of what came by it.
        pauses_sent: Pause frames sent by this port, those among them that end a pause.
        pauses_received: Pause frames that came.
        paused_ps: How long the port was not allowed to send, in picoseconds.
    """

    at: str
    port: int
    peer: str
    dropped_packets: int
    dropped_bytes: int
    reason: str
    peak_bytes: int
    pauses_sent: int
    pauses_received: int
    paused_ps: int


Notification = Literal["poll", "interrupt"]
"""How programs learn of events."""


class PacketFates(TypedDict):
    """The fates of the packets measured, each of which has one.

    Attributes:
        processed: Their payload handler returned `SUCCESS`.
        dropped: A payload handler dropped them, or a header handler their message.
        proceeded: They went on to host memory: a header handler returned `PROCEED`, or there is no payload handler.
        failed: Their handler failed, or an earlier one of their message.
    """

    processed: int
    dropped: int
    proceeded: int
    failed: int


class PeerManifest(TypedDict):
    """The card of the hosts that the measured card communicates with.

    Attributes:
        nic: Its name.
        title: The card's title.
        spec_hash: Hash over all resolved values.
    """

    nic: str
    title: str
    spec_hash: str


class PointFailure(TypedDict):
    """A failure on a card while a point was measured.

    Attributes:
        nic: The card.
        point: The point, such as mode and size.
        rank: The rank of its card.
        kind: `trap`, a handler or process was stopped; `fail`, it returned a failure or an invalid return code;
            `budget`, a budget of its application was used up; `refused`, the card refused a command; `lost`, packets
            that it sent were lost or damaged on the way, and nothing sends them again.
        text: Description, and place in the source.
        times: Number of times.
    """

    nic: str
    point: str
    rank: int
    kind: str
    text: str
    times: int


class PortFigures(TypedDict):
    """Traffic of one port among several, and what became of it.

    Attributes:
        port: Its number.
        traffic: The expression.
        offered: Packets offered to the wire, until the traffic of a port had ended.
        offered_bytes: Their payload: bytes of frames.
        offered_ns: How long they take at their rate, until the next one would be due.
        handled: Packets that the card took in: all but those dropped by overload.
        handled_bytes: Their payload.
        passed: Of these, packets that no handler dropped: processed, or on their way to host memory.
        dropped_by_handler: Packets that handlers dropped.
        failed: Packets on which a handler failed.
        dropped_by_overload: Packets that found the packet buffer full, and were dropped.
        dropped_at_host: Frames that handlers passed on to the host, and that found no buffer there.
        dropped_at_link: Frames that handlers sent, and that found no room before this port, whichever they came by.
        latency_ns_mean: The latency through the card: the mean.
        latency_ns_p50: The median.
        latency_ns_p99: The 99th percentile.
        latency_ns_p999: The 99.9th percentile.
        latency_ns_max: The maximum, exactly.
    """

    port: int
    traffic: str
    offered: int
    offered_bytes: int
    offered_ns: float
    handled: int
    handled_bytes: int
    passed: int
    dropped_by_handler: int
    failed: int
    dropped_by_overload: int
    dropped_at_host: int
    dropped_at_link: int
    latency_ns_mean: float
    latency_ns_p50: float
    latency_ns_p99: float
    latency_ns_p999: float
    latency_ns_max: float


class ProgramManifest(TypedDict):
    """A compiled program in a report's manifest: its one source, or all of them.

    Attributes:
        version: The compiler's name and version.
        flags: Its flags.
        sha256: Its SHA-256.
        source: The source file.
        sources: The source files, if the user names them.
    """

    version: str
    flags: list[str]
    sha256: NotRequired[str]
    source: NotRequired[str]
    sources: NotRequired[list[SourceManifest]]


class Puts(TypedDict):
    """The options of puts, as used.

    Attributes:
        loopback: Whether they are within one host, through its card.
        source: The memory that messages come from.
        sink: The memory that messages go to.
        addressing: The addresses that they name.
        flush_receive: Whether the receiver's card drops what comes.
        notify: How programs learn of events; None if the card's spec decides.
        pong_size_bytes: Bytes of the reply of a ping-pong.
    """

    loopback: bool
    source: Memory
    sink: Memory
    addressing: Addressing
    flush_receive: bool
    notify: Notification | None
    pong_size_bytes: int


class RefusedCommand(TypedDict):
    """A command that a card has refused at one place of a handler, which went on with the command's result.

    Attributes:
        command: The function of nicety.h, for example `PtlHandlerPutFromDevice`.
        code: Its return code: `PTL_ARG_INVALID`, `PTL_SEGV` or `PTL_NO_SPACE`.
        place: The line that calls it, for example `ping.c:42`; the function or the pc if the program has no line
            tables. A card tells 64 places apart; the rest is counted by command and code, as `elsewhere`.
        times: Number of times.
    """

    command: str
    code: str
    place: str
    times: int


class RegistrationRow(TypedDict):
    """The CPU costs of a size.

    Attributes:
        nic: The card.
        size_bytes: Bytes.
        pages: Pages of a buffer that begins with a page.
        copy_ns: A copy into memory that the card may fetch from.
        translate_ns: Locking and translating the pages by a system call, and giving the card their descriptors, if it
            uses any.
    """

    nic: str
    size_bytes: int
    pages: int
    copy_ns: float
    translate_ns: float


class Retries(TypedDict):
    """A word of memory to which handlers come back, and which is no lock: a counter that others changed, or a flag.

    Attributes:
        word: The word, such as `byte 8 of the state`.
        retried_at: The source line that comes back to it.
        per_packet: How often a packet does, over the whole run. At a higher rate it may be far more often.
        changing_ns: Where handlers load the word, and change it if nobody was faster: the time of a packet from the
            load to the change, in which nobody else succeeds.
        handed_over_ns: Time per packet in which nobody has loaded it for the next change, while a handler tries.
        load: Both over the time between two packets at line rate.
    """

    word: str
    retried_at: str
    per_packet: float
    changing_ns: float
    handed_over_ns: float
    load: float


class Row(TypedDict):
    """One measurement: a card, a mode and a message size.

    Which of the figures it has depends on the benchmark.

    Attributes:
        nic: The card.
        mode: The mode.
        size_bytes: Message size in bytes.
        iterations: Iterations measured.
        min_ns: The shortest iteration, of half a round trip or of a window; likewise the following.
        p50_ns: The median.
        p99_ns: The 99th percentile, by nearest rank.
        p999_ns: The 99.9th percentile.
        max_ns: The longest iteration.
        verified: Whether every byte was checked at the receiving end, and was right, and nothing failed on a card.
        host_memory: Traffic of the measured iterations, by node.
        bandwidth_bytes_per_s: Payload bytes a second: of all directions together, from the first post of a window to
            the last completion.
        fairness: Of an incast: the smallest of the senders' figures over the largest, 1 if all get the same.
        flows: Each direction, if the pattern has several.
        latency_ns: Half a round trip, the mean over the iterations of all that ping.
        messages_per_s: Messages a second, likewise.
        ports: The ports of the network over the whole run, if it has a flow control without credits.
        stages: The stages of the latency, which add up to it.
        unaccounted_iterations: Iterations with time that no stage accounts for, if there are any.
        window: Messages in a window.
        window_ns: Duration of a window, the mean over the iterations.
    """

    nic: str
    mode: str
    size_bytes: int
    iterations: int
    min_ns: float
    p50_ns: float
    p99_ns: float
    p999_ns: float
    max_ns: float
    verified: bool
    host_memory: list[HostMemory]
    bandwidth_bytes_per_s: NotRequired[float]
    fairness: NotRequired[float]
    flows: NotRequired[list[Flow]]
    latency_ns: NotRequired[float]
    messages_per_s: NotRequired[float]
    ports: NotRequired[list[NetworkPortReport]]
    stages: NotRequired[list[Stage]]
    unaccounted_iterations: NotRequired[int]
    window: NotRequired[int]
    window_ns: NotRequired[float]


class Saturation(TypedDict):
    """The saturation of a pattern on a card: by arithmetic, and as measured.

    Attributes:
        nic: The card.
        pattern: The pattern.
        alone_latency_ns: Time of a packet alone over the longest route.
        buffers_fraction: The load at which the places of routers' buffers are all taken, whose credits take their time:
            where it is below 1, as with short packets.
        channel_load_max: The load of the most loaded link, in links' bandwidths, where every node that sends does so at
            a link's bandwidth: by walking routes. Left out where they are too many: to all nodes, on a torus of more
            than 4096 and an odd size.
        channel_load_mean: The mean over all links.
        measured_saturation_fraction: The largest accepted load, if any of the rows is saturated.
        saturation_fraction: The load at which the most loaded link is full, as a fraction of its bandwidth; 1 if that
            is a node's own.
    """

    nic: str
    pattern: str
    alone_latency_ns: float
    buffers_fraction: NotRequired[float]
    channel_load_max: NotRequired[float]
    channel_load_mean: NotRequired[float]
    measured_saturation_fraction: NotRequired[float]
    saturation_fraction: NotRequired[float]


class SensitiveValue(TypedDict):
    """An assumed value to which a verdict is sensitive.

    Attributes:
        key: Its key in the spec.
        value: The value.
        source: Why it was assumed, as the spec says.
        halved: With half of it; none if it cannot be half, or the handlers do not run then.
        doubled: With twice of it.
    """

    key: str
    value: str
    source: str
    halved: MovedValue | None
    doubled: MovedValue | None


class Sensitivity(TypedDict):
    """The assumed values of a card's spec to which a verdict is most sensitive.

    Attributes:
        values: The most sensitive first, at most three: those that change the verdict, and then by how much they change
            the rate that the card sustains. Empty if none matters.
        moved: Assumed values that were moved.
        moved_one_way: Of these, values that could be moved one way only, or with which the handlers ran one way only or
            not at all.
        unmoved: Assumed values that were not, by their keys: they are no numbers, or zero.
        stopped: Values with which the handlers do not run, or the card cannot be.
    """

    values: list[SensitiveValue]
    moved: int
    moved_one_way: int
    unmoved: list[str]
    stopped: list[StoppedValue]


SocketsBenchmark = Literal["stream", "request-response"]
"""The benchmark's name."""


class SocketsManifest(TypedDict):
    """The inputs that reproduce a report of a benchmark of sockets.

    Attributes:
        specs: The cards, by name.
        overrides: `--set` overrides, as given; the peer's card has none.
        topology: The topology.
        warmup_ns: The time before the measured one.
        duration_ns: The measured time.
        faults: The faults of the network, as given, if there are any.
        flow_control: The flow control of the network, as given, if it is.
        peer: The peer's card, if it is another one.
    """

    specs: dict[str, CardManifest]
    overrides: list[str]
    topology: str
    warmup_ns: float
    duration_ns: float
    faults: NotRequired[str]
    flow_control: NotRequired[str]
    peer: NotRequired[PeerManifest]


class SourceManifest(TypedDict):
    """A source file in a report's manifest.

    Attributes:
        source: Its path.
        sha256: Its SHA-256.
    """

    source: str
    sha256: str


class Stage(TypedDict):
    """A part of a latency.

    Attributes:
        stage: The stage's name.
        ns: Its share in nanoseconds.
    """

    stage: str
    ns: float


class StaleLine(TypedDict):
    """A line of a handler's source whose accesses would have met older bytes on the card.

    Attributes:
        line: The source line.
        accesses: Number of its stale accesses.
    """

    line: str
    accesses: int


class StoppedValue(TypedDict):
    """A value with which handlers do not run.

    Attributes:
        key: Its key in the spec.
        value: The value set.
        error: The error.
    """

    key: str
    value: str
    error: str


StreamDirection = Literal["receive", "transmit"]
"""Which way the bytes go at rank 0."""


class StreamRow(TypedDict):
    """A card and a point of the sweep.

    Attributes:
        nic: The card.
        direction: Whether rank 0 receives or transmits.
        io_size_bytes: Bytes of a call that sends or receives.
        connections: Connections.
        cpus: CPUs of rank 0's operating system.
        bandwidth_bits_per_s: Bits of payload a second that the receiving program has got in the measured time.
        cpu_utilisation: The share of the time of all its CPUs in which they worked.
        cpu_ns_per_packet: CPU time a packet.
        instructions_per_packet: Instructions a packet.
        first_misses_per_packet: Loads a packet that missed a core's first-level cache.
        second_misses_per_packet: Of these, loads that missed the shared cache, too.
        breakdown: The CPU time a packet, by function group.
        context_switches_per_packet: Context switches a packet.
        cross_calls_per_packet: Calls from one CPU to another a packet.
        interrupts_per_packet: Interrupts a packet.
        interrupt_ns: CPU time of a receive channel's interrupt handler before it takes frames: entered, and registers
            read.
        retransmissions: Segments that rank 0 and its peer sent again.
        dropped: Frames that rank 0's card, kernel threads and protocols dropped.
        packets: The packets: frames that rank 0's card received, or sent where it transmits.
        verified: Whether every byte that came was checked, and was right.
        ports: The ports of the network over the whole run, if it has a flow control without credits.
    """

    nic: str
    direction: StreamDirection
    io_size_bytes: int
    connections: int
    cpus: int
    bandwidth_bits_per_s: float
    cpu_utilisation: float
    cpu_ns_per_packet: float
    instructions_per_packet: float
    first_misses_per_packet: float
    second_misses_per_packet: float
    breakdown: list[GroupUsage]
    context_switches_per_packet: float
    cross_calls_per_packet: float
    interrupts_per_packet: float
    interrupt_ns: float
    retransmissions: int
    dropped: int
    packets: int
    verified: bool
    ports: NotRequired[list[NetworkPortReport]]


Through = Literal["port", "channels"]
"""How addresses reach the card."""


class TorusManifest(TypedDict):
    """The inputs that reproduce a report of the benchmark of a torus.

    Attributes:
        specs: The cards, by name.
        overrides: `--set` overrides, as given.
        topology: The topology.
        nodes: Number of nodes.
        packet_bytes: Payload bytes of a packet.
        warmup_ns: The time before the measured one.
        duration_ns: The measured time.
    """

    specs: dict[str, CardManifest]
    overrides: list[str]
    topology: str
    nodes: int
    packet_bytes: int
    warmup_ns: float
    duration_ns: float


class TorusRow(TypedDict):
    """A card, a pattern and an offered load.

    Attributes:
        nic: The card.
        pattern: The pattern.
        offered_fraction: Offered load of each node that sends, as a fraction of a link's bandwidth, headers and stuffed
            words included.
        accepted_fraction: The same of what arrived in the measured time.
        accepted_bytes_per_s: Payload bytes a second that arrived in it, at all nodes together.
        latency_ns: Time of a packet from its generation to the arrival of its last byte, the mean.
        min_ns: The minimum.
        p50_ns: The median.
        p99_ns: The 99th percentile, by nearest rank.
        max_ns: The maximum.
        hops_mean: Links between nodes that a packet crossed, the mean.
        saturated: Whether queues grew: in the measured time at least 5 % fewer packets arrived than were generated, and
            by three times the square root of these, which chance alone would not leave.
        packets: Packets measured: those generated in the measured time.
        undelivered_packets: Packets that should have been, but had not left their node when the run was given up, far
            beyond saturation. They are in no latency.
    """

    nic: str
    pattern: str
    offered_fraction: float
    accepted_fraction: float
    accepted_bytes_per_s: float
    latency_ns: float
    min_ns: float
    p50_ns: float
    p99_ns: float
    max_ns: float
    hops_mean: float
    saturated: bool
    packets: int
    undelivered_packets: int


class TrafficFigures(TypedDict):
    """Traffic, and what became of it.

    Attributes:
        traffic: The expression; of several ports, all of them.
        overload: What happens when the packet buffer is full: `credits`, the sender waits for them; `lossy`, packets
            are dropped; or `pfc`, the wire is paused.
        offered: Packets offered to the wire.
        offered_bytes: Their payload: bytes of frames.
        offered_ns: How long they take at their rate, until the next one would be due, which of a capture is a mean gap
            behind the last one; of several ports, at the sum of their rates.
        handled: Packets that the card took in: all but those dropped by overload.
        handled_bytes: Their payload.
        passed: Of these, packets that no handler dropped: processed, or on their way to host memory.
        dropped_by_handler: Packets that handlers dropped.
        failed: Packets on which a handler failed.
        dropped_by_overload: Packets that found the packet buffer full, and were dropped.
        dropped_at_host: Frames that handlers passed on to the host, and that found no buffer there.
        dropped_at_link: Frames that handlers sent, and that found no room before the port that they were to leave by:
            of several ports with `--lossy`.
        to_no_station: Frames that handlers sent to addresses that no station has: they leave by the port by which they
            came.
        faster_than_wire: Whether packets of a capture were recorded faster than the wire takes them: they came as fast
            as it does.
        loads_without_loss: Whether loads, locks and memory are those of a second run with the same packets, in which
            the wire is paused: packets that come through where others are lost are not the mix that was offered.
        paused_ns: How long the wire was paused.
        latency_ns_mean: The latency through the card, from the last byte in the packet buffer until the packet has left
            it: the mean.
        latency_ns_p50: The median, by nearest rank, and at most 0.2 % above it; likewise the following.
        latency_ns_p99: The 99th percentile.
        latency_ns_p999: The 99.9th percentile.
        latency_ns_max: The maximum, exactly.
        ports: The same for each port, where there are several.
    """

    traffic: str
    overload: str
    offered: int
    offered_bytes: int
    offered_ns: float
    handled: int
    handled_bytes: int
    passed: int
    dropped_by_handler: int
    failed: int
    dropped_by_overload: int
    dropped_at_host: int
    dropped_at_link: int
    to_no_station: int
    faster_than_wire: bool
    loads_without_loss: bool
    paused_ns: float
    latency_ns_mean: float
    latency_ns_p50: float
    latency_ns_p99: float
    latency_ns_p999: float
    latency_ns_max: float
    ports: NotRequired[list[PortFigures]]


class TriedRate(TypedDict):
    """A run with the same traffic at another rate.

    Attributes:
        rate_fraction: The rate, over the traffic's.
        beyond_wire: Whether that is more than the wire takes: then it was a wire that is as much faster.
        packets: Packets offered: the first ones of the traffic.
        at_once: The first of them that come as fast as the wire brings them; 0 without a burst.
        sustained: Whether nothing was lost or piled up.
        verdict: Whether the card keeps up with it, by its loads, too; none of a run with a burst, and of one that was
            stopped.
        limiting_part: The part that limits then; none of a run with a burst that came through.
        capacity_fraction: The rate that came through, over the traffic's, where it was not sustained; else what loads
            say of the card. None of a run with a burst that came through.
        stopped: Why the run was stopped, if it was: a handler that is starved by others, or a failure that the
            traffic's own rate does not have.
    """

    rate_fraction: float
    beyond_wire: bool
    packets: int
    at_once: int
    sustained: bool
    verdict: Literal["yes", "barely", "not judged", "no"] | None
    limiting_part: str | None
    capacity_fraction: float | None
    stopped: str | None


class Unmodelled(TypedDict):
    """Shared words in memory in which no access waits for another.

    No card has such a memory.

    Attributes:
        word: The word with the most accesses of those on which atomic operations work; none where handlers share words
            by loads and stores alone.
        word_accesses: Accesses of a packet to it, from the first atomic operation on.
        atomic_words: Words there on which atomic operations work.
        stored_words: Words of ideal memory, of the state or of variables, that have another value at the end: handlers
            have stored them.
        levels: The levels of memory, as the card's spec names them.
        keys: The keys of the card's spec that model it. Those with a value are enough.
    """

    word: str | None
    word_accesses: float
    atomic_words: int
    stored_words: int
    levels: list[str]
    keys: list[str]


class WaitingLine(TypedDict):
    """A line of a handler's source that waits for banks.

    Attributes:
        line: The source line.
        waits: Number of its accesses that waited.
        waited_cycles: Cycles that they waited, for a packet.
    """

    line: str
    waits: int
    waited_cycles: float


class Report(TypedDict):
    """The report of a benchmark.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        seed: The seed.
        manifest: The inputs.
        rows: One row for each point of the benchmark, such as card, mode and size.
        failures: Failures of handlers, and commands refused to them, while the rows were measured. Unless they were
            allowed, the benchmark has failed.
        failed_points: The points whose run failed, if any did.
        handler_lines: Lines that handlers printed, if they printed any.
    """

    benchmark: MessagesBenchmark
    version: str
    seed: int
    manifest: MessagesManifest
    rows: list[Row]
    failures: list[PointFailure]
    failed_points: NotRequired[list[FailedPoint]]
    handler_lines: NotRequired[HandlerLines]


class LineRateReport(TypedDict):
    """The report of a benchmark.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        seed: The seed.
        manifest: The inputs.
        rows: One row for each point of the benchmark, such as card, mode and size.
        failures: Failures of handlers, and commands refused to them, while the rows were measured. Unless they were
            allowed, the benchmark has failed.
        failed_points: The points whose run failed, if any did.
        handler_lines: Lines that handlers printed, if they printed any.
    """

    benchmark: Literal["handlers"]
    version: str
    seed: int
    manifest: Manifest
    rows: list[LineRateRow]
    failures: list[PointFailure]
    failed_points: NotRequired[list[FailedPoint]]
    handler_lines: NotRequired[HandlerLines]


class ChannelBenchReport(TypedDict):
    """The report of a benchmark.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        seed: The seed.
        manifest: The inputs.
        rows: One row for each point of the benchmark, such as card, mode and size.
        failures: Failures of handlers, and commands refused to them, while the rows were measured. Unless they were
            allowed, the benchmark has failed.
        failed_points: The points whose run failed, if any did.
        handler_lines: Lines that handlers printed, if they printed any.
    """

    benchmark: ChannelBenchmark
    version: str
    seed: int
    manifest: ChannelManifest
    rows: list[ChannelRow]
    failures: list[PointFailure]
    failed_points: NotRequired[list[FailedPoint]]
    handler_lines: NotRequired[HandlerLines]


class RegistrationReport(TypedDict):
    """The report of the benchmark of registration.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        manifest: The inputs.
        rows: One row for each card and size.
        crossovers: One for each card.
        failed_points: The points whose run failed, if any did.
    """

    benchmark: Literal["registration"]
    version: str
    manifest: Manifest
    rows: list[RegistrationRow]
    crossovers: list[Crossover]
    failed_points: NotRequired[list[FailedPoint]]


class FairnessReport(TypedDict):
    """The report of a benchmark that has no seed: nothing in it is random.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        manifest: The inputs.
        rows: One row for each point of the benchmark.
        failed_points: The points whose run failed, if any did.
    """

    benchmark: Literal["fairness"]
    version: str
    manifest: Manifest
    rows: list[FairnessRow]
    failed_points: NotRequired[list[FailedPoint]]


class GridReport(TypedDict):
    """The report of a benchmark on a grid: one row for each card and size.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        seed: The seed.
        manifest: The inputs.
        rows: One row for each card and size.
        failed_points: The points whose run failed, if any did.
    """

    benchmark: GridBenchmark
    version: str
    seed: int
    manifest: GridManifest
    rows: list[GridRow]
    failed_points: NotRequired[list[FailedPoint]]


class TorusReport(TypedDict):
    """The report of the benchmark of a torus.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        seed: The seed.
        manifest: The inputs.
        rows: One row for each card, pattern and load.
        saturation: One for each card and pattern.
        failed_points: The points whose run failed, if any did.
    """

    benchmark: Literal["torus"]
    version: str
    seed: int
    manifest: TorusManifest
    rows: list[TorusRow]
    saturation: list[Saturation]
    failed_points: NotRequired[list[FailedPoint]]


class StreamReport(TypedDict):
    """The report of a benchmark of sockets.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        seed: The seed.
        manifest: The inputs.
        rows: One row for each card and point.
        failed_points: The points whose run failed, if any did.
    """

    benchmark: SocketsBenchmark
    version: str
    seed: int
    manifest: SocketsManifest
    rows: list[StreamRow]
    failed_points: NotRequired[list[FailedPoint]]


class ExchangeReport(TypedDict):
    """The report of a benchmark of sockets.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        seed: The seed.
        manifest: The inputs.
        rows: One row for each card and point.
        failed_points: The points whose run failed, if any did.
    """

    benchmark: SocketsBenchmark
    version: str
    seed: int
    manifest: SocketsManifest
    rows: list[ExchangeRow]
    failed_points: NotRequired[list[FailedPoint]]


class ContextReport(TypedDict):
    """The report of a benchmark that has no seed: nothing in it is random.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        manifest: The inputs.
        rows: One row for each point of the benchmark.
        failed_points: The points whose run failed, if any did.
    """

    benchmark: Literal["pcsa"]
    version: str
    manifest: Manifest
    rows: list[ContextRow]
    failed_points: NotRequired[list[FailedPoint]]


class CountReport(TypedDict):
    """The result of counting.

    Attributes:
        application: The application.
        version: The version of nicety.
        manifest: The inputs of the run.
        capture: The file, as it was named.
        format: `pcap` or `pcapng`.
        bytes: Bytes read, of what was compressed where the file is.
        packets: Packets read.
        ipv4_packets: Packets of IP version 4.
        ipv6_packets: Packets of IP version 6.
        other_packets: Packets that are not of IP.
        cut_packets: Packets of which too little was captured for a source address.
        unknown_link_packets: Packets of link types that are not supported.
        damaged_packets: Packets that were damaged on their link, as their flags say, and are not replayed.
        shortened_packets: Packets longer than a frame of the card's port carries, which were truncated.
        distinct: Source addresses that differ, counted one by one.
        nic: The card.
        sketches: Sketches.
        estimate: Distinct source addresses, by the card.
        relative_error: The error of the estimate, relative to `distinct`.
        expected_error: The standard error of this number of sketches.
        trailing_ones: The trailing ones of all sketches, from the card.
        through: How the addresses reached the card.
        blocks: Blocks in which the addresses went to the card, where they came from the host.
        sent_ns: Until the last packet had gone into the port, where they came that way.
        wire_ns: How long the wire was busy with them; less than `sent_ns` where the card held them up.
        dropped_packets: Packets that the port dropped, where they came that way: their length field (IEEE 802.3) is 0,
            or more than was captured.
        card_time_ns: From the first packet, or the host's first message, to when the host has the sum.
        card_packets_per_s: Packets a second of card time.
        damage: Where the capture is damaged, if it is: the packets before are counted.
    """

    application: Literal["pcsa"]
    version: str
    manifest: Manifest
    capture: str
    format: str
    bytes: int
    packets: int
    ipv4_packets: int
    ipv6_packets: int
    other_packets: int
    cut_packets: int
    unknown_link_packets: int
    damaged_packets: int
    shortened_packets: int
    distinct: int
    nic: str
    sketches: int
    estimate: float
    relative_error: float
    expected_error: float
    trailing_ones: int
    through: Through
    blocks: int | None
    sent_ns: float | None
    wire_ns: float | None
    dropped_packets: int | None
    card_time_ns: float
    card_packets_per_s: float
    damage: Damage | None


class TourReport(TypedDict):
    """The result of climbing.

    Attributes:
        application: The application.
        version: The version of nicety.
        seed: The seed.
        manifest: The inputs of the run.
        problem: The problem's name in the file.
        cities: Cities.
        nic: The card.
        restarts: Climbs.
        climbers: Climbers.
        distances: `table` or `root`.
        job_climbs: Climbs of a job.
        jobs: Jobs.
        length: The shortest tour's length.
        climb: The number of the climb that found it, the first of those that did.
        tour: The shortest tour: the cities' numbers in the file.
        card_time_ns: The sum of the jobs' times.
        card_climbs_per_s: Climbs a second of card time.
        climber_cycles_computing: Cycles that climbers computed, all together.
        climber_cycles_asleep: Cycles that they waited for memories.
        instructions: Instructions of all processes.
        cpu: The same climbs on this machine, in wall-clock time.
        gpu: The same climbs on a graphics processor; the caller, which runs them there, fills this in.
    """

    application: Literal["tsp"]
    version: str
    seed: int
    manifest: Manifest
    problem: str
    cities: int
    nic: str
    restarts: int
    climbers: int
    distances: Distances
    job_climbs: int
    jobs: int
    length: int
    climb: int
    tour: list[int]
    card_time_ns: float
    card_climbs_per_s: float
    climber_cycles_computing: int
    climber_cycles_asleep: int
    instructions: int
    cpu: NotRequired[CpuFigures]
    gpu: NotRequired[GpuFigures]


class ChannelOptions(TypedDict, total=False):
    """The request of a benchmark of channels.

    The JSON form is what other languages hand over, and the command line's options are made of its schema.

    Attributes:
        sizes: Message sizes in bytes: 8:56 doubles, commas list.
        directions: `host-to-card` or `card-to-host`; both if left out.
        iterations: Messages measured for each size.
        modes: `direct`, in mailboxes, or `indirect`, by DMA; both if left out.
        nics: Cards to compare: names of specs, or paths of spec files.
        noise: Background noise on the host's CPUs, as in 1ms,25us; add ,fixed for a fixed period; or a file with a
            trace of it.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example managers.read=4.
        payload: Bytes that all processes move together in a run.
        processes: Numbers of processes that move the payload at once, each with a thread of the host.
        runs: Runs measured, which differ in when threads begin.
        seed: Of every random stream: the same seed gives the same report to the last byte.
        warmup: Messages before these.
    """

    sizes: Required[Annotated[Numbers, Option(usual={"channel-bandwidth": "64Ki:20Mi", "channel-latency": "8:56"})]]
    directions: Annotated[Names | None, Option(metavar="D[,E]", example="host-to-card")]
    iterations: Annotated[int | None, Option(default=100, least=1, most=1000000, only="channel-latency")]
    modes: Annotated[Names | None, Option(metavar="M[,N]", example="direct")]
    nics: Annotated[Names | None, Option(default=["nfp-4000"])]
    noise: Annotated[str | None, Option(metavar="PERIOD,DURATION")]
    overrides: Annotated[Overrides | None, Option()]
    payload: Annotated[
        int | None, Option(default=104857600, least=1, most=1099511627776, metavar="SIZE", only="channel-bandwidth")
    ]
    processes: Annotated[Numbers | None, Option(default=[1], most=U32, usual="1,8", only="channel-bandwidth")]
    runs: Annotated[int | None, Option(default=3, least=1, most=1000, only="channel-bandwidth")]
    seed: Annotated[int | None, Option(default=1)]
    warmup: Annotated[int | None, Option(default=1, least=1, most=1000000, only="channel-latency")]


class ContextOptions(TypedDict, total=False):
    """The cardinality estimate: how contexts hide the latency of memory.

    Each row has the cycles in which one microengine finishes some updates in all, and the updates a second of the whole
    card with as many contexts on each.

    Attributes:
        contexts: Numbers of contexts, each a row: 1..8 steps by one, 1:8 doubles.
        nics: Cards to compare: names of specs, or paths of spec files.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        updates: Updates in all on one microengine.
    """

    contexts: Annotated[Numbers | None, Option(default=[1, 2, 3, 4, 5, 6, 7, 8], usual="1..8")]
    nics: Annotated[Names | None, Option(default=["nfp-4000"])]
    overrides: Annotated[Overrides | None, Option()]
    updates: Annotated[int | None, Option(default=8, least=1, most=256)]


class CountOptions(TypedDict, total=False):
    """Count the distinct source addresses of a capture on a card, and one by one beside it.

    A capture that is damaged is counted up to there; what comes of it is printed, and the status is 2.

    Attributes:
        nic: The card: the name of a spec, or a file's path.
        overrides: Changes to the card, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        sketches: Words that stand for the addresses: a power of two from 16 to what the card's CLS holds.
        through: Packets come through the port, or addresses through channels from the host.
    """

    nic: Annotated[Place | None, Option(default="nfp-4000", metavar="NAME")]
    overrides: Annotated[Overrides | None, Option()]
    sketches: Annotated[int | None, Option(default=2048, least=1, most=U32)]
    through: Annotated[Through | None, Option(default="port", metavar="port|channels")]


class ExchangeOptions(TypedDict, total=False):
    """Requests and their replies on many connections: how many a second, how long they take, what they cost.

    Every connection has a client on the other host, which sends a request, waits for its reply, thinks, and sends the
    next, as netperf does; and a thread of the measured host, which replies.

    Attributes:
        connections: Numbers of connections, each a row: 1:64 doubles, 1..8 steps by one.
        nics: Cards to compare, of Ethernet: names of specs, or paths of spec files.
        duration: The time that is measured, as in 50ms.
        faults: Faults of the network: a TOML file, or a line such as
            loss=1e-3,corrupt=1e-4,duplicate=1e-3,reorder=1e-3:5us,burst=4,seed=7,fail=hosts.1@2ms.
        flow_control: What keeps the buffers of switches from overflowing: `credits`; `none`: switches drop packets; or
            `pfc`: they pause who sends. Behind that as in none,buffer=1Mi,per=shared,alpha=1/2 or
            pfc,buffer=256Ki,xoff=128Ki,xon=120Ki,headroom=40Ki,quanta=65535. Default: credits.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example
            interrupts.packets=1.
        peer: The card of the other host, if it is another one; overrides do not change it.
        reply: Bytes of a reply.
        seed: Of every random stream: the same seed gives the same report to the last byte.
        size: Bytes of a request.
        think: What a client waits between a reply and its next request, as in 100us; by default it does not.
        topology: How hosts are joined: `pair`; `star`: hosts around a switch; `fat-tree:PORTS`, as in fat-tree:36, or
            `fat-tree:PORTS:LEVELS:ROUTING`; `torus:XxYxZ`, as in torus:4x4x4; or `ring:SWITCHES`. Default: what so many
            hosts need.
        warmup: The time before that, as in 10ms.
    """

    connections: Required[Annotated[Numbers, Option(usual="1:64")]]
    nics: Required[Annotated[Names, Option(example="niagara2-niu")]]
    duration: Annotated[str | None, Option(default="50ms", metavar="TIME")]
    faults: Annotated[Faults | None, Option(metavar="FAULTS")]
    flow_control: Annotated[str | None, Option(metavar="credits|none|pfc[,KEY=VALUE]")]
    overrides: Annotated[Overrides | None, Option()]
    peer: Annotated[Place | None, Option(metavar="NIC")]
    reply: Annotated[int | None, Option(default=1, least=1, most=16777216, metavar="SIZE")]
    seed: Annotated[int | None, Option(default=1)]
    size: Annotated[int | None, Option(default=1, least=1, most=16777216, metavar="SIZE")]
    think: Annotated[str | None, Option(metavar="TIME")]
    topology: Annotated[str | None, Option(metavar="NAME")]
    warmup: Annotated[str | None, Option(default="10ms", metavar="TIME")]


class FairnessOptions(TypedDict, total=False):
    """The bandwidth of each of many processes of a host that send at once.

    Each sends to a process of its own on the other host. Jain's index is 1 where all get the same, and 1/n where one of
    n gets everything.

    Attributes:
        processes: Numbers of processes on each host, each a row: 1:64 doubles, 1..8 steps by one.
        messages: Messages of each process.
        nics: Cards to compare: names of specs, or paths of spec files.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example dma.channels=4.
        size: Bytes of a message.
    """

    processes: Required[Annotated[Numbers, Option(usual="1:64")]]
    messages: Annotated[int | None, Option(default=16, least=1, most=65536)]
    nics: Annotated[Names | None, Option(default=["qnix"])]
    overrides: Annotated[Overrides | None, Option()]
    size: Annotated[int | None, Option(default=65536, least=1, metavar="SIZE")]


class GridOptions(NetworkOptions, total=False):
    """The request of a benchmark on a grid of ranks.

    Attributes:
        nics: Cards to compare: names of specs, or paths of spec files.
        sizes: Bytes of a face, or of the vector, a multiple of 8: 1Ki:64Ki doubles, commas list.
        grid: The ranks in each of one to three dimensions, as in 4x4x2. Default: the topology's own dimensions, or the
            nodes in three dimensions as equal as can be.
        iterations: Iterations measured for each size.
        nodes: Number of hosts. Default: as many as grid or topology have, or 8.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        threads: Threads, of which each has a block of hosts; the result is the same. Each takes the memory of a run in
            one.
        warmup: Iterations before these.
    """

    nics: Required[Annotated[Names, Option(example="spin-discrete")]]
    sizes: Required[Annotated[Numbers, Option(usual={"allreduce": "8Ki:1Mi", "halo": "1Ki:64Ki"})]]
    grid: Annotated[str | None, Option(metavar="XxYxZ")]
    iterations: Annotated[int | None, Option(default=4, least=1, most=10000)]
    nodes: Annotated[int | None, Option(least=2, most=U32)]
    overrides: Annotated[Overrides | None, Option()]
    threads: Annotated[int | None, Option(default=1, least=1, most=1024)]
    warmup: Annotated[int | None, Option(default=1, most=10000)]


class HandlerNames(TypedDict):
    """Names of handlers in the program, if they are not the usual ones.

    Attributes:
        completion: Instead of `completion_handler`.
        header: Instead of `header_handler`.
        payload: Instead of `payload_handler`.
    """

    completion: NotRequired[str | None]
    header: NotRequired[str | None]
    payload: NotRequired[str | None]


class LineRateOptions(TypedDict, total=False):
    """Send packets to handlers at the rate of the wire: what each takes, and whether the card keeps up.

    The rate of the wire is a packet every max(g, bytes x G): the card's gap between messages, or the link's time for
    the bytes.

    Attributes:
        handler_memory: Bytes of host memory that only handlers use.
        lossy: Drop packets of the traffic that find the packet buffer full.
        message_packets: Packets of a message.
        messages: Messages measured, or frames. Default: as many messages as have 2048 packets, and 20000 frames.
        nics: Cards to compare: names of specs, or paths of spec files.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        packet_sizes: Payload bytes of a packet: 64:4Ki doubles. Default: that, as far as the packets of all cards
            carry.
        pfc: Pause the wire while the packet buffer is full (IEEE 802.1Qbb), with --traffic.
        rules: Which frames the handlers of an Ethernet card have, as in `udp dport=53` or `word@36&ffff0000=00350000`;
            several, each with a state of its own, where no frame matches two. Default: any.
        seed: Of every random stream: the same seed gives the same report to the last byte.
        sensitivity: Also find the three assumed values of each card's spec to which the verdict is most sensitive: each
            is moved by 2 x either way.
        state: First bytes of the handlers' state, as in 0100ff; zeros follow.
        state_bytes: Bytes of the handlers' state in HPU memory. Default: 1Ki, or those of the state that is given.
        traffic: Packets to send instead of equal ones at the wire's rate: a capture, as in `capture=FILE.pcap
            rate=wire`, or made ones, as in `udp dport=53 src=10.0.0.0/8 flows=1M zipf=1.1 size=imix rate=40Gbps
            arrivals=poisson`; several for several ports of the card (link.ports), the first for port 0, all at once
            until one of them has ended.
        user_header: First bytes of every message; the rest is random.
    """

    handler_memory: Annotated[int | None, Option(default=65536, most=1073741824, metavar="SIZE")]
    lossy: Annotated[bool | None, Option(default=False)]
    message_packets: Annotated[int | None, Option(default=64, least=1, most=1000000)]
    messages: Annotated[int | None, Option(least=1, most=1000000)]
    nics: Annotated[Names | None, Option(default=["spin-discrete"])]
    overrides: Annotated[Overrides | None, Option()]
    packet_sizes: Annotated[Numbers | None, Option()]
    pfc: Annotated[bool | None, Option(default=False)]
    rules: Annotated[Names | None, Option(metavar="RULE")]
    seed: Annotated[int | None, Option(default=1)]
    sensitivity: Annotated[bool | None, Option(default=False)]
    state: Annotated[bytes | None, Option(default=b"")]
    state_bytes: Annotated[int | None, Option(most=67108864, metavar="SIZE")]
    traffic: Annotated[Expressions | None, Option(metavar="EXPRESSION")]
    user_header: Annotated[bytes | None, Option(default=b"")]


class MessagesOptions(NetworkOptions, total=False):
    """The request of a benchmark between hosts.

    The JSON form is what other languages hand over, and the command line's options are made of its schema.

    Attributes:
        nics: Cards to compare: names of specs, or paths of spec files.
        sizes: Message sizes in bytes: 8:4Mi doubles, 1..4 steps by one, commas list.
        addressing: Of mode put: the addresses that messages name; the card translates virtual ones.
        flush_receive: Of mode put: the receiver's card drops what comes, and a window ends at the sender. Not for
            latency.
        interrupt: Of mode put: programs learn of events by interrupts.
        iterations: Round trips or windows measured for each size. Default: 10, and 2 windows if messages are longer
            than 64 KiB.
        loopback: Of mode put: within one host, through its card.
        modes: Modes, which say what answers, for example rdma or spin-stream; all modes of the card if left out.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        pattern: `pair`: rank 0 sends to rank 1; `bidirectional`: both send at once; or `incast:N`: N hosts send to one
            more at once.
        peer: The card of every host but rank 0, if it is another one; overrides do not change it.
        poll: Of mode put: programs learn of events by polling; the card's spec decides if left out.
        pong_size: Of mode put: bytes of the reply of a ping-pong, 8 if left out.
        sink: Of mode put: the memory that messages go to.
        source: Of mode put: the memory that messages come from.
        warmup: Round trips or windows before these.
        window: Messages in flight at once; not for latency.
    """

    nics: Required[Annotated[Names, Option(example="spin-discrete")]]
    sizes: Required[
        Annotated[Numbers, Option(usual={"bandwidth": "8:4Mi", "latency": "8:4Mi", "message-rate": "8:4Ki"})]
    ]
    addressing: Annotated[Addressing | None, Option(default="virtual", metavar="virtual|physical")]
    flush_receive: Annotated[bool | None, Option(default=False)]
    interrupt: Annotated[bool | None, Option(default=False)]
    iterations: Annotated[int | None, Option(least=1, most=10000000)]
    loopback: Annotated[bool | None, Option(default=False)]
    modes: Annotated[Names | None, Option(metavar="M[,N]", example="rdma")]
    overrides: Annotated[Overrides | None, Option()]
    pattern: Annotated[str | None, Option(default="pair", metavar="PATTERN")]
    peer: Annotated[Place | None, Option(metavar="NIC")]
    poll: Annotated[bool | None, Option(default=False)]
    pong_size: Annotated[int | None, Option(most=2147483648, metavar="BYTES", only="latency")]
    sink: Annotated[Memory | None, Option(default="host", metavar="host|gpu")]
    source: Annotated[Memory | None, Option(default="host", metavar="host|gpu")]
    warmup: Annotated[int | None, Option(default=1, most=10000000)]
    window: Annotated[int | None, Option(default=64, least=1, most=65536)]


class RegistrationOptions(TypedDict, total=False):
    """Copy a message into registered memory, or register its own.

    Each row has what a CPU spends until the card may fetch a message of that size; below is the size from which on
    locking and translating takes no longer than copying.

    Attributes:
        sizes: Sizes in bytes: 64:2Mi doubles, commas list.
        nics: Cards to compare: names of specs, or paths of spec files.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example kernel.pin='3 us'.
    """

    sizes: Required[Annotated[Numbers, Option(usual="64:2Mi")]]
    nics: Annotated[Names | None, Option(default=["qnix"])]
    overrides: Annotated[Overrides | None, Option()]


class StreamOptions(TypedDict, total=False):
    """Streams of many connections between two hosts: throughput, and what it costs one of them.

    Every connection has a thread at each end, which sends or receives without a pause, as iperf3 does. One axis is
    swept at a time: sizes of calls with 32 connections and all CPUs, connections with calls of 64 KiB and all CPUs, and
    so on.

    Attributes:
        nics: Cards to compare, of Ethernet: names of specs, or paths of spec files.
        connections: Numbers of connections: 1:64 doubles, 1..8 steps by one. Default: 32.
        cpus: Numbers of CPUs that the measured host's operating system uses, from the first core on. Default: all.
        direction: Whether the measured host receives or transmits.
        duration: The time that is measured, as in 50ms.
        faults: Faults of the network: a TOML file, or a line such as
            loss=1e-3,corrupt=1e-4,duplicate=1e-3,reorder=1e-3:5us,burst=4,seed=7,fail=hosts.1@2ms.
        flow_control: What keeps the buffers of switches from overflowing: `credits`; `none`: switches drop packets; or
            `pfc`: they pause who sends. Behind that as in none,buffer=1Mi,per=shared,alpha=1/2 or
            pfc,buffer=256Ki,xoff=128Ki,xon=120Ki,headroom=40Ki,quanta=65535. Default: credits.
        io_sizes: Bytes of a call that sends or receives: 64:64Ki doubles, commas list. Default: 64 KiB.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example
            interrupts.packets=1.
        peer: The card of the other host, if it is another one; overrides do not change it.
        seed: Of every random stream: the same seed gives the same report to the last byte.
        topology: How hosts are joined: `pair`; `star`: hosts around a switch; `fat-tree:PORTS`, as in fat-tree:36, or
            `fat-tree:PORTS:LEVELS:ROUTING`; `torus:XxYxZ`, as in torus:4x4x4; or `ring:SWITCHES`. Default: what so many
            hosts need.
        warmup: The time before that, from the first byte on, as in 10ms.
    """

    nics: Required[Annotated[Names, Option(example="niagara2-niu")]]
    connections: Annotated[Numbers | None, Option()]
    cpus: Annotated[Numbers | None, Option()]
    direction: Annotated[StreamDirection | None, Option(default="receive", metavar="receive|transmit")]
    duration: Annotated[str | None, Option(default="50ms", metavar="TIME")]
    faults: Annotated[Faults | None, Option(metavar="FAULTS")]
    flow_control: Annotated[str | None, Option(metavar="credits|none|pfc[,KEY=VALUE]")]
    io_sizes: Annotated[Numbers | None, Option()]
    overrides: Annotated[Overrides | None, Option()]
    peer: Annotated[Place | None, Option(metavar="NIC")]
    seed: Annotated[int | None, Option(default=1)]
    topology: Annotated[str | None, Option(metavar="NAME")]
    warmup: Annotated[str | None, Option(default="10ms", metavar="TIME")]


class TorusOptions(TypedDict, total=False):
    """Random traffic on a torus of routers: latency and accepted throughput over the offered load.

    The packets of a node come at random times into a queue without end, and from there to its router. Neither hosts nor
    cards take part: of a card it is the link and the router alone.

    Attributes:
        nics: Cards to compare, of which the links and routers are taken: names of specs, or paths of spec files.
        duration: The time in which packets are measured, as in 20us, the default; where ten packets on the slowest link
            take longer, that is.
        load: Offered loads, fractions of a link's bandwidth: 0.1:1.0 steps by 0.1, 0.1:1.0:0.05 by 0.05, commas list.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example switch.buffer=8.
        packet: Payload bytes of a packet.
        patterns: Where packets go: neighbour, uniform, transpose, alltoall, bit-complement or tornado.
        seed: Of every random stream: the same seed gives the same report to the last byte.
        topology: The torus, as in torus:8x8x8.
        warmup: The time before that, as in 10us, the default; where a packet alone takes more than half of that over
            the longest route, it is twice its time.
    """

    nics: Required[Annotated[Names, Option(example="spin-discrete")]]
    duration: Annotated[str | None, Option(metavar="TIME")]
    load: Annotated[str | None, Option(default="0.1:1.0", metavar="LOADS")]
    overrides: Annotated[Overrides | None, Option()]
    packet: Annotated[int | None, Option(default=4096, least=1, most=1048576, metavar="SIZE")]
    patterns: Annotated[Names | None, Option(default=["uniform"], metavar="P[,Q]", example="uniform")]
    seed: Annotated[int | None, Option(default=1)]
    topology: Annotated[str | None, Option(default="torus:8x8x8", metavar="torus:XxYxZ")]
    warmup: Annotated[str | None, Option(metavar="TIME")]


class TourOptions(TypedDict, total=False):
    """Look for a short tour: many climbs by 2-opt on the microengines of a card.

    Attributes:
        climbers: Processes that climb, each on a microengine of its own; the manager has one more.
        distances: `table`, which looks them up in CLS, or `root`, an integer root each time; both are exact.
        job: Climbs given to the card at once. Default: ten a climber.
        nic: The card: the name of a spec, or a file's path.
        overrides: Changes to the card, `KEY=VALUE` with a unit where the key has one, for example hpu.clock="800 MHz".
        restarts: Climbs in all, each from a tour that a random number chooses.
        resume: Keep what is done in a file, and go on with what is there.
        seed: Of the random tours.
    """

    climbers: Annotated[int | None, Option(default=59, least=1, most=U32)]
    distances: Annotated[Distances | None, Option(default="table", metavar="table|root")]
    job: Annotated[int | None, Option(least=1, most=U32)]
    nic: Annotated[Place | None, Option(default="nfp-4000", metavar="NAME")]
    overrides: Annotated[Overrides | None, Option()]
    restarts: Annotated[int | None, Option(default=200, least=1, most=U32)]
    resume: Annotated[Place | None, Option(metavar="FILE")]
    seed: Annotated[int | None, Option(default=1, most=U32)]


class ByRank(TypedDict):
    """What each rank spends its time with.

    Attributes:
        finish_ns: When it is done.
        computing_ns: How long it computes.
        communicating_ns: How long it has messages under way.
        overlapped_ns: How long it does both.
    """

    finish_ns: list[float]
    computing_ns: list[float]
    communicating_ns: list[float]
    overlapped_ns: list[float]


class CompareReport(TypedDict):
    """A schedule on several cards.

    Attributes:
        version: The version of nicety.
        file: The schedule.
        manifest: The inputs.
        ranks: Ranks.
        operations: Operations.
        messages: Messages.
        rows: A row for each card, and for LogGOPS.
        by_rank: What the rows sum up, for each rank, by the rows' names.
        parameters: The parameters of LogGOPS, as given, if that was run.
    """

    version: str
    file: str
    manifest: ScheduleManifest
    ranks: int
    operations: int
    messages: int
    rows: list[CompareRow]
    by_rank: dict[str, ByRank]
    parameters: NotRequired[LogGopsParameters]


class CompareRow(TypedDict):
    """A schedule on a card.

    Attributes:
        nic: The card, or loggops; behind a / its mode, if not that of the host alone.
        finish_ns: When the last rank is done.
        last_rank: The first rank that is done then.
        finish: When ranks are done.
        computing: How long ranks compute.
        communicating: How long ranks have messages under way: a send from its beginning to its end, a receive once its
            message was sent.
        exposed: How long ranks communicate and do not compute meanwhile.
        overlap: The share of communication that is hidden by computation, over all ranks; 0 where there is none.
        mode: Where its messages were executed; none of LogGOPS.
        stages: The critical path to the end of the last rank, which its stages add up to; LogGOPS has none.
    """

    nic: str
    finish_ns: float
    last_rank: int
    finish: RankSpread
    computing: RankSpread
    communicating: RankSpread
    exposed: RankSpread
    overlap: float
    mode: NotRequired[MessageMode]
    stages: NotRequired[list[Stage]]


Compat = Literal["loggopsim"]
"""A simulator whose results are wanted."""


class Converted(TypedDict):
    """What was converted.

    Attributes:
        input: The file that was read.
        output: The file that was written.
        format: Its format: `text` or `binary`.
        ranks: Ranks.
        operations: Operations.
    """

    input: str
    output: str
    format: str
    ranks: int
    operations: int


class Generated(TypedDict):
    """What was made.

    Attributes:
        pattern: The pattern.
        output: The file.
        ranks: Ranks.
        operations: Operations.
    """

    pattern: str
    output: str
    ranks: int
    operations: int


GoalNetwork = Literal["loggops", "packets"]
"""The network of a run."""


class LogGopsParameters(TypedDict):
    """The parameters of LogGOPS, as given.

    Attributes:
        latency: L: the latency between hosts.
        overhead: o: the overhead of a CPU for a message.
        gap: g: the gap between the starts of messages at an interface.
        gap_per_byte: G: the gap for each byte behind a message's first, as a time or a bandwidth: 6ns, 400Gb/s.
        overhead_per_byte: O: the overhead for each byte behind a message's first.
        eager_bytes: S: the longest message that is sent at once, in bytes; the sender of a longer one waits for the
            receive.
    """

    latency: str
    overhead: str
    gap: str
    gap_per_byte: str
    overhead_per_byte: str
    eager_bytes: int


MessageMode = Literal["host", "card"]
"""Where messages are matched, copied and got."""


class RankSpread(TypedDict):
    """Times of all ranks.

    Attributes:
        min_ns: The shortest.
        mean_ns: The mean, rounded down to a picosecond.
        max_ns: The longest.
    """

    min_ns: float
    mean_ns: float
    max_ns: float


class ScheduleInfo(TypedDict):
    """What a schedule is made of.

    Attributes:
        file: The file.
        ranks: Ranks.
        operations: Operations of all ranks.
        sends: Those that send.
        recvs: Those that receive.
        calcs: Those that calculate.
        bytes: Bytes that are sent.
        calc_ns: Nanoseconds that are calculated, on all CPUs together.
        dependencies: Dependencies between operations.
        depth: Operations of the longest chain in a rank of which each depends on the one before.
        degree: Other ranks that a rank names as source or destination, the most that one does.
        rank_operations: Operations of a rank, the most.
        cpus: CPUs that a rank takes, the most.
        nics: Network interfaces, likewise.
    """

    file: str
    ranks: int
    operations: int
    sends: int
    recvs: int
    calcs: int
    bytes: int
    calc_ns: int
    dependencies: int
    depth: int
    degree: int
    rank_operations: int
    cpus: int
    nics: int


class ScheduleManifest(TypedDict):
    """The inputs that reproduce a run on cards.

    Attributes:
        specs: The cards, by name.
        overrides: `--set` overrides, as given.
        modes: Where messages were executed.
        topology: The topology.
        seed: The seed.
        compiler: The handlers that executed them, by card; the caller, which compiled them, fills this in.
        faults: The faults of the network, as given.
        flow_control: The flow control of the network, as given, if it was.
        noise: Background noise on the hosts' CPUs, as given.
    """

    specs: dict[str, CardManifest]
    overrides: list[str]
    modes: list[MessageMode]
    topology: str
    seed: int
    compiler: NotRequired[dict[str, ProgramManifest]]
    faults: NotRequired[str]
    flow_control: NotRequired[str]
    noise: NotRequired[str]


class ScheduleReport(TypedDict):
    """When the hosts of a schedule were done.

    Attributes:
        version: The version of nicety.
        file: The schedule.
        network: The network.
        threads: Threads that it ran in: one by LogGOPSim's rules, without a latency, and on cards with a capture.
        ranks: Ranks.
        events: Operations that were executed, and messages that arrived, as LogGOPSim counts them.
        operations: Operations that were executed.
        messages: Messages that arrived.
        finish_ns: The time at which each host's CPUs were done; on cards, at which its last operation ended.
        max_finish_ns: The latest of them.
        max_host: The first host that was done then.
        communicating_ns: How long each host had a message under way: a send from its beginning to its end, a receive
            once its message was sent.
        compat: The simulator whose rules were followed, if not nicety's own.
        computing_ns: Of a run on cards: how long each host computed.
        manifest: What reproduces a run on cards.
        mode: Of a run on cards: where its messages were executed.
        nic: The card, on which every message was executed.
        noise: Background noise on the hosts' CPUs by LogGOPS, as given, if it was.
        overlapped_ns: How long each host did both at once.
        parameters: The parameters of LogGOPS, as given.
        seed: The seed of the noise.
        stages: The critical path to the end of the last host, if it was asked for: its stages add up to the latest
            finish.
        unexecuted: Operations that never were: by LogGOPSim's rules those that wait for each other, or for the end of a
            send whose receive is of another class of size.
    """

    version: str
    file: str
    network: GoalNetwork
    threads: int
    ranks: int
    events: int
    operations: int
    messages: int
    finish_ns: list[float]
    max_finish_ns: float
    max_host: int
    communicating_ns: NotRequired[list[float]]
    compat: NotRequired[Compat]
    computing_ns: NotRequired[list[float]]
    manifest: NotRequired[ScheduleManifest]
    mode: NotRequired[MessageMode]
    nic: NotRequired[str]
    noise: NotRequired[str]
    overlapped_ns: NotRequired[list[float]]
    parameters: NotRequired[LogGopsParameters]
    seed: NotRequired[int]
    stages: NotRequired[list[Stage]]
    unexecuted: NotRequired[int]


class Traced(TypedDict):
    """A schedule that was made of traces.

    Attributes:
        output: The file.
        ranks: Ranks.
        calls: Calls in the traces.
        operations: Operations of the schedule.
        unsaid: Calls whose effect a trace does not say, by name: `MPI_Test` may have ended a request or not.
        backwards: Calls that began before the one before them ended, by the trace's clock.
    """

    output: str
    ranks: int
    calls: int
    operations: int
    unsaid: dict[str, int]
    backwards: int


class CompareOptions(NetworkOptions, total=False):
    """Run a schedule on several cards, and say what their hosts spend their time with.

    Attributes:
        nics: Cards to compare: names of specs, or paths of spec files.
        eager_bytes: S: the longest message that is sent at once, in bytes; the sender of a longer one waits for the
            receive.
        gap: g: the gap between the starts of messages at an interface.
        gap_per_byte: G: the gap for each byte behind a message's first, as a time or a bandwidth: 6ns, 400Gb/s.
        latency: L: the latency between hosts.
        modes: `host`: messages are executed by the library on the host; `card`: by handlers on the card. Default: host.
        network: loggops: compare with LogGOPS as well.
        overhead: o: the overhead of a CPU for a message.
        overhead_per_byte: O: the overhead for each byte behind a message's first.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        threads: Threads, of which each has a block of hosts; the result is the same. On cards each takes the memory of
            a run in one.
    """

    nics: Required[Annotated[Names, Option(example="spin-discrete")]]
    eager_bytes: Annotated[int | None, Option(default=65535, metavar="SIZE", flag="--S")]
    gap: Annotated[str | None, Option(default="1000ns", metavar="TIME", flag="--g")]
    gap_per_byte: Annotated[str | None, Option(default="6ns", metavar="GAP", flag="--G")]
    latency: Annotated[str | None, Option(default="2500ns", metavar="TIME", flag="--L")]
    modes: Annotated[Names | None, Option(metavar="M[,N]", example="card")]
    network: Annotated[GoalNetwork | None, Option(metavar="loggops")]
    overhead: Annotated[str | None, Option(default="1500ns", metavar="TIME", flag="--o")]
    overhead_per_byte: Annotated[str | None, Option(default="0", metavar="GAP", flag="--O")]
    overrides: Annotated[Overrides | None, Option()]
    threads: Annotated[int | None, Option(default=1, least=1, most=1024)]


class GenerateOptions(TypedDict, total=False):
    """Make the schedule of a communication pattern.

    Patterns: binomial-broadcast, binomial-reduce, dissemination, recursive-doubling, ring-allreduce, pairwise-alltoall,
    linear-alltoall, gather, scatter, halo-2d, halo-3d, pipeline, data-parallel, mixture-of-experts. The last two are
    training steps.

    Attributes:
        ranks: Ranks.
        size: Bytes: of the message, of the vector that is reduced, of a face, for each rank of an alltoall; of a
            training step's gradients, and of the tokens that a rank sends to all experts together.
        compute: The time of a calculation, in patterns that have them, as in 20us: of adding two vectors, of a stage,
            or of a layer.
        iterations: How often each rank does it, one time behind the other.
        layers: Layers of a training step.
    """

    ranks: Required[Annotated[int, Option(least=1, most=4294967294)]]
    size: Required[Annotated[int, Option(metavar="SIZE")]]
    compute: Annotated[str | None, Option(default="0", metavar="TIME")]
    iterations: Annotated[int | None, Option(default=1, least=1, most=1000000)]
    layers: Annotated[int | None, Option(default=4, least=1, most=10000)]


class ScheduleOptions(NetworkOptions, total=False):
    """Run a schedule, and say when each host is done.

    The network is LogGOPS, or hosts with a card where one is named.

    Attributes:
        breakdown: Of a run on cards: also give the critical path to the last host's end by stage, which takes more
            memory and time.
        compat: The rules of LogGOPSim, oddities included, instead of nicety's own.
        eager_bytes: S: the longest message that is sent at once, in bytes; the sender of a longer one waits for the
            receive.
        gap: g: the gap between the starts of messages at an interface.
        gap_per_byte: G: the gap for each byte behind a message's first, as a time or a bandwidth: 6ns, 400Gb/s.
        latency: L: the latency between hosts.
        mode: Of a run on cards: messages are executed by the library on the host, or by handlers on the card. Default:
            host.
        network: The network: loggops, or packets between cards. Default: packets if a card is named.
        nic: The card of all hosts, by name or spec file; every message is executed by it, over a network of packets.
        overhead: o: the overhead of a CPU for a message.
        overhead_per_byte: O: the overhead for each byte behind a message's first.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        threads: Threads, of which each has a block of hosts; the result is the same. On cards each takes the memory of
            a run in one.
    """

    breakdown: Annotated[bool | None, Option(default=False)]
    compat: Annotated[Compat | None, Option(metavar="loggopsim")]
    eager_bytes: Annotated[int | None, Option(default=65535, metavar="SIZE", flag="--S")]
    gap: Annotated[str | None, Option(default="1000ns", metavar="TIME", flag="--g")]
    gap_per_byte: Annotated[str | None, Option(default="6ns", metavar="GAP", flag="--G")]
    latency: Annotated[str | None, Option(default="2500ns", metavar="TIME", flag="--L")]
    mode: Annotated[MessageMode | None, Option(metavar="host|card")]
    network: Annotated[GoalNetwork | None, Option(metavar="loggops|packets")]
    nic: Annotated[Place | None, Option(metavar="NIC")]
    overhead: Annotated[str | None, Option(default="1500ns", metavar="TIME", flag="--o")]
    overhead_per_byte: Annotated[str | None, Option(default="0", metavar="GAP", flag="--O")]
    overrides: Annotated[Overrides | None, Option()]
    threads: Annotated[int | None, Option(default=1, least=1, most=1024)]


class ExecGoal(TypedDict):
    """A schedule of what a program did.

    Attributes:
        file: The file.
        operations: Operations of all ranks.
        unreceived: Messages that nobody had received at the end, and which are left out.
        accesses: Accesses to registered memory, which a schedule does not have.
    """

    file: str
    operations: int
    unreceived: int
    accesses: int


class ExecOffloaded(TypedDict):
    """What became of the calls of a collective operation, of all processes.

    Attributes:
        name: The operation.
        offloaded_calls: Calls that the cards executed.
        offloaded_bytes: Bytes of their buffers.
        passed_calls: Calls that were left to MPI.
        passed: Why they were.
    """

    name: str
    offloaded_calls: int
    offloaded_bytes: int
    passed_calls: int
    passed: list[ExecPassed]


class ExecPassed(TypedDict):
    """Calls that were left to MPI for one reason.

    Attributes:
        reason: communicator: not of all ranks in their order; datatype, operator: not one that handlers reduce; length:
            longer than the card's memory for it; empty: no bytes; arguments: invalid; alone: one process; set-up: the
            card had no room, or MPI was not started by MPI_Init; cost: MPI is quicker, as a trial before the run has
            shown.
        calls: The calls.
    """

    reason: str
    calls: int


class ExecRank(TypedDict):
    """What one process did.

    Attributes:
        rank: Its rank.
        finish_ns: When it closed the network.
        sends: Messages that it sent, and its accesses to registered memory.
        sent_bytes: Bytes of these.
        receives: Messages that it received.
        calls: Its calls of the network, polls included.
        computing_ns: Of the time until it closed the network, that between its calls: what was measured, and what
            clocks cost.
        sleeping_ns: That for which it slept.
        calling_ns: That of its calls, but for looks at queues and waits.
        looking_ns: That of looks at queues.
        waiting_ns: That for which it waited for what the network brings.
        outside_ns: That for which it waited for something that is not simulated.
        offload: What it did of what was to be offloaded, if anything was.
        signal: The signal that ended its process after it had closed the network, if one did, where the system tells.
    """

    rank: int
    finish_ns: float
    sends: int
    sent_bytes: int
    receives: int
    calls: int
    computing_ns: float
    sleeping_ns: float
    calling_ns: float
    looking_ns: float
    waiting_ns: float
    outside_ns: float
    offload: NotRequired[ExecRankOffload]
    signal: NotRequired[int]


class ExecRankOffload(TypedDict):
    """What one process did of what was to be offloaded.

    Attributes:
        set_up_ns: The part of MPI_Init in which handlers and match entries were put on the card, and all ranks agreed.
        offloaded_calls: Collective calls that the cards executed.
        passed_calls: Those that were left to MPI.
    """

    set_up_ns: float
    offloaded_calls: int
    passed_calls: int


class ExecReport(TypedDict):
    """What a program's processes did.

    Attributes:
        version: The version of nicety.
        program: The program, and its arguments.
        nic: The card of all hosts.
        manifest: What reproduces the run.
        compute: What the time of a process's CPU cost.
        launcher: What started the processes.
        ranks_per_node: How many processes were on each host.
        status: The status that the program, or what started it, ended with: of several the first that is not 0.
        ranks: The processes, by rank.
        max_finish_ns: When the last process closed the network.
        goal: What was written of what the program did, if that was asked for.
        offload: What became of collective operations that were to be offloaded, if any were.
    """

    version: str
    program: list[str]
    nic: str
    manifest: ScheduleManifest
    compute: str
    launcher: Launcher
    ranks_per_node: int
    status: int
    ranks: list[ExecRank]
    max_finish_ns: float
    goal: NotRequired[ExecGoal]
    offload: NotRequired[list[ExecOffloaded]]


Launcher = Literal["mpich", "openmpi", "none"]
"""How the processes of a program are started."""


class ExecOptions(NetworkOptions, total=False):
    """Run a program on simulated hosts: each of its processes is one.

    Attributes:
        nic: The card of all hosts, by name or spec file.
        clock_cost: What it costs to read a clock.
        compute: What the time of a process's CPU costs: none; measured, as it is; or a factor of that.
        goal: A file for a schedule of what the program did, `.bin` for the binary format.
        offload: Collective operations of MPI that cards execute by handlers: bcast, barrier, allreduce (where MPI is
            not quicker), or allreduce=always.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        patience: Looks at empty queues, by all processes and with nothing else between, after which they are taken to
            wait for each other.
        poll_cost: What it costs to look at an empty completion queue.
        ranks_per_node: How many processes are on each host: they share its card, its bus and its CPUs.
    """

    nic: Required[Annotated[Place, Option(metavar="NIC")]]
    clock_cost: Annotated[str | None, Option(default="25ns", metavar="TIME")]
    compute: Annotated[str | None, Option(default="none", metavar="none|measured|SCALE")]
    goal: Annotated[Place | None, Option(metavar="FILE")]
    offload: Annotated[Names | None, Option(metavar="NAMES", example="bcast,barrier")]
    overrides: Annotated[Overrides | None, Option()]
    patience: Annotated[int | None, Option(default=100000, least=1)]
    poll_cost: Annotated[str | None, Option(default="25ns", metavar="TIME")]
    ranks_per_node: Annotated[int | None, Option(default=1, least=1, most=8, metavar="K")]
