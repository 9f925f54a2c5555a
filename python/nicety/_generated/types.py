"""Requests and reports of benchmarks and applications: plain dicts, as in JSON.

Generated from the types in Rust by
`NICETY_WRITE=1 cargo test --locked -p nicety-bench --test all -- python_types`.
"""

from typing import Annotated, Literal, NotRequired, Required, TypedDict

from nicety.shared.checks import U32, Expressions, Faults, Names, Numbers, Overrides, Place
from nicety.shared.options import Option, shared


@shared
class NetworkOptions(TypedDict, total=False):
    """The network of a run, and what is random in it.

    Attributes:
        faults: Faults of the network: a TOML file, or a line such as
            loss=1e-3,corrupt=1e-4,duplicate=1e-3,reorder=1e-3:5us,burst=4,seed=7,fail=hosts.1@2ms.
        flow_control: Flow control of switches: `credits`; `none`: switches drop packets; or `pfc`: they pause senders.
            Options as in none,buffer=1Mi,per=shared,alpha=1/2 or
            pfc,buffer=256Ki,xoff=128Ki,xon=120Ki,headroom=40Ki,quanta=65535. Default: credits.
        noise: Background noise on the hosts' CPUs, as in 1ms,25us; add ,fixed for a fixed period, and ,rank=N for one
            host; or a file with a trace of it.
        seed: Seed of all random streams: the same seed gives the same report to the last byte.
        topology: Topology of the network: `pair`; `star`: hosts around a switch; `fat-tree:PORTS`, as in fat-tree:36,
            or `fat-tree:PORTS:LEVELS:ROUTING`; `torus:XxYxZ`, as in torus:4x4x4; or `ring:SWITCHES`. The default
            depends on the number of hosts.
    """

    faults: Annotated[Faults | None, Option(metavar="FILE.toml|LINE")]
    flow_control: Annotated[str | None, Option(metavar="credits|none|pfc[,KEY=VALUE]")]
    noise: Annotated[str | None, Option(metavar="PERIOD,DURATION")]
    seed: Annotated[int | None, Option(default=1)]
    topology: Annotated[str | None, Option(metavar="NAME")]


Addressing = Literal["virtual", "physical"]
"""The kind of addresses in puts."""


class Burst(TypedDict):
    """A run with a burst of the first packets.

    Attributes:
        packets: Packets offered.
        burst_packets: Packets of the burst: the first ones, at the speed of the wire.
        departure_fraction: Departure rate of the later half of all packets, over the traffic's rate. It is 1 as soon as
            a packet behind the burst leaves at its due time. With losses, the fraction of packets behind the burst that
            is not lost. None where the run was stopped.
        stopped: The error that stopped the run, if any.
    """

    packets: int
    burst_packets: int
    departure_fraction: float | None
    stopped: str | None


class CardManifest(TypedDict):
    """The identification of a card in a report's manifest.

    Attributes:
        title: The card's title.
        spec_hash: A hash over the resolved values of all parameters.
    """

    title: str
    spec_hash: str


Part = Literal[
    "handler cores",
    "instruction issue",
    "matching unit",
    "link",
    "bus to card",
    "bus to host",
    "send engine",
    "packet writer",
    "cluster DMA",
    "packet sender",
    "command engine",
    "memory channel",
    "packets in flight",
    "packet slots",
    "lock",
    "contended word",
    "memory bank",
    "cache misses",
    "host",
    "packet buffer",
    "message contexts",
    "waiting",
]
"""A part of a card or its host: a bottleneck, or one with headroom.

`lock`: a word that one handler at a time holds. `contended word`: a word that handlers change only if it is unchanged.
`cache misses`: handler cores wait for lines, and would keep up without. `packet buffer`: no part has too much load, and
the sender waits for credits, or packets are lost. `waiting`: no part has too much load, and handlers wait for one
another.
"""


class CardPart(TypedDict):
    """A part of a card at the line rate.

    Attributes:
        part: The part.
        name: The name among several: a lock's word and the line that acquires it, a memory's bank, the level behind the
            caches, or a cluster. Also the key of the spec with the number of places, or a CPU of the host.
        load: Its load: the fraction of its capacity that packets at the line rate need.
        headroom: Its free capacity, as a fraction; negative if capacity is missing.
        capacity_fraction: The sustainable rate of the part, over the line rate; none if packets do not use it.
    """

    part: Part
    name: str | None
    load: float
    headroom: float
    capacity_fraction: float | None


ChannelBenchmark = Literal["channel-latency", "channel-bandwidth"]
"""A benchmark of channels."""


class SourceManifest(TypedDict):
    """A source file of the user in a report's manifest.

    Attributes:
        source: The path of the file.
        sha256: The SHA-256 of the file.
    """

    source: str
    sha256: str


class ProgramManifest(TypedDict):
    """A compiled program in a report's manifest.

    It names either a single source file, or all source files.

    Attributes:
        version: The compiler's name and version.
        flags: The compiler's flags.
        sha256: The SHA-256 of that file.
        source: The path of the single source file.
        sources: The source files, if the user named them.
    """

    version: str
    flags: list[str]
    sha256: NotRequired[str]
    source: NotRequired[str]
    sources: NotRequired[list[SourceManifest]]


class ChannelManifest(TypedDict):
    """The inputs that reproduce a report.

    Attributes:
        specs: The cards, by name.
        overrides: Overrides of `--set`, as given.
        noise: Background noise on the host's CPUs, as given.
        compiler: The programs that ran on cards, by card and mode. The caller compiles the programs and fills in this
            field.
    """

    specs: dict[str, CardManifest]
    overrides: list[str]
    noise: str | None
    compiler: NotRequired[dict[str, ProgramManifest]]


class Stage(TypedDict):
    """A stage of a latency.

    Attributes:
        stage: The stage's name.
        ns: The mean time in this stage, in nanoseconds.
    """

    stage: str
    ns: float


class ChannelRow(TypedDict):
    """One measurement: a card, a mode, a direction and a message size.

    The benchmark determines which figures a row has.

    Attributes:
        nic: The card.
        mode: The kind of messages: `direct` or `indirect`.
        direction: The direction: `host-to-card` or `card-to-host`.
        size_bytes: Message size in bytes. For the bandwidth of direct messages, it is the size of a payload in messages
            of 56 bytes. A process sends at most 500 of these messages, because they are all alike.
        memory: The card's memory for the messages. For indirect messages of a throughput it is the requested memory,
            for those of a latency that fit it `ctm`. It is `emem` otherwise.
        verified: Whether the receiving end checked every byte and found it correct.
        bandwidth_bytes_per_s: Mean throughput of all processes over the runs.
        iterations: Number of messages measured individually.
        latency_ns: Mean latency of a message, from the call to its return with the acknowledgement of the other end.
        max_ns: Maximum latency.
        message_bytes: Bytes of each message.
        messages: Number of messages of all processes in a run.
        min_ns: Minimum latency.
        p50_ns: Median latency.
        p999_ns: 99.9th percentile of the latency.
        p99_ns: 99th percentile of the latency.
        payload_bytes: Bytes of these messages.
        processes: Number of processes that move the payload together. Each has a thread of the host.
        runs: Number of runs. They differ in the begin times of threads and in noise.
        stages: The stages of the latency. Their sum is the mean latency.
        stddev_bytes_per_s: Standard deviation of the throughput over the runs. A single run has none.
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


class CheckedFrame(TypedDict):
    """A function of a call stack.

    Attributes:
        function: Its name, if known.
        file: The source file, without its folder.
        line: The line, from 1 on.
    """

    function: str | None
    file: str | None
    line: int | None


class ContextRow(TypedDict):
    """The result for a number of contexts on a card.

    Attributes:
        nic: The card.
        contexts: Number of contexts that make updates.
        updates: Total number of updates of these contexts, on one microengine.
        cycles_total: Cycles from the start of the first context to the end of the last one. The other contexts first
            wait for the first one.
        cycles_computing: Cycles of `cycles_total` in which any context computed.
        cycles_asleep: Cycles of `cycles_total` in which all contexts with work left waited for memory.
        cycles_switching: Cycles of `cycles_total` in which the microengine switched to another context.
        context_cycles_asleep: Cycles in which contexts waited for memory, summed over the contexts.
        context_cycles_ready: Cycles in which contexts were ready while another one ran, summed over the contexts.
        time_ns: `cycles_total` in nanoseconds.
        updates_per_s: Updates per second of the whole card in steady state, with this number of contexts on every
            microengine. Each update makes two memory references.
        updates_per_s_bits_set: Updates per second if all bits are already set. Each update then makes one memory
            reference.
        line_rate_packets_per_s: Number of 64-byte packets per second for which the card can make one update each.
        line_rate_bits_per_s: Bit rate of an Ethernet link that carries these packets. Each takes 84 bytes.
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
    updates_per_s_bits_set: float
    line_rate_packets_per_s: float
    line_rate_bits_per_s: float


class CpuFigures(TypedDict):
    """The time of the climbs on the CPUs of this machine.

    This is real time, so it differs from run to run.

    Attributes:
        processor: The name of the processor, if the system gives it.
        threads: Number of threads that made climbs.
        wall_time_s: Wall-clock time in seconds.
        climbs_per_s: Climbs per second.
        length: The length of the shortest tour, which equals the card's.
    """

    processor: str | None
    threads: int
    wall_time_s: float
    climbs_per_s: float
    length: int


class Crossover(TypedDict):
    """The crossover of a card: the size from which on translation takes no longer than a copy.

    Attributes:
        nic: The card.
        crossover_bytes: The smallest size from which on translation takes no longer than a copy, between the smallest
            and the largest measured size. None if a copy is faster at the largest size.
    """

    nic: str
    crossover_bytes: int | None


class Damage(TypedDict):
    """The first damage in a capture.

    Attributes:
        packet: The number of the damaged packet, counted from 1.
        byte: The offset of the damage in the file, in bytes.
        text: A description of the damage.
    """

    packet: int
    byte: int
    text: str


class WaitingLine(TypedDict):
    """A line of a handler's source that waits for banks.

    Attributes:
        line: The source line.
        waits: Number of its accesses that waited.
        wait_cycles: Cycles of these waits, per packet.
    """

    line: str
    waits: int
    wait_cycles: float


class StaleLine(TypedDict):
    """A line of a handler's source with accesses that would have read older bytes on the card.

    Attributes:
        line: The source line.
        accesses: Number of its stale accesses.
    """

    line: str
    accesses: int


class DataCache(TypedDict):
    """The data caches before a level of memory, over the whole run.

    Accesses are hits, misses or passed.

    Attributes:
        level: The level behind them, as the card's spec names it.
        accesses: Accesses per packet.
        hits: Loads and stores per packet that hit.
        misses: Loads and stores per packet that missed.
        bypasses: Atomic operations per packet, which bypass the caches.
        miss_rate: Misses over loads and stores; none without any.
        writebacks: Lines per packet written to memory, to make room or for an atomic operation.
        cache_to_cache_transfers: Lines per packet that another cache had changed, and handed over.
        invalidations: Accesses per packet that invalidated lines of other caches.
        wait_cycles: Additional cycles per packet of loads and stores over those of hits.
        load: The fraction of all processors' time that these cycles take at line rate.
        lines: The source lines with the longest waits; the first few.
        stale_accesses: Accesses of the whole run to words that another cache had changed, on a card without cache
            coherence. Handlers read the newest bytes here, but would not on the card.
        stale_lines: The source lines with the most stale accesses; the first few.
    """

    level: str
    accesses: float
    hits: float
    misses: float
    bypasses: float
    miss_rate: float | None
    writebacks: float
    cache_to_cache_transfers: float
    invalidations: float
    wait_cycles: float
    load: float
    lines: list[WaitingLine]
    stale_accesses: int
    stale_lines: list[StaleLine]


Distances = Literal["root", "table"]
"""The way in which a climber finds the distance of two cities."""


class XdpPart(TypedDict):
    """The load of a part of host or card.

    Attributes:
        part: The part, such as `CPU 3`.
        load: The fraction of time in which it was busy.
    """

    part: str
    load: float


class XdpLatency(TypedDict):
    """Latency of frames.

    It is the time from a frame's last byte at the card until its verdict is carried out. Then it is dropped, on the
    wire, or with the protocols or a queue.

    Attributes:
        mean_ns: Mean.
        p50_ns: Median.
        p99_ns: 99th percentile.
        p999_ns: 99.9th percentile.
        max_ns: Maximum.
    """

    mean_ns: float
    p50_ns: float
    p99_ns: float
    p999_ns: float
    max_ns: float


class EbpfCoreRow(TypedDict):
    """A program on a core that executes eBPF itself.

    Attributes:
        nic: The card.
        program: The program.
        traffic: The traffic.
        offered: Frames of the traffic.
        offered_bytes: Their bytes, without check sequences.
        offered_pps: Their rate, in frames per second.
        lost: Frames that found the input queue full at that rate.
        taken_pps: Frames with a verdict per second, at the traffic's rate.
        verdicts: Frames by verdict at the traffic's rate.
        lossless_pps: The highest rate without loss, at most the traffic's; none if every rate loses frames. Latency and
            loads are of the run at this rate, or else at the traffic's.
        lanes: Lanes of the core.
        slots: Instructions of eBPF; a 64-bit constant counts as two.
        rows: Rows of the program.
        slots_per_row: Instructions of the program for each of its rows.
        rows_per_frame: Rows that run for a frame, mean.
        instructions_per_frame: Instructions of eBPF that a frame takes one after another, mean.
        instructions_per_row: Those for each row that runs.
        operations_per_row: Operations in lanes for each row that runs.
        cycles_mean: Cycles of the core for a frame, mean.
        waiting_cycles_mean: Of those, cycles in which the core waits for bytes of the frame.
        helper_cycles_mean: Of those, cycles of helpers beside their rows.
        latency: Latency from a frame's last byte on the wire to its verdict, or to its last byte out of the core.
        bottleneck: The part with the highest load.
        parts: Loads of all parts.
    """

    nic: str
    program: str
    traffic: str
    offered: int
    offered_bytes: int
    offered_pps: float
    lost: int
    taken_pps: float
    verdicts: dict[str, int]
    lossless_pps: float | None
    lanes: int
    slots: int
    rows: int
    slots_per_row: float
    rows_per_frame: float
    instructions_per_frame: float
    instructions_per_row: float
    operations_per_row: float
    cycles_mean: float
    waiting_cycles_mean: float
    helper_cycles_mean: float
    latency: XdpLatency
    bottleneck: XdpPart
    parts: list[XdpPart]


class GroupUsage(TypedDict):
    """The use of CPUs by one group of kernel functions.

    Attributes:
        group: The name of the group.
        ns_per_packet: CPU time per packet.
        instructions_per_packet: Instructions per packet.
        l1_misses_per_packet: Loads per packet that missed a core's first-level cache.
        shared_cache_misses_per_packet: Loads per packet that also missed the shared cache.
        tlb_misses_per_packet: Misses per packet in the data TLBs of the cores.
        code_tlb_misses_per_packet: Misses per packet in the code TLBs of the cores.
    """

    group: str
    ns_per_packet: float
    instructions_per_packet: float
    l1_misses_per_packet: float
    shared_cache_misses_per_packet: float
    tlb_misses_per_packet: float
    code_tlb_misses_per_packet: float


class NetworkPortReport(TypedDict):
    """The counters of a port of a host or switch, in a network without credit flow control.

    Attributes:
        at: The host or switch with the port, such as `hosts.1` or `switch.0`.
        port: The number of the port on that host or switch.
        peer: The host or switch at the other end of the port's link.
        dropped_packets: Packets dropped at this port.
        dropped_bytes: Bytes of the dropped packets on the wire.
        reason: The reason for which this port drops packets. `queue full`: its output queue was full. `no headroom`: a
            packet arrived at the port and found no buffer, although its sender was paused. `packet buffer full`: the
            buffer of a card was full.
        peak_bytes: Maximum bytes in the port's output queue. In a network with pauses, maximum buffered bytes of
            packets that arrived at this port.
        pauses_sent: Pause frames sent by this port, including those that end a pause.
        pauses_received: Pause frames received by this port.
        paused_ps: Virtual time for which the port was paused, in picoseconds.
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


class ExchangeRow(TypedDict):
    """The result for a card and a number of connections.

    Attributes:
        nic: The card.
        connections: Number of connections. Each has a client.
        size_bytes: Bytes of a request.
        reply_bytes: Bytes of a reply.
        think_ns: Pause of a client between a reply and its next request.
        requests: Number of requests with a reply in the measured time.
        requests_per_s: `requests` per second.
        latency_ns: Mean latency, from the client's call that sends a request until the client has the reply. The
            following fields are statistics of the same latency.
        min_ns: Minimum latency.
        p50_ns: Median latency.
        p99_ns: 99th percentile of the latency, by nearest rank.
        p999_ns: 99.9th percentile of the latency.
        max_ns: Maximum latency.
        unanswered_requests: Number of requests without a reply at the end of the measured time. They are not in the
            figures above.
        cpu_ns_per_request: CPU time of the server for each request.
        cpus: Number of CPUs that the server's operating system uses.
        cpu_utilisation: Utilisation of all CPUs together, as a fraction.
        cpu_ns_per_packet: CPU time per packet.
        instructions_per_packet: Instructions per packet.
        l1_misses_per_packet: Loads per packet that missed a core's first-level cache.
        shared_cache_misses_per_packet: Loads per packet that also missed the shared cache.
        tlb_misses_per_packet: Misses per packet in the data TLBs of the cores.
        code_tlb_misses_per_packet: Misses per packet in the code TLBs of the cores.
        breakdown: CPU time per packet, by function group.
        context_switches_per_packet: Context switches per packet.
        cross_calls_per_packet: Cross-calls (inter-processor interrupts) per packet.
        interrupts_per_packet: Interrupts per packet.
        interrupt_ns: CPU time of an interrupt of a receive channel before its handler takes frames. It consists of the
            entry and of register reads.
        retransmissions: Number of segments that rank 0 and its peer retransmitted.
        dropped: Number of frames that rank 0 dropped: in its card, its kernel threads and its protocols.
        packets: Number of packets: frames that rank 0's card received, or sent if rank 0 transmits.
        verified: Whether every received byte was checked and correct.
        ports: The ports of the network over the whole run, if the flow control does not use credits.
        unanswered_max_ns: Maximum latency of the unanswered requests.
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
    unanswered_requests: int
    cpu_ns_per_request: float
    cpus: int
    cpu_utilisation: float
    cpu_ns_per_packet: float
    instructions_per_packet: float
    l1_misses_per_packet: float
    shared_cache_misses_per_packet: float
    tlb_misses_per_packet: float
    code_tlb_misses_per_packet: float
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
    unanswered_max_ns: NotRequired[float]


class FailedPoint(TypedDict):
    """A point of a benchmark that has no row, because its run failed.

    Attributes:
        point: The card and the point.
        kind: The name of the Python exception for the error, such as `RunError` or `Deadlock`. `KeyboardInterrupt`
            means that the benchmark was interrupted at this point.
        text: The error.
    """

    point: str
    kind: str
    text: str


class FairnessRow(TypedDict):
    """The result for a number of processes that send at the same time, each to its own process on the other host.

    Attributes:
        nic: The card.
        processes: Number of sending processes. The number of receiving processes is the same.
        size_bytes: Bytes of a message.
        messages: Number of messages of each process.
        bandwidth_bytes_per_s: Payload bytes per second of all processes together, until the last process has received
            its last message.
        process_mean_bytes_per_s: Mean throughput over the processes. The throughput of a process is measured until it
            has received its last message.
        process_min_bytes_per_s: Minimum throughput of a process.
        process_max_bytes_per_s: Maximum throughput of a process.
        jain_index: Jain's index of the processes' throughputs: 1 if all are equal, 1/n if one of n gets everything.
        verified: Whether the receiving end checked every byte and found it correct.
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


class FindingSide(TypedDict):
    """A place of a finding: a run at an instruction.

    Attributes:
        handler: The kind of the handler.
        packet: The number of the packet in the order of arrival at handlers, from 0 on. None for a handler without one.
        process: The name of the process and its context. None for a handler.
        action: The access or operation, as a phrase.
        pc: The address of the instruction.
        place: The file and line of the author's source.
        stack: The call stack, innermost first, functions inlined by the compiler included.
    """

    handler: str
    packet: int | None
    process: str | None
    action: str
    pc: int
    place: CheckedFrame
    stack: list[CheckedFrame]


FindingKind = Literal[
    "uninitialised",
    "out-of-bounds",
    "write-while-sending",
    "use-after-free",
    "race",
    "unlock-without-lock",
    "double-lock",
    "lock-kept",
    "lock-order",
    "buffer-reuse",
    "long-send",
    "return-code",
    "division-by-zero",
    "trap",
]
"""The kind of a finding."""


class Finding(TypedDict):
    """A defect of a program, once for each place.

    Attributes:
        kind: Its kind.
        at: The place at which it was found.
        other: The other place: of a race, of a transfer, of another order of locks.
        advice: The correction.
        times: The number of times it was found.
    """

    kind: FindingKind
    at: FindingSide
    other: FindingSide | None
    advice: str
    times: int


class FindingCapture(TypedDict):
    """A capture with the fewest packets that replay a finding.

    Attributes:
        kind: The kind of the finding.
        place: The place of the finding.
        file: The file.
        packets: Number of packets.
    """

    kind: FindingKind
    place: CheckedFrame
    file: str
    packets: int


class Flow(TypedDict):
    """The figures of one direction of a pattern with several directions.

    Attributes:
        source: The sending rank.
        target: The receiving rank.
        bandwidth_bytes_per_s: Payload bytes per second.
        latency_ns: Mean of half a round trip over the measured iterations.
        max_ns: Maximum of the iterations.
        messages_per_s: Messages per second.
        min_ns: Minimum of the iterations. An iteration is half a round trip, or a window.
    """

    source: int
    target: int
    bandwidth_bytes_per_s: NotRequired[float]
    latency_ns: NotRequired[float]
    max_ns: NotRequired[float]
    messages_per_s: NotRequired[float]
    min_ns: NotRequired[float]


class XdpAborted(TypedDict):
    """Frames with `XDP_ABORTED` at a place of a program.

    Attributes:
        program: The program.
        place: The last line in front of its end, as `firewall.c:31`; without lines in the object, the instruction.
        frames: Frames.
    """

    program: str
    place: str
    frames: int


class XdpFigures(TypedDict):
    """The verdicts and maps of an XDP program on a card.

    Attributes:
        program: The program.
        ebpf_instructions: Instructions of eBPF, with those of its functions.
        code_bytes: Code and constants in the card's program memory, with the runtime.
        map_bytes: Bytes of each map and data section in the card's memory. A section of constants takes none there.
        verdicts: Frames by verdict, in the first run.
        aborted_at: Frames with `XDP_ABORTED`, by program and line.
        invalid: Frames with a result that is no verdict. Like those with `XDP_ABORTED`, the card drops them.
        redirects_failed: Frames with `XDP_REDIRECT` that had no destination.
        too_long: Frames that the program made longer than the card sends. The card drops them.
        updates_full: Updates that found a map full, by map. Maps without any are left out.
    """

    program: str
    ebpf_instructions: int
    code_bytes: int
    map_bytes: dict[str, int]
    verdicts: dict[str, int]
    aborted_at: list[XdpAborted]
    invalid: int
    redirects_failed: int
    too_long: int
    updates_full: dict[str, int]


class FlowProcessorRow(TypedDict):
    """A program on the microengines of a network flow processor.

    Attributes:
        nic: The card.
        traffic: The traffic.
        offered: Frames of the traffic.
        offered_bytes: Their bytes, without check sequences.
        offered_pps: Their rate, in frames per second.
        lost: Frames that found no buffer and a full queue at that rate.
        taken_pps: Frames with a verdict per second, at the traffic's rate.
        verdicts: Frames by verdict at the traffic's rate. Other numbers and redirects count as `XDP_ABORTED`.
        lossless_pps: The highest rate without loss, at most the traffic's; none if every rate loses frames. Latency and
            loads are of the run at this rate, or else at the traffic's.
        microengines: Microengines that run the program.
        contexts: Contexts that run the program.
        instructions_per_frame: Instructions of a context for a frame, with the firmware's path and helpers, mean.
        cycles_mean: Cycles in which a context computes for a frame, mean.
        references_per_frame: References of a context to memories outside the microengine for a frame, mean.
        latency: Latency from a frame's last byte on the wire to its end.
        bottleneck: The part with the highest load.
        parts: Loads of all parts. Those of microengines and contexts are means, those of CLS and CTM of the busiest
            island.
        xdp: Figures of the program. The caller, which has the object, sets them.
    """

    nic: str
    traffic: str
    offered: int
    offered_bytes: int
    offered_pps: float
    lost: int
    taken_pps: float
    verdicts: dict[str, int]
    lossless_pps: float | None
    microengines: int
    contexts: int
    instructions_per_frame: float
    cycles_mean: float
    references_per_frame: float
    latency: XdpLatency
    bottleneck: XdpPart
    parts: list[XdpPart]
    xdp: NotRequired[XdpFigures]


class GpuFigures(TypedDict):
    """The time of the climbs on a graphics processor, by the clock of that processor.

    It does not include compilation and data transfer.

    Attributes:
        processor: The name of the device.
        device_time_s: The measured time in seconds.
        climbs_per_s: Climbs per second.
        length: The length of the shortest tour, which equals the card's.
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
        grid: The grid of ranks, such as 4x4x2.
        topology: The topology.
        noise: Background noise on the hosts' CPUs, as given.
        faults: The faults of the network, as given.
        flow_control: The flow control of the network, as given.
    """

    specs: dict[str, CardManifest]
    overrides: list[str]
    grid: str
    topology: str
    noise: str | None
    faults: NotRequired[str]
    flow_control: NotRequired[str]


class GridRow(TypedDict):
    """The result for a card and a size.

    The size is that of a face in a halo exchange, or of the vector in an all-reduce.

    Attributes:
        nic: The card.
        nodes: Number of hosts.
        size_bytes: Bytes of a face, or of the vector.
        iterations: Number of measured iterations.
        time_ns: Mean duration of an iteration. In a halo exchange, the mean is over iterations and ranks, and no
            barrier separates iterations. In an all-reduce, the mean is over iterations. Each lasts from a barrier until
            the last rank has finished.
        min_ns: Duration of the shortest iteration.
        p50_ns: Median duration of an iteration.
        p99_ns: 99th percentile of the duration of an iteration, by nearest rank.
        max_ns: Duration of the longest iteration.
        sent_bytes: Payload bytes that the busiest sender sends in an iteration.
        sent_bytes_per_s: `sent_bytes` per second of the mean duration.
        hops_mean: Mean number of links that a packet crosses. Links to switches count. In a torus, the links between
            hosts and their routers do not.
        verified: Whether every value was compared with the expected one and was correct.
        algorithm_bytes_per_s: All-reduce: bytes of the vector divided by the mean duration (algorithm bandwidth).
        faces: Halo exchange: number of faces of a rank. Each has a neighbour.
        lower_bound_ns: All-reduce: the time in which a node's link carries 2 (n - 1) / n of the vector's bytes. Every
            algorithm must send this number of bytes from each of n nodes.
        ports: The ports of the network over the whole run, if the flow control does not use credits.
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


class Growth(TypedDict):
    """Handler core time that grew during the run.

    Attributes:
        first_ns: Time per packet in the first quarter of the packets.
        last_ns: Time per packet in the last quarter; or in the last packets, after a jump within that quarter.
        mean_ns: Time per packet, the mean.
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
        cycles_p99: 99th percentile of the cycles, by nearest rank.
        cycles_max: Maximum cycles.
        instructions_mean: Mean instructions.
        instructions_p99: 99th percentile of the instructions.
        instructions_max: Maximum instructions.
        time_ns_mean: Mean time on its processor.
        time_ns_p99: 99th percentile of that time.
        queued_ns_mean: Mean wait for a processor when ready.
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
    """Number of lines that handlers printed in a benchmark, over all runs and cards.

    Attributes:
        printed: Lines that were shown. At most 1000 lines of each card in a run are shown.
        suppressed: Lines that were not shown.
    """

    printed: int
    suppressed: int


class MemoryLevel(TypedDict):
    """A level of memory in which processors wait for one another, over the whole run.

    Attributes:
        level: The level, as the card's spec names it.
        accesses: Accesses per packet, to bytes of any kind.
        wait_cycles: Cycles per packet of their waits for banks, in addition to the latency.
        busiest: The busiest bank, or the level's unit for atomic operations.
        busiest_accesses: Its accesses per packet, including lines of code.
        busiest_wait_cycles: Cycles per packet for which processors waited for it.
        load: Its load at line rate.
        max_packets_per_s: Maximum packets per second with any number of handler cores, by the time for which a packet
            occupies it.
        lines: The source lines with the longest waits for the level; the first few.
    """

    level: str
    accesses: float
    wait_cycles: float
    busiest: str
    busiest_accesses: float
    busiest_wait_cycles: float
    load: float
    max_packets_per_s: float
    lines: list[WaitingLine]


class HandlerMemory(TypedDict):
    """The memory of handlers, over the whole run.

    Attributes:
        ideal: Pieces of memory that are in no level, without waits of one access for another.
        ideal_cycles: The section of the card's spec with the cycles of an access to them: `hpu.cycles`, or
            `hpu.overlap` where instructions overlap.
        uncontended: Levels that processors share without waits of one access for another, by the card's spec.
        accesses: Accesses of handlers per packet: loads, stores, atomic operations and commands.
        shared_accesses: Accesses per packet to levels in which processors wait for one another.
        levels: Levels in which processors wait for one another.
        caches: Levels behind data caches.
        instruction_cache_fills: Lines per packet that filled instruction caches.
        fetch_wait_cycles: Cycles per packet for which handlers waited for their code.
    """

    ideal: list[str]
    ideal_cycles: str
    uncontended: list[str]
    accesses: float
    shared_accesses: float
    levels: list[MemoryLevel]
    caches: list[DataCache]
    instruction_cache_fills: float
    fetch_wait_cycles: float


class HostMemory(TypedDict):
    """Bytes that were read from and written to the memory of one host in the measured iterations.

    Attributes:
        node: The rank of the host.
        read_bytes: Bytes read.
        written_bytes: Bytes written.
    """

    node: int
    read_bytes: int
    written_bytes: int


class Loads(TypedDict):
    """The load of each resource at line rate, over the whole run.

    Above 1 the resource cannot keep up.

    Attributes:
        hpus: The handler cores, over the measured messages.
        instruction_issue: The issue of instructions of all cores, where hardware threads share it (`hpu.threads`,
            `hpu.issue`).
        matching: The matching unit.
        link: The card's own link, with the packets that handlers send.
        bus_to_card: The host bus, towards the card.
        bus_to_host: The host bus, towards host memory.
        lock: The word of memory that one handler at a time holds longest: a lock, with its hand-overs.
        contended_word: The most retried word that handlers load and change only if it is unchanged: from the load to
            the change, and to the next load.
        memory_bank: The busiest bank of a shared level of memory; 0 on a card without such a level.
        send_engine: The send engine of a card of Portals messages. It begins a message a gap behind the previous one,
            or when that has left.
        packet_writer: The writer of the packet buffer, which takes a beat per cycle; on a card with clusters of handler
            cores.
        cluster_dma: The busiest DMA engine of a cluster, with packets and with copies by handlers.
        packet_sender: The sender of handlers' packets, on a card with clusters.
        command_engine: Where handlers are written for PsPIN, the command engine with the most occupied places
            (`hpu.commands.engine_commands`).
        memory_channel: The busiest channel between these engines and the card's memories (`hpu.interconnect`).
        packets_in_flight: The places of packets in clusters (`hpu.packets.in_flight`), from the assignment to a cluster
            to the end of handlers and their commands. Waits for the copy and for a processor do not count.
        packet_slots: The scarcer slots of packets over the same time: of the packet buffer or of the clusters'
            memories.
        host: The busiest part of the host, by its work on arriving frames, such as the CPU of a receive channel's
            interrupts. None on cards with a host that takes no packets.
    """

    hpus: float
    instruction_issue: float | None
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
    """A word of memory that one handler at a time holds, over the whole run.

    It is a lock if handlers wait for it; otherwise it may be one.

    Attributes:
        word: The word, such as `byte 8 of the state`.
        acquired_at: The source line that acquires it.
        released_at: The source line that releases it, if it differs.
        waited_at: The source line that waits for it, or would wait.
        waits: Number of waits. Without waits it is not among the parts: handlers did not meet, or use it differently.
        held_ns: Time per packet for which a handler holds it.
        handover_ns: Time per packet for which it is free while a handler waits.
        load: Its load at line rate, held or handed over.
        max_packets_per_s: Maximum packets per second with any number of handler cores, with an immediate hand-over: two
            cannot hold it at once.
    """

    word: str
    acquired_at: str
    released_at: str | None
    waited_at: str
    waits: int
    held_ns: float
    handover_ns: float
    load: float
    max_packets_per_s: float


class PacketDispositions(TypedDict):
    """The dispositions of the measured packets; each packet has one.

    Attributes:
        processed: The payload handler returned `SUCCESS`.
        dropped: A payload handler dropped the packet, or a header handler its message.
        proceeded: The packet went on to host memory: a header handler returned `PROCEED`, or there is no payload
            handler.
        failed: Its handler failed, or an earlier one of its message.
    """

    processed: int
    dropped: int
    proceeded: int
    failed: int


class RefusedCommand(TypedDict):
    """A command that a card refused at one place of a handler.

    The handler continued with the command's result.

    Attributes:
        command: The function of nicety.h, for example `PtlHandlerPutFromDevice`.
        code: Its return code: `PTL_ARG_INVALID`, `PTL_SEGV` or `PTL_NO_SPACE`.
        place: The line with the call, for example `ping.c:42`; the function or the pc if the program has no line
            tables. A card distinguishes 64 places. The others are counted by command and code, as `elsewhere`.
        times: Number of times.
    """

    command: str
    code: str
    place: str
    times: int


class Retries(TypedDict):
    """A word of memory that handlers retry and that is not a lock: a counter that others changed, or a flag.

    Attributes:
        word: The word, such as `byte 8 of the state`.
        retried_at: The source line that retries it.
        retries_per_packet: Retries per packet, over the whole run. At a higher rate there may be far more.
        update_ns: For handlers that load the word and change it only if it is unchanged: time per packet from the load
            to the change. No other handler succeeds in it.
        handover_ns: Time per packet in which no handler has loaded it for the next change, while a handler tries.
        load: The sum of both over the packet interval at line rate.
    """

    word: str
    retried_at: str
    retries_per_packet: float
    update_ns: float
    handover_ns: float
    load: float


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


class VariedValue(TypedDict):
    """A check with one changed value.

    Attributes:
        value: The value set.
        verdict: The verdict with it.
        bottleneck: The limiting part with it.
        capacity_fraction: The sustainable rate over the line rate.
        capacity_packets_per_s: The sustainable rate in packets per second, since the line rate may have changed.
    """

    value: str
    verdict: Literal["yes", "barely", "not judged", "no"]
    bottleneck: Part
    capacity_fraction: float
    capacity_packets_per_s: float


class SensitiveValue(TypedDict):
    """An assumed value to which a verdict is sensitive.

    Attributes:
        key: Its key in the spec.
        value: The value.
        source: The reason for the assumption, from the spec.
        halved: The result with half the value; none if that is impossible, or the handlers do not run.
        doubled: The result with twice the value; none if that is impossible, or the handlers do not run.
    """

    key: str
    value: str
    source: str
    halved: VariedValue | None
    doubled: VariedValue | None


class Sensitivity(TypedDict):
    """The assumed values of a card's spec to which a verdict is most sensitive.

    Attributes:
        values: The most sensitive first, at most three: those that change the verdict, and then by the change of the
            sustainable rate. Empty if none matters.
        varied: Assumed values that were changed.
        varied_one_way: Values of `varied` that could be changed in one direction only, or with which the handlers ran
            in at most one direction.
        not_varied: Assumed values that were not changed, by their keys: they are zero, or not numbers.
        stopped: Values with which the handlers do not run, or the card is impossible.
    """

    values: list[SensitiveValue]
    varied: int
    varied_one_way: int
    not_varied: list[str]
    stopped: list[StoppedValue]


class PortFigures(TypedDict):
    """Traffic of one port among several, and its packet dispositions.

    Attributes:
        port: Its number.
        traffic: The expression.
        offered: Packets offered to the wire, until the traffic of a port had ended.
        offered_bytes: Their payload: bytes of frames.
        offered_ns: Duration of the offered packets at their rate, up to the next due time.
        handled: Packets that the card accepted: all but those dropped by overload.
        handled_bytes: Their payload.
        passed: Packets of `handled` that no handler dropped: processed, or on their way to host memory.
        dropped_by_handler: Packets that handlers dropped.
        failed: Packets on which a handler failed.
        dropped_by_overload: Packets dropped by a full packet buffer.
        dropped_at_host: Frames that handlers passed to the host, and that were dropped without a buffer there.
        dropped_at_link: Frames that handlers sent, dropped at this full port, from any input port.
        latency_ns_mean: Mean latency through the card.
        latency_ns_p50: Median latency.
        latency_ns_p99: 99th percentile of the latency.
        latency_ns_p999: 99.9th percentile of the latency.
        latency_ns_max: Maximum latency, exact.
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


class TrafficFigures(TypedDict):
    """Traffic, and its packet dispositions.

    Attributes:
        traffic: The expression; all expressions for several ports.
        overload_policy: Behaviour with a full packet buffer. `credits`: the sender waits for them. `lossy`: packets are
            dropped. `pfc`: the wire is paused.
        offered: Packets offered to the wire.
        offered_bytes: Their payload: bytes of frames.
        offered_ns: Duration of the offered packets at their rate, up to the next due time. For a capture that is a mean
            gap after the last packet; for several ports the rate is the sum of theirs.
        handled: Packets that the card accepted: all but those dropped by overload.
        handled_bytes: Their payload.
        passed: Packets of `handled` that no handler dropped: processed, or on their way to host memory.
        dropped_by_handler: Packets that handlers dropped.
        failed: Packets on which a handler failed.
        dropped_by_overload: Packets dropped by a full packet buffer.
        dropped_at_host: Frames that handlers passed to the host, and that were dropped without a buffer there.
        dropped_at_link: Frames that handlers sent, dropped at a full output port; for several ports with `--lossy`.
        unknown_destination: Frames that handlers sent to unknown stations. They leave by the port of their arrival.
        recorded_above_wire_rate: Whether packets of a capture were recorded faster than the wire takes them. They
            arrived at the wire rate.
        loads_from_lossless_run: Whether loads, locks and memory are those of a second run with the same packets, in
            which the wire is paused. Packets that survive losses are not the offered mix.
        paused_ns: Time for which the wire was paused.
        latency_ns_mean: Mean latency through the card, from the last byte in the packet buffer until the packet has
            left it.
        latency_ns_p50: Median latency, by nearest rank, and at most 0.2 % above it. The other percentiles are alike.
        latency_ns_p99: 99th percentile of the latency.
        latency_ns_p999: 99.9th percentile of the latency.
        latency_ns_max: Maximum latency, exact.
        ports: The same figures for each port, if there are several.
    """

    traffic: str
    overload_policy: str
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
    unknown_destination: int
    recorded_above_wire_rate: bool
    loads_from_lossless_run: bool
    paused_ns: float
    latency_ns_mean: float
    latency_ns_p50: float
    latency_ns_p99: float
    latency_ns_p999: float
    latency_ns_max: float
    ports: NotRequired[list[PortFigures]]


class RateTrial(TypedDict):
    """A run with the same traffic at another rate.

    Attributes:
        rate_fraction: The rate over the traffic's rate.
        above_wire_rate: Whether the rate is above the wire rate. Then the run had a wire faster by that factor.
        packets: Packets offered: the first ones of the traffic.
        burst_packets: Packets of the burst: the first ones, at the speed of the wire. 0 without a burst.
        sustained: Whether the run had no losses and no growing backlog.
        verdict: Whether the card keeps up by its loads, too. None for a run with a burst, and for a stopped one.
        bottleneck: The limiting part; none for a run that recovered from its burst.
        capacity_fraction: The departure rate over the traffic's, where the rate was not sustained; otherwise the
            capacity by loads. None for a run that recovered from its burst.
        stopped: The error that stopped the run, if any: a handler that others starve, or a failure that the traffic's
            own rate does not have.
        starved_ns: The longest stay of a packet in the card, if it is over 70 % of the run. Handlers of later packets
            took the lock before its handler each time.
    """

    rate_fraction: float
    above_wire_rate: bool
    packets: int
    burst_packets: int
    sustained: bool
    verdict: Literal["yes", "barely", "not judged", "no"] | None
    bottleneck: Part | None
    capacity_fraction: float | None
    stopped: str | None
    starved_ns: float | None


class Unmodelled(TypedDict):
    """Shared words in memory without waits of one access for another.

    No real card has such a memory.

    Attributes:
        word: The word of atomic operations with the most accesses; none if handlers share words only by loads and
            stores.
        word_accesses: Accesses to it per packet, from the first atomic operation on.
        atomic_words: Words of atomic operations there.
        stored_words: Words of ideal memory, of the state or of variables, with another value at the end: handlers have
            stored them.
        levels: The levels of memory, as the card's spec names them.
        keys: The keys of the card's spec that model it. Those with a value suffice.
    """

    word: str | None
    word_accesses: float
    atomic_words: int
    stored_words: int
    levels: list[str]
    keys: list[str]


class LineRateRow(TypedDict):
    """One measurement: a card and a packet size.

    Attributes:
        nic: The card.
        packet_bytes: Payload of a packet.
        message_packets: Packets of a message.
        messages: Messages measured.
        packets: Packets measured; with traffic, packets handled.
        cycles_mean: Mean cycles of a payload handler; none without runs of a payload handler.
        cycles_p99: 99th percentile of the cycles.
        instructions_mean: Mean instructions of a payload handler.
        instructions_p99: 99th percentile of the instructions.
        packet_dispositions: The dispositions of the packets.
        sent_per_packet: Packets that the card sent per packet received, over the whole run.
        host_cpu_ns: CPU time of the host per packet; none on cards with a host that takes no packets.
        handlers: Each handler that ran.
        handler_ns: Handler core time per packet: its payload handler, and its share of header and completion handlers,
            including waits for transfers and commands. With traffic, per packet offered.
        growth: Growth of that time during the run, if any, for example because tables fill up. Then the processors'
            loads are those of the last quarter of the packets.
        handler_budget_ns: The budget of that time: the packet interval, times the processors.
        hpus_needed: Busy handler cores at line rate; none if no number suffices, because another resource is
            overloaded.
        hpus: Handler cores of the card.
        sustains_line_rate: Whether the card sustains the line rate forever, within the model.
        verdict: `yes`; `barely`: yes, but a part has a load of 90 % or more; `no`. `not judged`: yes or barely, but
            handlers share words in memory without a model of contention on this card (`unmodelled`).
        bottleneck: The limiting part: `limited_by`, or else that of the last run in `trials`, or the most loaded part.
        capacity_fraction: The sustainable rate over the line rate; above 1 there is a margin. The runs in `trials` find
            it between `sustained_fraction` and `not_sustained_fraction`. If the load of a part gives the same within a
            hundredth, that value is taken.
        trials: Runs with the same traffic at other rates, in order: the search for the sustainable rate. None where a
            burst stops handlers, and where the card's own wire limits at the line rate.
        sustained_fraction: The highest sustained rate of these runs, over the line rate. It is 1 if the card keeps up
            and no higher rate was sustained. None without a search, and without a sustained rate.
        not_sustained_fraction: The lowest unsustained rate above it; none if all tried rates were sustained.
        burst: A run at the traffic's rate behind a burst, if handlers wait for locks, words or lines, or if a run in
            `trials` was stopped.
        parts: The parts of the card with their headroom at the line rate, the most loaded first. The packet buffer is
            included if no other part is overloaded and no handler yields its processor.
        limited_by: The bottleneck, if the card cannot keep up.
        reachable_fraction: The fraction of line rate that an unlimited number of handler cores would reach: the limit
            of the other resources.
        packet_interval_ns: The packet interval at line rate.
        packet_wire_bytes: Bytes of a packet on the link, including its header.
        line_rate_packets_per_s: Packets per second at line rate.
        packets_per_s: Packets processed per second. With losses: the remaining packets over the time of all.
        line_rate_fraction: `packets_per_s` over the line rate.
        bandwidth_bytes_per_s: Payload of `packets_per_s`.
        buffer_packets_used: Maximum occupancy of the packet buffer, in packets.
        buffer_packets: Its capacity in packets.
        loads: The load of each resource at line rate.
        locks: Words of memory that handlers waited for, by their loads; the first few.
        retries: The most retried word that is not a lock, if any.
        memory: The memory of handlers: shared parts, and the waits there.
        unmodelled: Words that handlers share in memory without a model of contention.
        refused_commands: Commands of handlers that the card refused, in the whole run, including messages before and
            after the measurement.
        sensitivity: The assumed values of the card's spec to which the verdict is most sensitive, on request.
        traffic: The traffic and its packet dispositions, for packets other than the wire's. Then all figures are over
            the whole run, the line rate is that of the traffic, and sizes are means.
        xdp: The verdicts and maps of an XDP program. The caller, which has the object, sets this.
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
    packet_dispositions: PacketDispositions
    sent_per_packet: float
    host_cpu_ns: float | None
    handlers: list[HandlerFigures]
    handler_ns: float
    growth: Growth | None
    handler_budget_ns: float
    hpus_needed: int | None
    hpus: int
    sustains_line_rate: bool
    verdict: Literal["yes", "barely", "not judged", "no"]
    bottleneck: Part
    capacity_fraction: float
    trials: list[RateTrial]
    sustained_fraction: float | None
    not_sustained_fraction: float | None
    burst: Burst | None
    parts: list[CardPart]
    limited_by: Part | None
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
    xdp: NotRequired[XdpFigures]


class Manifest(TypedDict):
    """The inputs that reproduce a report.

    Attributes:
        specs: The cards, by name.
        overrides: Overrides of `--set`, as given.
        compiler: The programs that ran on cards, by card and mode. The caller compiles the programs and fills in this
            field.
    """

    specs: dict[str, CardManifest]
    overrides: list[str]
    compiler: NotRequired[dict[str, ProgramManifest]]


Memory = Literal["host", "gpu"]
"""The kind of memory at one end of a message."""


MessagesBenchmark = Literal["latency", "bandwidth", "message-rate"]
"""A benchmark."""


class PeerManifest(TypedDict):
    """The card of the hosts with which the host of the measured card communicates.

    Attributes:
        nic: The name of the card.
        title: The card's title.
        spec_hash: A hash over the resolved values of all parameters.
    """

    nic: str
    title: str
    spec_hash: str


Notification = Literal["poll", "interrupt"]
"""The way in which programs learn of events."""


class Puts(TypedDict):
    """The options of puts, with the values that were used.

    Attributes:
        loopback: Whether puts stay within one host, through its card.
        source: The kind of memory from which messages are put.
        sink: The kind of memory into which messages are put.
        addressing: The kind of addresses.
        flush_receive: Whether the receiver's card drops arriving packets.
        notify: The way in which programs learn of events; None if the card's specification decides.
        pong_size_bytes: Bytes of the answer in a ping-pong.
    """

    loopback: bool
    source: Memory
    sink: Memory
    addressing: Addressing
    flush_receive: bool
    notify: Notification | None
    pong_size_bytes: int


class MessagesManifest(TypedDict):
    """The inputs that reproduce a report of a benchmark between hosts.

    Attributes:
        specs: The cards, by name.
        overrides: `--set` overrides, as given. They do not apply to the card in `peer`.
        pattern: The pattern of sources and targets.
        topology: The topology.
        noise: Background noise on the hosts' CPUs, as given.
        compiler: The programs that ran on cards, by card and mode. The caller compiles the programs and fills in this
            field.
        faults: The faults of the network, as given.
        flow_control: The flow control of the network, as given.
        peer: The card of every host except rank 0, if it differs.
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


class PcieRow(TypedDict):
    """The result of a test for one size, offset, window, pattern and state of the cache.

    Attributes:
        nic: The card.
        test: The test, as pcie-bench names it.
        pattern: The pattern of addresses: `seq` or `rand`.
        cache: The state of the host's cache before the test: `hwarm`, `dwarm`, `cold` or `dthrash`.
        host_offset_bytes: Offset of each transfer from a line of 64 B of the host, in bytes.
        card_offset_bytes: Offset of each transfer from a line of 64 B of the card, in bytes.
        window_bytes: Size of the window of host memory, in bytes.
        size_bytes: Size of a transfer in bytes.
        transfers: Number of measured transfers.
        bandwidth_gbit_per_s: Payload bandwidth. None for a test of latency. For `BW_DMA_RW`: of each direction.
        max_ns: Maximum latency.
        mean_ns: Mean latency.
        median_ns: Median latency. None for a test of bandwidth, as are the other latencies.
        min_ns: Minimum latency.
        p95_ns: The latency that 95 % of the samples do not exceed.
        p999_ns: The latency that 99.9 % of the samples do not exceed.
        transfers_per_s: Transfers per second. None for a test of latency. For `BW_DMA_RW`: of each direction.
    """

    nic: str
    test: str
    pattern: str
    cache: str
    host_offset_bytes: int
    card_offset_bytes: int
    window_bytes: int
    size_bytes: int
    transfers: int
    bandwidth_gbit_per_s: NotRequired[float]
    max_ns: NotRequired[float]
    mean_ns: NotRequired[float]
    median_ns: NotRequired[float]
    min_ns: NotRequired[float]
    p95_ns: NotRequired[float]
    p999_ns: NotRequired[float]
    transfers_per_s: NotRequired[float]


class PointFailure(TypedDict):
    """A failure on a card during the measurement of one point.

    Attributes:
        nic: The card.
        point: The point, for example its mode and size.
        rank: The rank of its card.
        kind: `trap`: an error stopped a handler or process. `fail`: a handler or process returned a failure or an
            invalid code. `budget`: an application used up a budget. `refused`: the card refused a command. `lost`: the
            network lost or damaged packets of this node, and nothing resends them.
        text: Description, with the source line if known.
        times: Number of occurrences.
    """

    nic: str
    point: str
    rank: int
    kind: str
    text: str
    times: int


class ProfiledBank(TypedDict):
    """A bank of a level of memory for which handlers have waited, with the data in it.

    Attributes:
        level: The level, as the card's spec names it.
        cluster: The cluster of the memory.
        bank: The number of the bank.
        data: The data: a variable such as `table+8`, `state+4`, or a piece of private memory such as `packet`.
        waits: Accesses that waited.
        wait_cycles: Cycles a packet of their waits.
    """

    level: str
    cluster: int
    bank: int
    data: str
    waits: int
    wait_cycles: float


class ProfiledCard(TypedDict):
    """The counters that the card itself keeps of its handlers, over the same run.

    Attributes:
        runs: Runs of handlers.
        cycles: Cycles for which handlers held cores. For processes, the cycles of their contexts.
        instructions: Instructions.
        stalled_cycles: Cycles of waits for commands and transfers. For processes, cycles asleep.
        memory_wait_cycles: Cycles of waits for banks.
        fetch_wait_cycles: Cycles of waits for code.
        cache_wait_cycles: Cycles of waits for lines of data caches.
    """

    runs: int
    cycles: int
    instructions: int
    stalled_cycles: int
    memory_wait_cycles: int
    fetch_wait_cycles: int
    cache_wait_cycles: int


class ProfiledFunction(TypedDict):
    """A function, also one that is inlined in others.

    Its cycles are those of its own instructions.

    Attributes:
        function: Its name. None where the program has neither line tables nor symbols for it.
        executions: Instructions that were executed.
        cycles: Cycles of cores, waits included.
        cycles_mean: Cycles a packet.
        cycles_p99: 99th percentile of the cycles of a run of a handler, by nearest rank, over the sampled runs of the
            handlers that reach it.
        causes: The cycles by cause.
    """

    function: str | None
    executions: int
    cycles: int
    cycles_mean: float
    cycles_p99: int
    causes: dict[str, int]


class ProfiledFrame(TypedDict):
    """A function at an instruction: an inlined one, or the one that has the instruction.

    Attributes:
        function: Its name, if the line tables have one.
        file: Its source file.
        line: The line in it.
    """

    function: str | None
    file: str | None
    line: int | None


class ProfiledInstruction(TypedDict):
    """An instruction that was executed.

    Attributes:
        address: Its address in program memory.
        text: Its text, such as `lw a0, 4(a1)`.
        symbol: The name of the function's symbol.
        line: The index of its line in `lines`.
        frames: The functions inlined there, the innermost first, and the function that has them. Empty without line
            tables.
        executions: Instructions that were executed.
        cycles: Cycles of cores, waits included.
        cycles_mean: Cycles a packet.
        cycles_p99: 99th percentile of the cycles of a run of a handler, by nearest rank, over the sampled runs of the
            handlers that reach it.
        causes: The cycles by cause.
    """

    address: int
    text: str
    symbol: str | None
    line: int
    frames: list[ProfiledFrame]
    executions: int
    cycles: int
    cycles_mean: float
    cycles_p99: int
    causes: dict[str, int]


class ProfiledLine(TypedDict):
    """A line of the source.

    Functions of the headers of handlers count at the line that calls them.

    Attributes:
        function: The index of its function in `functions`.
        file: The source file with the compiler's directory. None without line tables.
        line: The line, counted from 1.
        executions: Instructions that were executed.
        cycles: Cycles of cores, waits included.
        cycles_mean: Cycles a packet.
        cycles_p99: 99th percentile of the cycles of a run of a handler, by nearest rank, over the sampled runs of the
            handlers that reach it.
        causes: The cycles by cause.
    """

    function: int
    file: str | None
    line: int | None
    executions: int
    cycles: int
    cycles_mean: float
    cycles_p99: int
    causes: dict[str, int]


class ProfiledLock(TypedDict):
    """A word of memory that one handler at a time holds, and that handlers wait for.

    The cycles of a wait are also those of the instructions that wait.

    Attributes:
        word: The word, such as `byte 8 of the state`.
        variable: The variable of the program, such as `table+8`, if it is in one.
        acquired_at: The source line of the holder that acquires it.
        released_at: The source line of the holder that releases it, if it differs.
        waited_at: The source line of the handlers that wait for it.
        waits: Number of waits.
        wait_cycles: Cycles a packet of waits.
        held_cycles: Cycles a packet for which a handler holds it.
        handover_cycles: Cycles a packet for which it is free while a handler waits.
    """

    word: str
    variable: str | None
    acquired_at: str
    released_at: str | None
    waited_at: str
    waits: int
    wait_cycles: float
    held_cycles: float
    handover_cycles: float


class ProfiledPath(TypedDict):
    """A function that another one has called, or the entry of a run.

    Attributes:
        caller: The index of the caller's path. None for the entry of a run.
        address: The address of the function.
        symbol: The name of its symbol.
    """

    caller: int | None
    address: int
    symbol: str | None


class ProfiledProcess(TypedDict):
    """The processes of a function on a context of a flow processor, with the card's own counters.

    Attributes:
        function: The name of the function.
        microengine: The number of the microengine.
        context: The number of the context.
        processes: Number of processes.
        cycles_computing: Cycles of instructions.
        cycles_asleep: Cycles of waits for a memory, a signal, a channel or the port.
        cycles_ready: Cycles of waits for the core, which ran other contexts.
        instructions: Instructions.
        references: References to memories outside the core.
    """

    function: str | None
    microengine: int
    context: int
    processes: int
    cycles_computing: int
    cycles_asleep: int
    cycles_ready: int
    instructions: int
    references: int


class ProfiledSample(TypedDict):
    """The cycles of an instruction on a call path.

    Attributes:
        path: The index of the path in `paths`.
        instruction: The index of the instruction in `instructions`.
        executions: Its executions on this path.
        cycles: Its cycles on this path.
    """

    path: int
    instruction: int
    executions: int
    cycles: int


class ProfileRow(TypedDict):
    """The profile of handlers on a card, over a whole run.

    Attributes:
        nic: The card.
        place: The rank and the number of the card, for processes.
        packet_bytes: Payload bytes of a packet, or their mean. 0 for processes.
        packets: Packets of the run. 1 for processes, so that means are sums over the run.
        runs: Runs of handlers, or processes.
        sampled_runs: Runs of the sample for percentiles: every n-th one.
        cycle_ns: The duration of a cycle.
        executions: Instructions that were executed.
        cycles: Cycles of cores, waits included.
        cycles_mean: Cycles a packet.
        cycles_p99: 99th percentile of the cycles of a run of a handler, by nearest rank, over the sampled runs of the
            handlers that reach it.
        causes: The cycles by cause.
        card: The card's own counters.
        functions: Functions, those with the most cycles first.
        lines: Lines, those with the most cycles first.
        instructions: Instructions, by address.
        paths: Call paths. A caller precedes its callees.
        samples: Cycles by call path and instruction.
        locks: Words that handlers wait for, those with the longest waits first.
        banks: Banks that handlers wait for, those with the longest waits first. At most 32.
        processes: The processes of a flow processor. Empty for handlers.
        missing: Shortcomings of the program's file, and their effects on the profile.
    """

    nic: str
    place: str | None
    packet_bytes: int
    packets: int
    runs: int
    sampled_runs: int
    cycle_ns: float
    executions: int
    cycles: int
    cycles_mean: float
    cycles_p99: int
    causes: dict[str, int]
    card: ProfiledCard
    functions: list[ProfiledFunction]
    lines: list[ProfiledLine]
    instructions: list[ProfiledInstruction]
    paths: list[ProfiledPath]
    samples: list[ProfiledSample]
    locks: list[ProfiledLock]
    banks: list[ProfiledBank]
    processes: list[ProfiledProcess]
    missing: list[str]


class RegistrationRow(TypedDict):
    """The CPU costs for one size.

    Attributes:
        nic: The card.
        size_bytes: Size of the message in bytes.
        pages: Number of pages of a buffer that begins at a page boundary.
        copy_ns: CPU time of a copy into memory from which the card may fetch.
        translate_ns: CPU time of the system call that locks and translates the pages. It includes the transfer of page
            descriptors to the card, if the card uses any.
    """

    nic: str
    size_bytes: int
    pages: int
    copy_ns: float
    translate_ns: float


class Row(TypedDict):
    """One measurement: a card, a mode and a message size.

    The benchmark determines which figures a row has.

    Attributes:
        nic: The card.
        mode: The mode.
        size_bytes: Message size in bytes.
        iterations: Number of measured iterations.
        min_ns: Minimum of the iterations, in nanoseconds. An iteration is half a round trip, or a window. The next four
            fields are of the same quantity.
        p50_ns: Median of the iterations.
        p99_ns: 99th percentile of the iterations, by nearest rank.
        p999_ns: 99.9th percentile of the iterations.
        max_ns: Maximum of the iterations.
        verified: Whether the receiving end checked every byte and found it correct, and nothing failed on a card.
        host_memory: Memory traffic of the measured iterations, for each node.
        bandwidth_bytes_per_s: Payload bytes per second of all directions together. A window lasts from its first post
            to its last completion.
        fairness: Incast: the smallest figure of a sender divided by the largest; 1 if all senders get the same.
        flows: Each direction, if the pattern has several.
        latency_ns: Mean of half a round trip, over the iterations of all ranks that send pings.
        messages_per_s: Messages per second of all directions together. A window lasts from its first post to its last
            completion.
        ports: The ports of the network over the whole run, if the flow control does not use credits.
        stages: The stages of the latency. Their sum is the mean latency.
        unaccounted_iterations: Number of iterations with time that belongs to no stage, if any.
        window: Number of messages in a window.
        window_ns: Mean duration of a window over the measured iterations.
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
    """The computed and the measured saturation of a pattern on a card.

    Attributes:
        nic: The card.
        pattern: The pattern.
        zero_load_latency_ns: Latency of a packet over the longest route, without other packets.
        buffer_limit_fraction: The offered load at which the buffers of routers are full, because credits return late.
            Present if it is below 1, as with short packets.
        channel_load_max: Load of the most loaded link, in link bandwidths, if every sending node sends at a link's
            bandwidth. It is computed from the routes. It is left out if there are too many routes: to all nodes, on a
            torus with an odd size and more than 4096 nodes.
        channel_load_mean: Mean load over all links, in link bandwidths.
        measured_saturation_fraction: The largest accepted load of all rows. Present if any row is saturated.
        saturation_fraction: The offered load at which the first link is full, as a fraction of a link's bandwidth. It
            is 1 if that is the link of a node to its router.
    """

    nic: str
    pattern: str
    zero_load_latency_ns: float
    buffer_limit_fraction: NotRequired[float]
    channel_load_max: NotRequired[float]
    channel_load_mean: NotRequired[float]
    measured_saturation_fraction: NotRequired[float]
    saturation_fraction: NotRequired[float]


class SearchReport(TypedDict):
    """A search for findings with mutated packets.

    Attributes:
        runs: Runs of the simulation.
        packets: Packets in all runs.
        captures: Captures that replay findings.
    """

    runs: int
    packets: int
    captures: list[FindingCapture]


SocketsBenchmark = Literal["stream", "request-response"]
"""The benchmark's name."""


class SocketsManifest(TypedDict):
    """The inputs that reproduce a report of a benchmark of sockets.

    Attributes:
        specs: The cards, by name.
        overrides: `--set` overrides, as given. They do not apply to the card in `peer`.
        topology: The topology.
        warmup_ns: Virtual time from the first byte to the begin of the measured time.
        duration_ns: Length of the measured time.
        faults: The faults of the network, as given.
        flow_control: The flow control of the network, as given.
        peer: The card of the peer, if it differs.
    """

    specs: dict[str, CardManifest]
    overrides: list[str]
    topology: str
    warmup_ns: float
    duration_ns: float
    faults: NotRequired[str]
    flow_control: NotRequired[str]
    peer: NotRequired[PeerManifest]


StreamDirection = Literal["receive", "transmit"]
"""Whether rank 0 receives or sends the bytes."""


class StreamRow(TypedDict):
    """The result for a card and a point of the sweep.

    Attributes:
        nic: The card.
        direction: Whether rank 0 receives or transmits.
        io_size_bytes: Bytes of each call that sends or receives.
        connections: Number of connections.
        cpus: Number of CPUs that rank 0's operating system uses.
        bandwidth_bits_per_s: Payload bits per second that the receiving program got in the measured time.
        cpu_utilisation: Utilisation of all CPUs together, as a fraction.
        cpu_ns_per_packet: CPU time per packet.
        instructions_per_packet: Instructions per packet.
        l1_misses_per_packet: Loads per packet that missed a core's first-level cache.
        shared_cache_misses_per_packet: Loads per packet that also missed the shared cache.
        tlb_misses_per_packet: Misses per packet in the data TLBs of the cores.
        code_tlb_misses_per_packet: Misses per packet in the code TLBs of the cores.
        breakdown: CPU time per packet, by function group.
        context_switches_per_packet: Context switches per packet.
        cross_calls_per_packet: Cross-calls (inter-processor interrupts) per packet.
        interrupts_per_packet: Interrupts per packet.
        interrupt_ns: CPU time of an interrupt of a receive channel before its handler takes frames. It consists of the
            entry and of register reads.
        retransmissions: Number of segments that rank 0 and its peer retransmitted.
        dropped: Number of frames that rank 0 dropped: in its card, its kernel threads and its protocols.
        packets: Number of packets: frames that rank 0's card received, or sent if rank 0 transmits.
        verified: Whether every received byte was checked and correct.
        ports: The ports of the network over the whole run, if the flow control does not use credits.
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
    l1_misses_per_packet: float
    shared_cache_misses_per_packet: float
    tlb_misses_per_packet: float
    code_tlb_misses_per_packet: float
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
"""The way by which addresses reach the card."""


class TorusManifest(TypedDict):
    """The inputs that reproduce a report of the benchmark of a torus.

    Attributes:
        specs: The cards, by name.
        overrides: `--set` overrides, as given.
        topology: The topology.
        nodes: Number of nodes.
        packet_bytes: Payload bytes of a packet.
        warmup_ns: Virtual time before the measured time.
        duration_ns: Length of the measured time.
    """

    specs: dict[str, CardManifest]
    overrides: list[str]
    topology: str
    nodes: int
    packet_bytes: int
    warmup_ns: float
    duration_ns: float


class TorusRow(TypedDict):
    """The result for a card, a pattern and an offered load.

    Attributes:
        nic: The card.
        pattern: The pattern.
        offered_fraction: Offered load of each sending node, as a fraction of a link's bandwidth. Headers and stuffed
            words are included.
        accepted_fraction: Accepted load in the measured time, as a fraction of the same bandwidth.
        accepted_bytes_per_s: Payload bytes per second that arrived at all nodes together in the measured time.
        latency_ns: Mean latency of a packet, from its generation to the arrival of its last byte.
        min_ns: Minimum latency.
        p50_ns: Median latency.
        p99_ns: 99th percentile of the latency, by nearest rank.
        max_ns: Maximum latency.
        hops_mean: Mean number of links between nodes that a packet crossed.
        saturated: Whether queues grew. Then at least 5 % fewer packets arrived in the measured time than were
            generated. The difference is also above three times the square root of the number of generated packets, so
            it is not random.
        packets: Number of measured packets: those generated in the measured time.
        undelivered_packets: Number of measured packets that had not left their node when the run ended. This happens
            far beyond saturation. The latencies do not include these packets.
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


class TourTable(TypedDict):
    """The table in which climbers look distances up.

    Attributes:
        made_by: The part of the system that computes the table: `card` or `host`.
        memory: The memory that has the table: `CLS` or `CTM` (of each island), `IMEM` or `EMEM`.
        distance_bytes: Bytes of a distance.
    """

    made_by: Literal["card", "host"]
    memory: str
    distance_bytes: int


class XdpPlace(TypedDict):
    """An XDP program in a place.

    Attributes:
        nic: The card.
        place: The place of the program.
        packet_bytes: Bytes of a frame without its check sequence; the mean of traffic.
        processors: Cores of the card, or CPUs of the host that take frames.
        cycles_mean: Mean cycles of a frame on a card's core; none in a driver.
        offered_pps: Frames offered, per second.
        sustained_pps: Frames sustained per second, at most those offered. On a card: without losses and without a
            growing backlog. In a driver: the highest rate without loss; 0 if every rate loses frames.
        sustained_fraction: `sustained_pps` over `offered_pps`.
        host_cpu_ns: CPU time of the host for a frame. On a card it is that of the run at the offered rate, and none on
            cards with a host that takes no frames. In a driver it is that of the run at `sustained_pps`.
        verdicts: Frames by verdict, at the offered rate. On a card, the caller, which has the object, sets them.
        lost: Frames lost at the offered rate.
        bottleneck: The part that limits, or that has the highest load.
        bottleneck_load: Its load: on a card at the offered rate, in a driver at `sustained_pps`. None if it has no load
            of its own.
    """

    nic: str
    place: Literal["card cores", "eBPF core", "microengines", "host driver"]
    packet_bytes: int
    processors: int
    cycles_mean: float | None
    offered_pps: float
    sustained_pps: float
    sustained_fraction: float
    host_cpu_ns: float | None
    verdicts: dict[str, int]
    lost: int
    bottleneck: str
    bottleneck_load: float | None


class XdpReport(TypedDict):
    """Counters of XDP programs in a host's driver.

    Attributes:
        frames: Frames on which a program ran.
        passed: `XDP_PASS`: frames to the protocols.
        dropped: `XDP_DROP`.
        transmitted: `XDP_TX`: frames out of the port that they came from.
        redirected: `XDP_REDIRECT`.
        aborted: `XDP_ABORTED`, and numbers that are no verdict.
        invalid: Of those, numbers that are no verdict.
        aborted_at: Frames with `XDP_ABORTED`, by program and line.
        trapped: Programs that trapped.
        transmit_full: Frames to send that found the transmit ring full, and were dropped.
        unreachable: Redirected frames with a destination that does not exist, which were dropped.
        queue_full: Redirected frames that found the queue of a CPU or of a socket full, and were dropped.
        second: Runs of programs of device maps and CPU maps.
        second_dropped: Frames that these programs dropped: any verdict but `XDP_PASS`, and on a CPU `XDP_REDIRECT`.
        instructions: Instructions of eBPF.
        helper_calls: Calls of helpers.
        map_calls: Of those, calls that find, add or remove an entry of a map.
        inlined_calls: Helpers that the kernel writes into the program.
    """

    frames: int
    passed: int
    dropped: int
    transmitted: int
    redirected: int
    aborted: int
    invalid: int
    aborted_at: list[XdpAborted]
    trapped: int
    transmit_full: int
    unreachable: int
    queue_full: int
    second: int
    second_dropped: int
    instructions: int
    helper_calls: int
    map_calls: int
    inlined_calls: int


class XdpRow(TypedDict):
    """A program in the driver of a host.

    Attributes:
        nic: The card.
        cpus: CPUs that take frames.
        mode: The place of the program.
        traffic: The traffic.
        offered: Frames of the traffic.
        offered_bytes: Their bytes, without check sequences.
        offered_pps: Their rate, in frames per second.
        lost: Frames lost at that rate. They found no buffer in a receive ring, a full packet buffer, no descriptor to
            leave by, or a full queue of a CPU.
        lost_before: Of those, frames that no program saw: without a buffer, or at the full packet buffer.
        taken_pps: Frames per second with a verdict at the traffic's rate.
        verdicts: Verdicts at the traffic's rate, and the programs' work.
        lossless_pps: The highest rate without loss, at most the traffic's; none if every rate loses frames. The
            following figures are of the run at this rate, or else at the traffic's.
        cpu_ns_per_frame: CPU time of the host for a frame.
        instructions_per_frame: Instructions of eBPF for a frame.
        latency: Latency.
        bottleneck: The part with the highest load.
        parts: Loads of all parts.
    """

    nic: str
    cpus: int
    mode: Literal["native", "generic"]
    traffic: str
    offered: int
    offered_bytes: int
    offered_pps: float
    lost: int
    lost_before: int
    taken_pps: float
    verdicts: XdpReport
    lossless_pps: float | None
    cpu_ns_per_frame: float
    instructions_per_frame: float
    latency: XdpLatency
    bottleneck: XdpPart
    parts: list[XdpPart]


class Report(TypedDict):
    """The report of a benchmark.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        seed: The seed.
        manifest: The inputs.
        rows: One row for each point, which is for example a card, a mode and a size.
        failures: Failures of handlers, and commands that cards refused to handlers, while the rows were measured. If
            their kinds are not allowed, the benchmark has failed.
        failed_points: The points with a failed run, if any.
        handler_lines: Lines that handlers printed, if any.
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
    """The results of a line-rate check: one row for each card and packet size.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        seed: The seed.
        manifest: The inputs.
        rows: One row for each point, which is for example a card, a mode and a size.
        failures: Failures of handlers, and commands that cards refused to handlers, while the rows were measured. If
            their kinds are not allowed, the benchmark has failed.
        drivers: For an XDP program, the results in drivers of hosts.
        ebpf_cores: For an XDP program, the results on cores that execute eBPF themselves.
        failed_points: The points with a failed run, if any.
        flow_processors: For an XDP program, the results on microengines of network flow processors.
        handler_lines: Lines that handlers printed, if any.
        places: For an XDP program, one table of all places, in the order of the cards as given.
    """

    benchmark: Literal["handlers"]
    version: str
    seed: int
    manifest: Manifest
    rows: list[LineRateRow]
    failures: list[PointFailure]
    drivers: NotRequired[list[XdpRow]]
    ebpf_cores: NotRequired[list[EbpfCoreRow]]
    failed_points: NotRequired[list[FailedPoint]]
    flow_processors: NotRequired[list[FlowProcessorRow]]
    handler_lines: NotRequired[HandlerLines]
    places: NotRequired[list[XdpPlace]]


class ProfileReport(TypedDict):
    """The report of a benchmark.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        seed: The seed.
        manifest: The inputs.
        rows: One row for each point, which is for example a card, a mode and a size.
        failures: Failures of handlers, and commands that cards refused to handlers, while the rows were measured. If
            their kinds are not allowed, the benchmark has failed.
        failed_points: The points with a failed run, if any.
        handler_lines: Lines that handlers printed, if any.
    """

    benchmark: Literal["profile"]
    version: str
    seed: int
    manifest: Manifest
    rows: list[ProfileRow]
    failures: list[PointFailure]
    failed_points: NotRequired[list[FailedPoint]]
    handler_lines: NotRequired[HandlerLines]


class CheckReport(TypedDict):
    """The result of a check.

    Attributes:
        version: The version of nicety.
        nic: The card, or the cards of a program of hosts.
        seed: The seed of packets and interleavings.
        schedules: Interleavings tried.
        runs: Runs of handlers, or processes, in all interleavings.
        instructions: Their instructions.
        covered: Different instructions among these.
        findings: Findings, each once.
        failures: Failures of handlers, and commands that the card refused to them. Without findings, they fail the
            check.
        missing: Shortcomings of the program's file, and their effects on findings.
        fuzz: The search with mutated packets, if there was one. Python makes it.
        program: The program of hosts, for processes. Python runs it.
    """

    version: str
    nic: str
    seed: int
    schedules: int
    runs: int
    instructions: int
    covered: int
    findings: list[Finding]
    failures: list[PointFailure]
    missing: list[str]
    fuzz: NotRequired[SearchReport]
    program: NotRequired[str]


class XdpBenchReport(TypedDict):
    """The report of a benchmark.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        seed: The seed.
        manifest: The inputs.
        rows: One row for each point, which is for example a card, a mode and a size.
        failures: Failures of handlers, and commands that cards refused to handlers, while the rows were measured. If
            their kinds are not allowed, the benchmark has failed.
        failed_points: The points with a failed run, if any.
        handler_lines: Lines that handlers printed, if any.
    """

    benchmark: Literal["xdp"]
    version: str
    seed: int
    manifest: Manifest
    rows: list[XdpRow]
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
        rows: One row for each point, which is for example a card, a mode and a size.
        failures: Failures of handlers, and commands that cards refused to handlers, while the rows were measured. If
            their kinds are not allowed, the benchmark has failed.
        failed_points: The points with a failed run, if any.
        handler_lines: Lines that handlers printed, if any.
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
    """The report of the benchmark `registration`.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        manifest: The inputs.
        rows: One row for each card and size.
        crossovers: One crossover for each card.
        failed_points: The points with a failed run, if any.
    """

    benchmark: Literal["registration"]
    version: str
    manifest: Manifest
    rows: list[RegistrationRow]
    crossovers: list[Crossover]
    failed_points: NotRequired[list[FailedPoint]]


class FairnessReport(TypedDict):
    """The report of a benchmark that has no seed, because nothing in it is random.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        manifest: The inputs.
        rows: One row for each point of the benchmark.
        failed_points: The points with a failed run, if any.
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
        failed_points: The points with a failed run, if any.
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
        saturation: One item for each card and pattern.
        failed_points: The points with a failed run, if any.
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
        failed_points: The points with a failed run, if any.
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
        failed_points: The points with a failed run, if any.
    """

    benchmark: SocketsBenchmark
    version: str
    seed: int
    manifest: SocketsManifest
    rows: list[ExchangeRow]
    failed_points: NotRequired[list[FailedPoint]]


class PcieReport(TypedDict):
    """The report of a benchmark that has no seed, because nothing in it is random.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        manifest: The inputs.
        rows: One row for each point of the benchmark.
        failed_points: The points with a failed run, if any.
    """

    benchmark: Literal["pcie"]
    version: str
    manifest: Manifest
    rows: list[PcieRow]
    failed_points: NotRequired[list[FailedPoint]]


class ContextReport(TypedDict):
    """The report of a benchmark that has no seed, because nothing in it is random.

    Attributes:
        benchmark: The benchmark.
        version: The version of nicety.
        manifest: The inputs.
        rows: One row for each point of the benchmark.
        failed_points: The points with a failed run, if any.
    """

    benchmark: Literal["pcsa"]
    version: str
    manifest: Manifest
    rows: list[ContextRow]
    failed_points: NotRequired[list[FailedPoint]]


class CountReport(TypedDict):
    """The result of counting the addresses of a capture.

    Attributes:
        application: The application.
        version: The version of nicety.
        manifest: The inputs that reproduce the run.
        capture: The file of the capture, as given.
        format: The file format: `pcap` or `pcapng`.
        bytes: Number of bytes read. If the file is compressed, this is the number of decompressed bytes.
        packets: Number of packets read.
        ipv4_packets: Number of packets of IP version 4.
        ipv6_packets: Number of packets of IP version 6.
        other_packets: Number of packets that are not IP.
        truncated_packets: Number of packets that the capture truncated before the end of their source address.
        unknown_link_packets: Number of packets of unsupported link types.
        damaged_packets: Number of packets that were damaged on their link, according to their flags. They are not
            replayed.
        oversized_packets: Number of packets that were longer than the maximum frame of the card's port. They were
            truncated.
        distinct: The exact number of distinct source addresses.
        nic: The card.
        sketches: Number of sketches.
        estimate: The card's estimate of distinct source addresses.
        relative_error: The error of the estimate, as a fraction of `distinct`.
        expected_error: The standard error of an estimate with this number of sketches, as a fraction.
        trailing_ones: The number of trailing ones, summed over all sketches, as the card returned it.
        through: The way by which addresses reached the card.
        blocks: Number of blocks of addresses that the host sent to the card, with channels.
        sent_ns: The virtual time at which the last packet had entered the port, if packets were replayed.
        wire_busy_ns: Busy time of the wire, if packets were replayed. It is less than `sent_ns` if the card stalled the
            wire.
        dropped_packets: Packets that the port dropped, because their length field (IEEE 802.3) is 0, or is above the
            captured length.
        card_time_ns: Virtual time from the first packet, or the host's first message, until the host has received the
            sum.
        card_packets_per_s: Number of packets divided by the card time, per second.
        damage: The first damage in the capture, if any. The packets before it are counted.
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
    truncated_packets: int
    unknown_link_packets: int
    damaged_packets: int
    oversized_packets: int
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
    wire_busy_ns: float | None
    dropped_packets: int | None
    card_time_ns: float
    card_packets_per_s: float
    damage: Damage | None


class TourReport(TypedDict):
    """The result of a run.

    Attributes:
        application: The application.
        version: The version of nicety.
        seed: The seed.
        manifest: The inputs that reproduce the run.
        problem: The name of the problem in the file.
        cities: Number of cities.
        edge_weight_type: TSPLIB's name for the kind of distances, such as `EUC_2D`.
        nic: The card.
        restarts: Number of climbs.
        climbers: Number of climbers.
        distances: The source of distances: `table` or `root`.
        job_climbs: Number of climbs in a job.
        jobs: Number of jobs.
        length: The length of the shortest tour.
        climb: The number of the climb that found this tour. If several did, it is the lowest number.
        tour: The shortest tour, as the numbers of the cities in the file.
        card_time_ns: The sum of the jobs' times on the card, in virtual time.
        card_climbs_per_s: Climbs per second of card time.
        climber_cycles_computing: Cycles in which climbers computed, summed over all climbers.
        climber_cycles_asleep: Cycles in which climbers waited for memory, summed over all climbers.
        instructions: Number of instructions of all processes.
        cpu: The same climbs on the CPUs of this machine, in wall-clock time.
        gpu: The same climbs on a graphics processor. The caller runs them there and fills in this field.
        table: The table of distances on the card. Not present with `--distances root`.
    """

    application: Literal["tsp"]
    version: str
    seed: int
    manifest: Manifest
    problem: str
    cities: int
    edge_weight_type: str
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
    table: NotRequired[TourTable]


class ChannelOptions(TypedDict, total=False):
    """The request of a benchmark of channels.

    Other languages pass its JSON form, and its schema defines the command line's options.

    Attributes:
        sizes: Message sizes in bytes: a list with commas, or a doubling range such as 8:56.
        directions: `host-to-card` or `card-to-host`; both if left out.
        iterations: Number of messages measured for each size.
        memory: Memory of the card for indirect messages: `ctm` of each process's island, `imem` or `emem`.
        modes: `direct`, in mailboxes, or `indirect`, by DMA; both if left out.
        nics: Cards to compare: names of specs, or paths of spec files.
        noise: Background noise on the host's CPUs, such as 1ms,25us; add ,fixed for a fixed period; or a trace file.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example managers.read=4.
        payload: Bytes that all processes move in a run.
        processes: Numbers of processes that move the payload together. Each process has a thread of the host.
        runs: Number of measured runs. They differ in the begin times of threads.
        seed: Seed of every random stream: the same seed gives the same report to the last byte.
        warmup: Number of messages before the measured ones.
    """

    sizes: Annotated[Numbers | None, Option(usual={"channel-bandwidth": "64Ki:20Mi", "channel-latency": "8:56"})]
    directions: Annotated[Names | None, Option(metavar="D[,E]", example="host-to-card")]
    iterations: Annotated[int | None, Option(default=100, least=1, most=1000000, only="channel-latency")]
    memory: Annotated[str | None, Option(default="emem", only="channel-bandwidth")]
    modes: Annotated[Names | None, Option(metavar="M[,N]", example="direct")]
    nics: Annotated[Names | None, Option(default=["nfp-4000"])]
    noise: Annotated[str | None, Option(metavar="PERIOD,DURATION")]
    overrides: Annotated[Overrides | None, Option()]
    payload: Annotated[
        int | None, Option(default=104857600, least=1, most=1099511627776, metavar="SIZE", only="channel-bandwidth")
    ]
    processes: Annotated[Numbers | None, Option(most=U32, usual={"channel-bandwidth": "1,8"}, only="channel-bandwidth")]
    runs: Annotated[int | None, Option(default=3, least=1, most=1000, only="channel-bandwidth")]
    seed: Annotated[int | None, Option(default=1)]
    warmup: Annotated[int | None, Option(default=1, least=1, most=1000000, only="channel-latency")]


class ContextOptions(TypedDict, total=False):
    """The cardinality estimate: how contexts hide the latency of memory.

    Each row has the cycles that one microengine needs for a total number of updates. It also has the updates per second
    of the whole card, with this number of contexts on each microengine.

    Attributes:
        contexts: Numbers of contexts, one row for each. 1..8 has steps of one, and 1:8 is a doubling range.
        nics: Cards to compare: names of specs, or paths of spec files.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        updates: Total number of updates on one microengine.
    """

    contexts: Annotated[Numbers | None, Option(default=[1, 2, 3, 4, 5, 6, 7, 8], usual="1..8")]
    nics: Annotated[Names | None, Option(default=["nfp-4000"])]
    overrides: Annotated[Overrides | None, Option()]
    updates: Annotated[int | None, Option(default=8, least=1, most=256)]


class CountOptions(TypedDict, total=False):
    """Estimate the distinct source addresses of a capture on a card, and count them exactly on the host.

    If the capture is damaged, the packets before the damage are counted. The counts are printed, and the exit status is
    2.

    Attributes:
        nic: The card: a name, or the path of a specification file.
        overrides: Changes to the card, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        sketches: The number of sketches of the estimate: a power of two from 16 to the number that the card's CLS can
            hold.
        through: `port`: packets go through the port; `channels`: the host sends the addresses through channels.
    """

    nic: Annotated[Place | None, Option(default="nfp-4000", metavar="NAME")]
    overrides: Annotated[Overrides | None, Option()]
    sketches: Annotated[int | None, Option(default=2048, least=1, most=U32)]
    through: Annotated[Through | None, Option(default="port", metavar="port|channels")]


class ExchangeOptions(TypedDict, total=False):
    """Requests and their replies on many connections: the rate, the latency, and the cost on the measured host.

    Every connection has a client on the other host. As in netperf, the client sends a request, waits for the reply,
    pauses, and sends the next request. A thread of the measured host sends the replies.

    Attributes:
        connections: Numbers of connections, one row for each. 1:64 is a doubling range, and 1..8 has steps of one.
        nics: Cards to compare, of Ethernet: names of specs, or paths of spec files.
        duration: The measured time, such as 50ms.
        faults: Faults of the network: a TOML file, or a line such as
            loss=1e-3,corrupt=1e-4,duplicate=1e-3,reorder=1e-3:5us,burst=4,seed=7,fail=hosts.1@2ms.
        flow_control: Flow control of switches: `credits`; `none`: switches drop packets; or `pfc`: they pause senders.
            Options as in none,buffer=1Mi,per=shared,alpha=1/2 or
            pfc,buffer=256Ki,xoff=128Ki,xon=120Ki,headroom=40Ki,quanta=65535. Default: credits.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example
            interrupts.packets=1.
        peer: The card of the other host, if it differs. Overrides do not apply to it.
        reply: Bytes of a reply.
        seed: Seed of all random streams: the same seed gives the same report to the last byte.
        size: Bytes of a request.
        think: Pause of a client between a reply and its next request, such as 100us. Default: no pause.
        topology: Topology of the network: `pair`; `star`: hosts around a switch; `fat-tree:PORTS`, as in fat-tree:36,
            or `fat-tree:PORTS:LEVELS:ROUTING`; `torus:XxYxZ`, as in torus:4x4x4; or `ring:SWITCHES`. The default
            depends on the number of hosts.
        warmup: The time from the first byte to the begin of the measured time, such as 10ms.
    """

    connections: Annotated[Numbers | None, Option(usual="1:64")]
    nics: Required[Annotated[Names, Option(example="niagara2-niu")]]
    duration: Annotated[str | None, Option(default="50ms", metavar="TIME")]
    faults: Annotated[Faults | None, Option(metavar="FILE.toml|LINE")]
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
    """The bandwidth of each of many processes on a host that send at the same time.

    Each sends to its own process on the other host. Jain's index is 1 if all processes get the same bandwidth, and 1/n
    if one of n gets everything.

    Attributes:
        processes: Numbers of processes on each host, one row for each. 1:64 is a doubling range, and 1..8 has steps of
            one.
        messages: Messages of each process.
        nics: Cards to compare: names of specs, or paths of spec files.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example dma.channels=4.
        size: Bytes of a message.
    """

    processes: Annotated[Numbers | None, Option(usual="1:64")]
    messages: Annotated[int | None, Option(default=16, least=1, most=65536)]
    nics: Annotated[Names | None, Option(default=["qnix"])]
    overrides: Annotated[Overrides | None, Option()]
    size: Annotated[int | None, Option(default=65536, least=1, metavar="SIZE")]


class GridOptions(NetworkOptions, total=False):
    """The request of a benchmark on a grid of ranks.

    Attributes:
        nics: Cards to compare: names of specs, or paths of spec files.
        sizes: Bytes of a face or of the vector: a list with commas, or a doubling range such as 1Ki:64Ki. Each size is
            a multiple of 8.
        grid: The ranks in each of one to three dimensions, such as 4x4x2. Default: the dimensions of the topology. If
            it has none, three dimensions that are as equal as possible.
        iterations: Number of measured iterations for each size.
        nodes: Number of hosts. Default: the number in the grid or the topology, or 8.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        threads: The number of threads, each with a block of hosts. The result does not depend on it. With cards, each
            thread takes the memory of a run in one thread.
        warmup: Number of iterations before the measured ones.
    """

    nics: Required[Annotated[Names, Option(example="spin-discrete")]]
    sizes: Annotated[Numbers | None, Option(usual={"allreduce": "8Ki:1Mi", "halo": "1Ki:64Ki"})]
    grid: Annotated[str | None, Option(metavar="XxYxZ")]
    iterations: Annotated[int | None, Option(default=4, least=1, most=10000)]
    nodes: Annotated[int | None, Option(least=2, most=U32)]
    overrides: Annotated[Overrides | None, Option()]
    threads: Annotated[int | None, Option(default=1, least=1, most=1024)]
    warmup: Annotated[int | None, Option(default=1, most=10000)]


class HandlerNames(TypedDict):
    """Names of handlers in the program, if they differ from the defaults.

    Attributes:
        completion: Instead of `completion_handler`.
        header: Instead of `header_handler`.
        payload: Instead of `payload_handler`.
    """

    completion: NotRequired[str | None]
    header: NotRequired[str | None]
    payload: NotRequired[str | None]


class MapEntries(TypedDict):
    """Entries of a map.

    Attributes:
        map: The map.
        json: Its entries as JSON, as bpftool prints them.
    """

    map: str
    json: str


class XdpObject(TypedDict):
    """The program of an object for each card of a check.

    Attributes:
        dumps: Maps with their entries in the report of a driver, after the run at the offered rate.
        maps: Entries of maps before each run.
        program: The program, where the object has several.
    """

    dumps: NotRequired[list[str]]
    maps: NotRequired[list[MapEntries]]
    program: NotRequired[str]


class LineRateOptions(TypedDict, total=False):
    """Send packets to handlers at the wire rate, to measure their time and whether the card keeps up.

    The wire rate is a packet every max(g, bytes x G): the card's gap between messages, or the link's time for the
    bytes.

    Attributes:
        handler_memory: Bytes of host memory that only handlers use.
        lossy: Drop packets of the traffic when the packet buffer is full.
        message_packets: Packets of a message. Default: 64; 8 in a check.
        messages: Number of measured messages or frames. Default: the number of messages with 2048 packets, or 20000
            frames; in a check, 4 messages or 256 frames.
        nics: Cards to compare: names of specs, or paths of spec files.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        packet_sizes: Payload bytes of a packet: a list with commas, or a doubling range. Default: 64:4Ki, up to the
            maximum packet of all cards; 64 in a check.
        pfc: Pause the wire while the packet buffer is full (IEEE 802.1Qbb), with --traffic.
        rules: The frames for the handlers of an Ethernet card, such as `udp dport=53` or `word@36&ffff0000=00350000`.
            Several rules each have their own state, and no frame may match two. Default: any.
        seed: Seed of every random stream: the same seed gives the same report to the last byte.
        sensitivity: Also find the three assumed values of each card's spec to which the verdict is most sensitive. Each
            is halved and doubled.
        state: First bytes of the handlers' state, such as 0100ff; zeros follow.
        state_bytes: Bytes of the handlers' state in HPU memory. Default: 1Ki, or the length of the given state.
        traffic: Packets to send instead of equal packets at the wire rate: a capture, such as `capture=FILE.pcap
            rate=wire`, or generated packets, such as `udp dport=53 src=10.0.0.0/8 flows=1M zipf=1.1 size=imix
            rate=40Gbps arrivals=poisson`. Several expressions are for several ports of the card (link.ports), the first
            one for port 0. All run at once until one of them has ended.
        user_header: First bytes of every message; the rest is random.
        xdp_mode: The place of an XDP program in a host's driver. `native`: before the kernel makes its packet buffer;
            or `generic`: after that.
    """

    handler_memory: Annotated[int | None, Option(default=65536, most=1073741824, metavar="SIZE")]
    lossy: Annotated[bool | None, Option(default=False)]
    message_packets: Annotated[int | None, Option(least=1, most=1000000)]
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
    xdp_mode: Annotated[Literal["native", "generic"] | None, Option(default="native")]


class MessagesOptions(NetworkOptions, total=False):
    """The request of a benchmark between hosts.

    Other languages pass its JSON form, and its schema defines the command line's options.

    Attributes:
        nics: Cards to compare: names of specs, or paths of spec files.
        sizes: Message sizes in bytes: a list with commas, or a range. 8:4Mi is a doubling range, and 1..4 has steps of
            one.
        addressing: Mode put: the kind of addresses. The card translates virtual addresses.
        flush_receive: Mode put: the receiver's card drops arriving packets, and the sender determines the end of a
            window. Not for latency.
        interrupt: Mode put: interrupts notify programs of events.
        iterations: Number of measured round trips or windows for each size. Default: 10, but 2 windows if messages are
            longer than 64 KiB.
        loopback: Mode put: puts stay within one host, and go through its card.
        modes: Modes, which give the answering side, for example rdma or spin-stream; all modes of the card if left out.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        pattern: `pair`: rank 0 sends to rank 1; `bidirectional`: both send at the same time; or `incast:N`: N hosts
            send to one more host at the same time.
        peer: The card of every host except rank 0, if it differs. Overrides do not apply to it.
        poll: Mode put: programs poll for events. If left out, the card's specification decides.
        pong_size: Mode put: bytes of the answer in a ping-pong; 8 if left out.
        sink: Mode put: the kind of memory into which messages are put.
        source: Mode put: the kind of memory from which messages are put.
        warmup: Number of round trips or windows before the measured ones.
        window: Number of messages in a window; not for latency.
    """

    nics: Required[Annotated[Names, Option(example="spin-discrete")]]
    sizes: Annotated[Numbers | None, Option(usual={"bandwidth": "8:4Mi", "latency": "8:4Mi", "message-rate": "8:4Ki"})]
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


class PcieOptions(TypedDict, total=False):
    """The tests of pcie-bench: a card's reads and writes of host memory over PCI Express.

    The measured points are all combinations of the given values. Without costs of the card's DMA engines in its spec,
    the figures are those of the link.

    Attributes:
        nics: Cards to compare: names of specs, or paths of spec files.
        sizes: Sizes of a transfer in bytes: a list with commas, or a range. 8:2Ki is a doubling range, and 63..65 has
            steps of one.
        caches: States of the host's cache: hwarm (written by the host), dwarm (by the card), cold, dthrash (all buffers
            written by the card).
        card_offsets: Offsets from a line of the card's memory, in bytes.
        host_offsets: Offsets from a line of the host, in bytes.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example bus.engines.count=4.
        patterns: Patterns of addresses: seq, rand.
        samples: Number of measured transfers in a test of latency. A test of bandwidth measures 16 times this number.
        tests: Tests: LAT_CMD_RD, LAT_CMD_WRRD, LAT_DMA_RD, LAT_DMA_WRRD, BW_DMA_RD, BW_DMA_WR, BW_DMA_RW.
        windows: Windows of host memory in bytes, multiples of 64.
    """

    nics: Required[Annotated[Names, Option(example="nfp-6000")]]
    sizes: Annotated[Numbers | None, Option(usual="8:2Ki")]
    caches: Annotated[Names | None, Option(default=["hwarm"], metavar="STATE[,STATE]")]
    card_offsets: Annotated[Numbers | None, Option(default=[0])]
    host_offsets: Annotated[Numbers | None, Option(default=[0])]
    overrides: Annotated[Overrides | None, Option()]
    patterns: Annotated[Names | None, Option(default=["seq"], metavar="PATTERN[,PATTERN]")]
    samples: Annotated[int | None, Option(default=256, least=1, most=1048576)]
    tests: Annotated[Names | None, Option(default=["LAT_DMA_RD"], metavar="TEST[,TEST]")]
    windows: Annotated[Numbers | None, Option(default=[8192])]


class RegistrationOptions(TypedDict, total=False):
    """The cost of copying a message into registered memory, or of registering the memory of the message.

    Each row has the CPU time until the card may fetch a message of that size. The crossover below is the size from
    which on locking and translating takes no longer than copying.

    Attributes:
        sizes: Sizes in bytes: a list with commas, or a doubling range such as 64:2Mi.
        nics: Cards to compare: names of specs, or paths of spec files.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example kernel.pin='3 us'.
    """

    sizes: Annotated[Numbers | None, Option(usual="64:2Mi")]
    nics: Annotated[Names | None, Option(default=["qnix"])]
    overrides: Annotated[Overrides | None, Option()]


class StreamOptions(TypedDict, total=False):
    """Streams on many connections between two hosts: the throughput, and its cost on the measured host.

    Every connection has a thread at each end, which sends or receives without a pause, as iperf3 does. The sweep varies
    one parameter at a time. When it varies the size of calls, it uses 32 connections and all CPUs. When it varies the
    number of connections, it uses calls of 64 KiB and all CPUs.

    Attributes:
        nics: Cards to compare, of Ethernet: names of specs, or paths of spec files.
        connections: Numbers of connections. 1:64 is a doubling range, and 1..8 has steps of one. Default: 32.
        cpus: Numbers of CPUs that the measured host's operating system uses, from the first core on. Default: all.
        direction: Whether the measured host receives or transmits.
        duration: The measured time, such as 50ms.
        faults: Faults of the network: a TOML file, or a line such as
            loss=1e-3,corrupt=1e-4,duplicate=1e-3,reorder=1e-3:5us,burst=4,seed=7,fail=hosts.1@2ms.
        flow_control: Flow control of switches: `credits`; `none`: switches drop packets; or `pfc`: they pause senders.
            Options as in none,buffer=1Mi,per=shared,alpha=1/2 or
            pfc,buffer=256Ki,xoff=128Ki,xon=120Ki,headroom=40Ki,quanta=65535. Default: credits.
        io_sizes: Bytes of each call that sends or receives: a list with commas, or a doubling range such as 64:64Ki.
            Default: 64 KiB.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example
            interrupts.packets=1.
        peer: The card of the other host, if it differs. Overrides do not apply to it.
        seed: Seed of all random streams: the same seed gives the same report to the last byte.
        topology: Topology of the network: `pair`; `star`: hosts around a switch; `fat-tree:PORTS`, as in fat-tree:36,
            or `fat-tree:PORTS:LEVELS:ROUTING`; `torus:XxYxZ`, as in torus:4x4x4; or `ring:SWITCHES`. The default
            depends on the number of hosts.
        warmup: The time from the first byte to the begin of the measured time, such as 10ms.
    """

    nics: Required[Annotated[Names, Option(example="niagara2-niu")]]
    connections: Annotated[Numbers | None, Option()]
    cpus: Annotated[Numbers | None, Option()]
    direction: Annotated[StreamDirection | None, Option(default="receive", metavar="receive|transmit")]
    duration: Annotated[str | None, Option(default="50ms", metavar="TIME")]
    faults: Annotated[Faults | None, Option(metavar="FILE.toml|LINE")]
    flow_control: Annotated[str | None, Option(metavar="credits|none|pfc[,KEY=VALUE]")]
    io_sizes: Annotated[Numbers | None, Option()]
    overrides: Annotated[Overrides | None, Option()]
    peer: Annotated[Place | None, Option(metavar="NIC")]
    seed: Annotated[int | None, Option(default=1)]
    topology: Annotated[str | None, Option(metavar="NAME")]
    warmup: Annotated[str | None, Option(default="10ms", metavar="TIME")]


class TorusOptions(TypedDict, total=False):
    """Random traffic on a torus of routers: latency and accepted throughput at each offered load.

    The packets of a node enter an unbounded queue at random times, and go from there to the node's router. Only the
    links and routers of the card take part, not the hosts or the rest of the card.

    Attributes:
        nics: Cards to compare: names of specs, or paths of spec files. Only their links and routers are used.
        duration: The measured time, such as 20us. The default is 20us, or the time of ten packets on the slowest link
            if that is longer.
        load: Offered loads as fractions of a link's bandwidth: a list with commas, or a range. 0.1:1.0 has steps of
            0.1, and 0.1:1.0:0.05 has steps of 0.05.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example switch.buffer=8.
        packet: Payload bytes of a packet.
        patterns: Destinations of packets: neighbour, uniform, transpose, alltoall, bit-complement or tornado.
        seed: Seed of all random streams: the same seed gives the same report to the last byte.
        topology: The torus, such as torus:8x8x8.
        warmup: The time before the measured time, such as 10us. The default is 10us, or twice the time of a single
            packet over the longest route if that is longer.
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
        climbers: The number of processes that climb. Each is on a separate microengine, and the manager is on one more.
        distances: `table`: distances from a table in the nearest memory that holds it; `root`: an integer square root
            each time, for EUC_2D with whole coordinates. Both are exact.
        job: The number of climbs in a job for the card. Default: ten for each climber.
        nic: The card: a name, or the path of a specification file.
        overrides: Changes to the card, `KEY=VALUE` with a unit where the key has one, for example hpu.clock="800 MHz".
        restarts: The total number of climbs, each from a random tour.
        resume: A file that keeps finished jobs. A later run resumes from it.
        seed: The seed of the random tours.
    """

    climbers: Annotated[int | None, Option(default=59, least=1, most=U32)]
    distances: Annotated[Distances | None, Option(default="table", metavar="table|root")]
    job: Annotated[int | None, Option(least=1, most=U32)]
    nic: Annotated[Place | None, Option(default="nfp-4000", metavar="NAME")]
    overrides: Annotated[Overrides | None, Option()]
    restarts: Annotated[int | None, Option(default=200, least=1, most=U32)]
    resume: Annotated[Place | None, Option(metavar="FILE")]
    seed: Annotated[int | None, Option(default=1, most=U32)]


class XdpOptions(TypedDict, total=False):
    """Run an XDP program in a host's driver, to measure the highest rate without loss and the cost of a frame.

    Frames come at the rate of the traffic, and then at other rates. A hash of addresses and ports spreads them over the
    CPUs.

    Attributes:
        nics: Cards to compare: names of specs, or paths of spec files.
        cpus: Numbers of CPUs that take frames, each with a receive channel: 1,2,4. Default: the CPUs of the card's
            interrupts.
        lossy: Frames of the traffic may be lost.
        mode: `native`: in the driver, before the kernel makes its packet buffer; or `generic`: after that.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example receive.entries=512.
        program: The program, where the object has several.
        seed: Seed of every random stream: the same seed gives the same report to the last byte.
        traffic: Frames to send, such as `udp dport=53 flows=1M size=imix rate=40Gbps`, or `capture=FILE.pcap
            rate=wire`.
    """

    nics: Required[Annotated[Names, Option(example="ethernet-100g")]]
    cpus: Annotated[Numbers | None, Option()]
    lossy: Annotated[bool | None, Option(default=False)]
    mode: Annotated[Literal["native", "generic"] | None, Option(default="native")]
    overrides: Annotated[Overrides | None, Option()]
    program: Annotated[str | None, Option(metavar="NAME")]
    seed: Annotated[int | None, Option(default=1)]
    traffic: Annotated[str | None, Option(default="udp size=64 src=10.0.0.0/8 flows=1Ki", metavar="EXPRESSION")]


class ByRank(TypedDict):
    """The times of each rank, by rank.

    Attributes:
        finish_ns: The times at which ranks end.
        computing_ns: The times with a calculation.
        communicating_ns: The times with messages in flight.
        overlapped_ns: The times with both.
    """

    finish_ns: list[float]
    computing_ns: list[float]
    communicating_ns: list[float]
    overlapped_ns: list[float]


MessageMode = Literal["host", "card"]
"""Says where messages are matched, copied and fetched."""


class ScheduleManifest(TypedDict):
    """The inputs that reproduce a run on cards.

    Attributes:
        specs: The cards, by name.
        overrides: `--set` overrides, as given.
        modes: The modes, which say where messages are executed.
        topology: The topology.
        seed: The seed.
        compiler: The handlers that executed messages, by card. The caller compiles them and fills in this field.
        faults: The faults of the network, as given.
        flow_control: The flow control of the network, as given, if any.
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


class LogGopsParameters(TypedDict):
    """The parameters of LogGOPS, as the user writes them.

    Attributes:
        latency: L: the latency between hosts.
        overhead: o: the overhead of a CPU for a message.
        gap: g: the gap between the starts of two messages at an interface.
        gap_per_byte: G: the gap for each byte after the first of a message, as a time or a bandwidth: 6ns, 400Gb/s.
        overhead_per_byte: O: the overhead for each byte after the first of a message.
        eager_bytes: S: the maximum length of a message that is sent at once, in bytes. The sender of a longer message
            waits for the receive.
    """

    latency: str
    overhead: str
    gap: str
    gap_per_byte: str
    overhead_per_byte: str
    eager_bytes: int


class RankSpread(TypedDict):
    """Statistics of a time over all ranks.

    Attributes:
        min_ns: The shortest time.
        mean_ns: The mean time, rounded down to a picosecond.
        max_ns: The longest time.
    """

    min_ns: float
    mean_ns: float
    max_ns: float


class CompareRow(TypedDict):
    """The result of a schedule on one card.

    Attributes:
        nic: The name of the row: the card, or loggops. In a mode other than host, / and the mode follow.
        finish_ns: The time at which the last rank ends.
        last_rank: The first rank that ends at this time.
        finish: The times at which ranks end.
        computing: The computation times of ranks.
        communicating: The communication times of ranks: the times with messages in flight. A send counts from its start
            to its end. A receive counts from the time at which its message was sent.
        exposed: The times in which ranks communicate and do not compute.
        overlap: The fraction of communication time in which the rank also computes, over all ranks; 0 without
            communication.
        mode: The mode, which says where messages are executed. LogGOPS has none.
        stages: The stages of the critical path to the end of the last rank. LogGOPS has none.
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


class CompareReport(TypedDict):
    """The report of a schedule on several cards.

    Attributes:
        version: The version of nicety.
        file: The file of the schedule.
        manifest: The inputs that reproduce the runs.
        ranks: Number of ranks.
        operations: Number of operations.
        messages: Number of messages.
        rows: One row for each card, and one for LogGOPS if requested.
        by_rank: The times of each rank, from which a row is computed. The keys are the names of rows.
        parameters: The parameters of LogGOPS, as given, if LogGOPS was requested.
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


Compat = Literal["loggopsim"]
"""Another simulator, with rules that a run can follow."""


class Converted(TypedDict):
    """The report of a conversion.

    Attributes:
        input: The file that was read.
        output: The file that was written.
        format: The format of the written file: `text` or `binary`.
        ranks: Number of ranks.
        operations: Number of operations.
    """

    input: str
    output: str
    format: str
    ranks: int
    operations: int


class Generated(TypedDict):
    """The report of a generated schedule.

    Attributes:
        pattern: The pattern.
        output: The file that was written.
        ranks: Number of ranks.
        operations: Number of operations.
    """

    pattern: str
    output: str
    ranks: int
    operations: int


GoalNetwork = Literal["loggops", "packets"]
"""The network of a run."""


class ScheduleInfo(TypedDict):
    """Statistics of a schedule.

    Attributes:
        file: The file.
        ranks: Number of ranks.
        operations: Number of operations, over all ranks.
        sends: Number of sends.
        recvs: Number of receives.
        calcs: Number of calculations.
        bytes: Bytes of all sends.
        calc_ns: Nanoseconds of all calculations, summed over all CPUs.
        dependencies: Number of dependencies between operations.
        depth: Number of operations in the longest chain of dependencies within a rank.
        degree: Maximum number of peers of a rank. A peer is another rank with which it exchanges messages.
        rank_operations: Maximum number of operations of a rank.
        cpus: Maximum number of CPUs of a rank.
        nics: Maximum number of network interfaces of a rank.
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


class ScheduleReport(TypedDict):
    """The report of a schedule's run: the finish times of its hosts.

    Attributes:
        version: The version of nicety.
        file: The file of the schedule.
        network: The network.
        threads: Number of threads of the run. It is one by LogGOPSim's rules, if the latency is 0, and on cards with a
            capture.
        ranks: Number of ranks.
        events: Number of executed operations plus number of arrived messages, as LogGOPSim counts events.
        operations: Number of executed operations.
        messages: Number of arrived messages.
        finish_ns: For each host, the time at which its CPUs finished. On cards, it is the end of the host's last
            operation.
        max_finish_ns: The latest of these times.
        max_host: The first host that has the latest time.
        communicating_ns: For each host, the time with a message in flight. A send counts from its start to its end. A
            receive counts from the time at which its message was sent.
        compat: The simulator with the rules that were followed, if they are not nicety's own.
        computing_ns: For a run on cards: for each host, the time with a calculation.
        manifest: The inputs that reproduce a run on cards.
        mode: For a run on cards: the mode, which says where messages were executed.
        nic: The card that executed every message.
        noise: For a run by LogGOPS: background noise on the hosts' CPUs, as given, if any.
        overlapped_ns: For each host, the time with both a calculation and a message in flight.
        parameters: The parameters of LogGOPS, as given.
        seed: The seed of the noise.
        stages: The stages of the critical path to the end of the last host, if requested. Their sum is the latest
            finish time.
        unexecuted: Number of operations that were not executed, by LogGOPSim's rules. They depend on each other in a
            cycle, or on the end of a send that does not end. A send does not end if its message is long and its receive
            is not, or the other way round.
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
    """The report of a schedule made from traces.

    Attributes:
        output: The file that was written.
        ranks: Number of ranks.
        calls: Number of calls in the traces.
        operations: Number of operations in the schedule.
        ambiguous_calls: Number of calls with an effect that a trace does not show, by name. For example, `MPI_Test` may
            or may not have ended a request.
        out_of_order_calls: Number of calls that began before the previous call ended, by the clock of the trace.
    """

    output: str
    ranks: int
    calls: int
    operations: int
    ambiguous_calls: dict[str, int]
    out_of_order_calls: int


class CompareOptions(NetworkOptions, total=False):
    """Run a schedule on several cards, and compare the finish, computation and communication times of its ranks.

    Attributes:
        nics: Cards to compare: names of specs, or paths of spec files.
        eager_bytes: S: the maximum length of a message that is sent at once, in bytes. The sender of a longer message
            waits for the receive.
        gap: g: the gap between the starts of two messages at an interface.
        gap_per_byte: G: the gap for each byte after the first of a message, as a time or a bandwidth: 6ns, 400Gb/s.
        latency: L: the latency between hosts.
        modes: `host`: the library on the host executes messages; `card`: handlers on the card execute them. Default:
            host.
        network: loggops: compare with LogGOPS, too.
        overhead: o: the overhead of a CPU for a message.
        overhead_per_byte: O: the overhead for each byte after the first of a message.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        threads: The number of threads, each with a block of hosts. The result does not depend on it. With cards, each
            thread takes the memory of a run in one thread.
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
        ranks: The number of ranks.
        size: Bytes of the message, of the reduced vector, of a face, or of the data for each rank in an alltoall. For a
            training step: bytes of all gradients, and also of the tokens that a rank sends to all experts together.
        compute: The duration of a calculation, such as 20us, in patterns with calculations: an addition of two vectors,
            a stage, or a layer.
        iterations: Number of repetitions of the pattern by each rank, one after another.
        layers: The number of layers in a training step.
    """

    ranks: Required[Annotated[int, Option(least=1, most=4294967294)]]
    size: Required[Annotated[int, Option(metavar="SIZE")]]
    compute: Annotated[str | None, Option(default="0", metavar="TIME")]
    iterations: Annotated[int | None, Option(default=1, least=1, most=1000000)]
    layers: Annotated[int | None, Option(default=4, least=1, most=10000)]


class ScheduleOptions(NetworkOptions, total=False):
    """Run a schedule, and report the finish time of each host.

    The network is LogGOPS. If a card is named, it is a network of packets between hosts with this card.

    Attributes:
        breakdown: For a run on cards: also report the stages of the critical path to the end of the last host. This
            takes more memory and time.
        compat: Follow the rules of LogGOPSim, including its oddities, in place of nicety's own rules.
        eager_bytes: S: the maximum length of a message that is sent at once, in bytes. The sender of a longer message
            waits for the receive.
        gap: g: the gap between the starts of two messages at an interface.
        gap_per_byte: G: the gap for each byte after the first of a message, as a time or a bandwidth: 6ns, 400Gb/s.
        latency: L: the latency between hosts.
        mode: For a run on cards: `host` if the library on the host executes messages, or `card` if handlers on the card
            do. Default: host.
        network: The network: loggops, or packets between cards. Default: packets if a card is named.
        nic: The card of all hosts: a name, or the path of a specification file. It executes every message, over a
            network of packets.
        overhead: o: the overhead of a CPU for a message.
        overhead_per_byte: O: the overhead for each byte after the first of a message.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        threads: The number of threads, each with a block of hosts. The result does not depend on it. With cards, each
            thread takes the memory of a run in one thread.
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


class ExecFallback(TypedDict):
    """Calls that MPI executed for one reason.

    Attributes:
        reason: communicator: it does not have all ranks in their order. datatype, operator: handlers cannot reduce it.
            length: the vector is longer than the card's memory for it. empty: no bytes. arguments: invalid. alone: the
            program has one process. set-up: the card had no room, or MPI was not started by MPI_Init. cost: MPI was
            faster in a trial before the run.
        calls: The number of calls.
    """

    reason: str
    calls: int


class ExecGoal(TypedDict):
    """A schedule of a program's operations.

    Attributes:
        file: The file.
        operations: The number of operations of all ranks.
        unmatched_messages: Messages that were never received. The schedule does not have them.
        accesses: Accesses to registered memory. A schedule cannot have them.
    """

    file: str
    operations: int
    unmatched_messages: int
    accesses: int


class ExecOffloaded(TypedDict):
    """The dispositions of the calls of one collective operation, summed over all processes.

    Attributes:
        name: The operation.
        offloaded_calls: Calls that the cards executed.
        offloaded_bytes: Bytes of the buffers of these calls.
        fallback_calls: Calls that MPI executed.
        fallbacks: Calls that MPI executed, by reason.
    """

    name: str
    offloaded_calls: int
    offloaded_bytes: int
    fallback_calls: int
    fallbacks: list[ExecFallback]


class ExecRankOffload(TypedDict):
    """The counts of one process's calls of collective operations.

    Attributes:
        set_up_ns: The virtual time in MPI_Init for putting handlers and match entries on the card, and for the
            agreement of all ranks about that.
        offloaded_calls: Calls that the cards executed.
        fallback_calls: Calls that MPI executed.
    """

    set_up_ns: float
    offloaded_calls: int
    fallback_calls: int


class ExecRank(TypedDict):
    """The report of one process.

    Attributes:
        rank: The rank of the process.
        finish_ns: The virtual time at which the process closed the network.
        sends: Messages that the process sent, and its accesses to registered memory.
        sent_bytes: Bytes of these messages and accesses.
        receives: Messages that the process received.
        calls: Network calls of the process, including polls.
        computing_ns: Virtual time between the calls of the process, until it closed the network. It consists of
            measured CPU time and the cost of clocks.
        sleeping_ns: Virtual time in which the process slept.
        calling_ns: Virtual time in calls, except looks at queues and waits.
        polling_ns: Virtual time in looks at queues, except those that `waiting_ns` contains.
        waiting_ns: Virtual time in waits for the network. In calls of MPI that wait, it contains the looks that find
            nothing.
        external_wait_ns: Virtual time in waits outside the simulation.
        offload: The counts of the process's calls of collective operations, if cards execute some operations.
        signal: The signal that ended the process after it had closed the network, if known.
        status: The exit status of the process after it had closed the network, if it is known and not 0.
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
    polling_ns: float
    waiting_ns: float
    external_wait_ns: float
    offload: NotRequired[ExecRankOffload]
    signal: NotRequired[int]
    status: NotRequired[int]


Launcher = Literal["mpich", "openmpi", "none"]
"""The launcher of a program's processes."""


class ExecReport(TypedDict):
    """The report of a run of a program.

    Attributes:
        version: The version of nicety.
        program: The program, followed by its arguments.
        nic: The card of all hosts.
        manifest: The inputs that reproduce the run.
        compute: The virtual time that CPU time of a process costs.
        launcher: The launcher of the processes.
        ranks_per_node: The number of processes on each host.
        status: The exit status of the program or its launcher. If there are several, it is the first status that is not
            0.
        ranks: The processes, by rank.
        max_finish_ns: The virtual time at which the last process closed the network.
        goal: The schedule of the program's operations, if requested.
        offload: The dispositions of calls of collective operations, if cards execute some operations.
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


class ExecOptions(NetworkOptions, total=False):
    """Run a program on simulated hosts, with one host for each process.

    Attributes:
        nic: The card of all hosts: a name, or the path of a specification file.
        clock_cost: The virtual time of a read of a clock.
        compute: The virtual time that CPU time of a process costs: none, measured (as long as the CPU time), or a
            factor of the CPU time.
        goal: A file for the schedule of the program's operations; with `.bin`, in the binary format.
        offload: Collective operations of MPI that cards execute by handlers: bcast, barrier, allreduce (unless MPI is
            faster), or allreduce=always.
        overrides: Changes to the cards, `KEY=VALUE` with a unit where the key has one, for example hpu.cores=8.
        patience: Number of looks at empty queues, summed over all processes, without another event. After more looks,
            the processes count as waiting for each other.
        poll_cost: The virtual time of a look at an empty completion queue.
        ranks_per_node: The number of processes on each host. The processes of a host share its card, its bus and its
            CPUs.
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
