"""Reports of nodes, cards and links after a run.

Made of the types in Rust by `crates/bench/tests/python_types.rs`, and not to be changed by hand.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ApplicationReport:
    """Resources that an application has used on its card.

    Attributes:
        name: Its name; `default` is that of handlers for which none was given.
        weight: Its weight.
        handler_runs: Completed runs of handlers.
        handler_instructions: Instructions that they executed.
        handler_cycles: Cycles for which they held a processor, including the start and waits for commands.
        handler_stalled_cycles: Of these, cycles of waits for commands and transfers.
        handler_accesses: Instructions that accessed memory, and atomic commands on it.
        handler_shared_accesses: Of these, accesses to levels of memory in which cores wait for one another.
        handler_memory_wait_cycles: Cycles for which they waited there, beside the latency.
        handler_fetch_wait_cycles: Cycles for which they waited for their code, where the card has an instruction cache.
        handler_cache_hits: Loads and stores that found their lines, where the card has data caches.
        handler_cache_misses: Those that did not.
        handler_cache_wait_cycles: Cycles that loads and stores took longer than hits.
        handlers_failed: Failed runs: stopped, or with an error or an invalid return code.
        hpu_memory_bytes: Bytes of HPU memory in use: its programs' data and its states.
        hpu_memory_most_bytes: The maximum of that at any time.
        messages_refused: Messages that failed because the budget was used up before one of their handlers ran.
    """

    name: str
    weight: int
    handler_runs: int
    handler_instructions: int
    handler_cycles: int
    handler_stalled_cycles: int
    handler_accesses: int
    handler_shared_accesses: int
    handler_memory_wait_cycles: int
    handler_fetch_wait_cycles: int
    handler_cache_hits: int
    handler_cache_misses: int
    handler_cache_wait_cycles: int
    handlers_failed: int
    hpu_memory_bytes: int
    hpu_memory_most_bytes: int
    messages_refused: int


@dataclass(frozen=True)
class ChannelReport:
    """A card with microengines: its channels, its port, and its microengines.

    Attributes:
        posted: Mailboxes that the host posted.
        pushed: Mailboxes that the card pushed, an interrupt each.
        transfers: DMA transfers of indirect messages, one a page.
        transferred_bytes: Bytes of the successful transfers.
        dma_errors: DMA transfers that failed.
        retries: Page lists sent again.
        dropped: Mailboxes that were invalid and ignored.
        pages_pinned: Pages of the host that are pinned at present.
        port: Counters of the card's Ethernet port.
        microengines: The microengines that were given a program.
    """

    posted: int
    pushed: int
    transfers: int
    transferred_bytes: int
    dma_errors: int
    retries: int
    dropped: int
    pages_pinned: int
    port: PortReport
    microengines: list[MicroengineReport]


@dataclass(frozen=True)
class EthernetReport:
    """A host's Ethernet card, its protocols and its threads.

    Attributes:
        frames_sent: Frames sent.
        frames_received: Frames received into host memory.
        ring_full: Frames dropped because their receive ring was full.
        too_long: Frames dropped because they are longer than a receive buffer.
        check_errors: Frames dropped because their frame check sequence was wrong.
        no_station: Frames sent to an address that no station has, which nobody takes.
        fetches: Reads that fetched descriptors.
        receive_interrupts: Interrupts raised for received frames.
        transmit_interrupts: Interrupts raised for sent frames, for which the driver waited.
        retransmissions: Segments that TCP sent again.
        dropped: Frames that the protocols dropped.
        backlog_full: Frames dropped because too many waited for a kernel thread.
        packets: Packets that came to host memory: frames, or several that the card has joined.
        channels: Frames by receive channel.
        soft_rings: Frames by soft ring.
        groups: CPU time by function group.
        busy_ps: CPU time of all of them, in picoseconds.
        handlers: Interrupts of receive channels that were handled.
        handler_busy_ps: CPU time of their handlers before they took frames, in picoseconds.
        system_calls: System calls.
        context_switches: Times that a CPU of the host went over to another thread.
        wakes: Threads that were asleep and were woken.
        migrations: Times that a thread went on on another CPU than before.
        cross_calls: Calls from one CPU of the host to another.
        interrupts: Interrupts that the host's CPUs took.
        rules: What became of the frames of each rule of handlers.
    """

    frames_sent: int
    frames_received: int
    ring_full: int
    too_long: int
    check_errors: int
    no_station: int
    fetches: int
    receive_interrupts: int
    transmit_interrupts: int
    retransmissions: int
    dropped: int
    backlog_full: int
    packets: int
    channels: list[int]
    soft_rings: list[int]
    groups: list[GroupReport]
    busy_ps: int
    handlers: int
    handler_busy_ps: int
    system_calls: int
    context_switches: int
    wakes: int
    migrations: int
    cross_calls: int
    interrupts: int
    rules: list[RuleReport]


@dataclass(frozen=True)
class Failure:
    """A failure on a card in a completed run.

    Attributes:
        rank: The rank of its card.
        kind: `trap`, a handler or process was stopped; `fail`, it returned a failure or an invalid return code;
            `budget`, a budget of its application was used up; `refused`, the card refused a command; `lost`, packets
            that it sent were lost or damaged on the way, and nothing sends them again.
        text: Description, and place in the source.
        times: Number of times.
    """

    rank: int
    kind: str
    text: str
    times: int


@dataclass(frozen=True)
class GroupReport:
    """What a function group of the kernel or of programs took.

    Attributes:
        group: Its name.
        busy_ps: CPU time, in picoseconds.
        instructions: Instructions.
        first_misses: Loads that missed a core's first-level cache.
        second_misses: Of these, loads that missed the shared cache, too.
    """

    group: str
    busy_ps: int
    instructions: int
    first_misses: int
    second_misses: int


@dataclass(frozen=True)
class InterfaceReport:
    """Counters of a card with virtual network interfaces.

    Attributes:
        sends: Send commands taken.
        programmed: Of these, messages sent by programmed I/O.
        receives: Receive commands taken.
        packets_sent: Packets handed to the link, or to another interface of the card.
        packets_received: Packets received.
        buffered: Packets put into the card's memory because no receive matched.
        held_back: Times that a packet found no memory and stayed in the packet buffer.
        strays: Messages dropped because their interface was not open.
        unusable: Invalid or damaged packets.
        doorbells: Doorbells set.
        refused: Calls refused because a resource was not the process's.
    """

    sends: int
    programmed: int
    receives: int
    packets_sent: int
    packets_received: int
    buffered: int
    held_back: int
    strays: int
    unusable: int
    doorbells: int
    refused: int


@dataclass(frozen=True)
class KernelReport:
    """Entries into a host's operating system.

    Attributes:
        calls: System calls.
        pins: Times that pages were locked and translated.
        pages_pinned: Pages that were locked and translated.
        unpins: Times that pages were unlocked.
        interrupts: Interrupts whose handlers ran.
        wakes: Threads that were woken up.
    """

    calls: int
    pins: int
    pages_pinned: int
    unpins: int
    interrupts: int
    wakes: int


@dataclass(frozen=True)
class LinkReport:
    """Effects of faults on one direction of a link.

    Attributes:
        link: Its name, such as `hosts.0 -> switch.0`.
        packets: Packets that were put on it, including those sent again and acknowledgements.
        lost: Packets that never arrived.
        corrupted: Packets of which a byte was damaged.
        duplicated: Packets of which a second one followed.
        reordered: Packets that were delayed.
        resent: Those among `packets` that the link sent again, having lost or damaged them; on links that do so.
    """

    link: str
    packets: int
    lost: int
    corrupted: int
    duplicated: int
    reordered: int
    resent: int


@dataclass(frozen=True)
class MicroengineReport:
    """A microengine that was given a program; its cycles are those since the card's beginning.

    Attributes:
        microengine: Its number.
        cycles_computing: Cycles in which some context computed.
        cycles_switching: Cycles in which it switched from one context to another.
        cycles_asleep: Cycles in which every context with a process was asleep.
        cycles_idle: Cycles in which no context had a process.
        switches: Times it switched.
        processes: The contexts on which processes were started.
    """

    microengine: int
    cycles_computing: int
    cycles_switching: int
    cycles_asleep: int
    cycles_idle: int
    switches: int
    processes: list[ProcessReport]


@dataclass(frozen=True)
class NetworkPortReport:
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


@dataclass(frozen=True)
class NodeCounts:
    """A node during a run: counts that every node has, and by design those of its card.

    Attributes:
        nic: The name of the node's card.
        host_memory_read_bytes: Bytes read from the host's memory by the card, or by the CPUs into their cache.
        host_memory_written_bytes: Bytes written to the host's memory by the card, or by the CPUs from their cache.
        kernel: Entries into the host's operating system.
        failures: Failures on this node, as in `Run.failures`.
        refused_commands: Commands of handlers that the card refused; `failures` has these as texts.
        card: Counts of the card, as `portals`, `channels`, `vni` or `rdma`; None if its design is none of nicety's.
    """

    nic: str
    host_memory_read_bytes: int
    host_memory_written_bytes: int
    kernel: KernelReport
    failures: list[Failure]
    refused_commands: list[RefusedCommand]
    card: PortalsReport | ChannelReport | InterfaceReport | RdmaReport | EthernetReport | None


@dataclass(frozen=True)
class PortReport:
    """The port of a card, through which processes send frames.

    Attributes:
        frames_sent: Frames that processes sent, those that forward messages between hosts included.
        frames_received: Frames that processes took.
        frames_damaged: Damaged or misaddressed frames, which were dropped.
        frames_unclaimed: Frames for queues that no process had opened, which were dropped.
        frames_waiting: Frames that wait for a process to take them.
        frames_refused: Invalid frames of messages between hosts, which were dropped.
        envelopes_refused: Invalid envelopes of messages between hosts, which were dropped.
        queues: The queues with traffic, by number.
    """

    frames_sent: int
    frames_received: int
    frames_damaged: int
    frames_unclaimed: int
    frames_waiting: int
    frames_refused: int
    envelopes_refused: int
    queues: list[QueueReport]


@dataclass(frozen=True)
class PortalsReport:
    """A card with Portals: messages, handlers, and its reliable transport.

    Attributes:
        messages_matched: Messages that found a match entry.
        messages_dropped: Messages that found none, or that the card dropped for another reason.
        first_dropped: The first of these, and why it was dropped; None if there was none.
        handler_runs: Completed runs of handlers.
        handler_instructions: Instructions that they executed.
        handler_cycles: Cycles for which they held a processor, including the start and waits for commands.
        handler_lines_shown: Lines of handlers that the card has shown: at most 1000 (`LINES_KEPT`), and the rest of one
            call.
        handler_lines_left_out: Lines of handlers that it has only counted.
        applications: Resources used by each application.
        transport: Counts of its reliable transport.
    """

    messages_matched: int
    messages_dropped: int
    first_dropped: str | None
    handler_runs: int
    handler_instructions: int
    handler_cycles: int
    handler_lines_shown: int
    handler_lines_left_out: int
    applications: list[ApplicationReport]
    transport: TransportReport


@dataclass(frozen=True)
class ProcessReport:
    """A process on a context of a microengine; its cycles are those since the card's beginning, each in one part.

    Attributes:
        context: The number of its context.
        name: The function that was started there last.
        returned: The result of its function; none while it runs, or if it was stopped.
        trapped: Why it was stopped, and at which line; none if it was not.
        cycles_computing: Cycles of instructions, and of units of the core used that hold it, such as the CRC.
        cycles_asleep: Cycles of waiting for a memory, a signal or a channel.
        cycles_ready: Cycles in which it was ready to go on while the core had other contexts to run, or was switching
            to this one.
        cycles_idle: Cycles before its start and after its end.
        instructions: Instructions executed.
        references: References to memories outside the core.
    """

    context: int
    name: str
    returned: int | None
    trapped: str | None
    cycles_computing: int
    cycles_asleep: int
    cycles_ready: int
    cycles_idle: int
    instructions: int
    references: int


@dataclass(frozen=True)
class QueueReport:
    """Counters of a queue of the port.

    Attributes:
        queue: Its number; 255 is that of messages between hosts.
        frames_received: Frames that processes took.
        frames_unclaimed: Frames that came before it was opened, which were dropped.
        frames_waiting: Frames that wait for a process to take them.
    """

    queue: int
    frames_received: int
    frames_unclaimed: int
    frames_waiting: int


@dataclass(frozen=True)
class RdmaReport:
    """A card with RDMA: its counters, and how long its parts have worked.

    Attributes:
        puts: Puts posted.
        sends: Sends into streaming buffers posted.
        gets: Gets posted.
        gets_served: Gets of others that came.
        registrations: Regions registered by system calls.
        doorbells: Writes to the doorbell register.
        ring_full: Times that the transmit ring was full.
        descriptors: Descriptors fetched.
        fetches: Reads that fetched them.
        packets_sent: Packets sent, over the link and to the card itself.
        packets_received: Packets received.
        flushed: Of these, packets dropped because the receive side was flushed.
        tlb_hits: Pages that the TLB had.
        tlb_misses: Pages that it did not have.
        refused: Messages that this card refused.
        refused_elsewhere: Messages of this card that others refused.
        events: Events written.
        events_lost: Events lost because a queue was full.
        abandoned: Of these refused ones, messages given up because a packet of theirs never came.
        late: Packets of replies to gets that had failed.
        unusable: Invalid or damaged packets.
        transmit_busy_ps: How long the transmit engines have worked, all of them together, in picoseconds.
        receive_busy_ps: How long the receive engines have worked, all of them together, in picoseconds.
        processor_busy_ps: How long the embedded processor has worked, in picoseconds.
        processor_queue: Most work that waited for the embedded processor at a time.
        regions: Regions registered at the end, those of the library among them.
        pages: Pages registered at the end.
    """

    puts: int
    sends: int
    gets: int
    gets_served: int
    registrations: int
    doorbells: int
    ring_full: int
    descriptors: int
    fetches: int
    packets_sent: int
    packets_received: int
    flushed: int
    tlb_hits: int
    tlb_misses: int
    refused: int
    refused_elsewhere: int
    events: int
    events_lost: int
    abandoned: int
    late: int
    unusable: int
    transmit_busy_ps: int
    receive_busy_ps: int
    processor_busy_ps: int
    processor_queue: int
    regions: int
    pages: int


@dataclass(frozen=True)
class RefusedCommand:
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


@dataclass(frozen=True)
class RuleReport:
    """What became of the frames of a rule.

    Attributes:
        rule: The rule.
        frames: Frames that it chose.
        to_host: Of these, frames that handlers sent to the host.
        to_wire: Frames that they sent out on the wire.
        dropped: Frames that they dropped.
        failed: Frames on which they failed.
    """

    rule: str
    frames: int
    to_host: int
    to_wire: int
    dropped: int
    failed: int


@dataclass(frozen=True)
class TrafficReport:
    """Traffic for a host's card, and what became of it.

    Attributes:
        traffic: The expression.
        rank: The rank whose card it was for.
        offered: Frames that its tester sent: all, unless the programs had ended before.
        offered_bytes: Their bytes, without frame check sequences.
        offered_ns: How long they take at their rate, until the next one would be due, which of a capture is a mean gap
            behind the last one.
        late_ns: How much later than that the link was free, because the network held frames up.
        handled: Frames that the card took in.
        passed: Of these, frames that went on: to the host, or out again.
        to_wire: Of these, frames that handlers sent out.
        dropped_by_handler: Frames that handlers dropped.
        failed: Frames on which handlers failed.
        damaged: Frames whose check sequence was wrong.
        dropped_by_overload: Frames that found a full buffer, of the card or of a switch, and were dropped.
        lost: Frames that faults of the network lost.
        dropped_at_host: Of the frames for the host, those that it had no buffer for.
        returned: Frames that came to the tester from hosts and handlers.
        returned_bytes: Their bytes, without frame check sequences.
        latency_ns_mean: The latency through the card, from the last byte in the packet buffer until the frame has left
            it: the mean.
        latency_ns_p50: The median, by nearest rank, and at most 0.2 % above it; likewise the following.
        latency_ns_p99: The 99th percentile.
        latency_ns_p999: The 99.9th percentile.
        latency_ns_max: The maximum, exactly.
    """

    traffic: str
    rank: int
    offered: int
    offered_bytes: int
    offered_ns: float
    late_ns: float
    handled: int
    passed: int
    to_wire: int
    dropped_by_handler: int
    failed: int
    damaged: int
    dropped_by_overload: int
    lost: int
    dropped_at_host: int
    returned: int
    returned_bytes: int
    latency_ns_mean: float
    latency_ns_p50: float
    latency_ns_p99: float
    latency_ns_p999: float
    latency_ns_max: float


@dataclass(frozen=True)
class TransportReport:
    """Counts of a card's reliable transport; all zero if it has none.

    Attributes:
        retransmitted: Packets sent again.
        corrupted: Packets discarded because their CRC was wrong.
        duplicated: Duplicates discarded.
        out_of_order: Packets discarded because an earlier one was missing.
        acknowledgements: Acknowledgements sent.
        refusals: Refusals sent.
        timeouts: Timeouts.
        unusable: Without such a transport: packets that came damaged or out of place, and were dropped.
    """

    retransmitted: int
    corrupted: int
    duplicated: int
    out_of_order: int
    acknowledgements: int
    refusals: int
    timeouts: int
    unusable: int
