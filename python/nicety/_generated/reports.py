"""Reports of nodes, cards and links after a run.

Generated from the types in Rust by
`NICETY_WRITE=1 cargo test --locked -p nicety-bench --test all -- python_types`.
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
        handler_cache_wait_cycles: Cycles of loads and stores beyond those of hits, and waits of atomic operations for
            other caches.
        handlers_failed: Failed runs: stopped, or with an error or an invalid return code.
        hpu_memory_bytes: Bytes of HPU memory in use: its programs' data and its states.
        hpu_memory_peak_bytes: The maximum of that at any time.
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
    hpu_memory_peak_bytes: int
    messages_refused: int


@dataclass(frozen=True)
class ChannelReport:
    """The counters of a card with microengines: of its channels, its port, and its microengines.

    Attributes:
        posted: Mailboxes that the host posted.
        pushed: Mailboxes that the card pushed, each with an interrupt.
        transfers: DMA transfers of indirect messages, one for each page.
        transferred_bytes: Bytes of the successful transfers.
        dma_errors: DMA transfers that failed.
        retries: Resent page lists.
        dropped: Invalid mailboxes, which were ignored.
        pages_pinned: Pages of the host pinned now.
        port: Counters of the card's Ethernet port.
        microengines: The microengines with a program.
        further_cards: The further cards of the host, from card 1 on.
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
    further_cards: list[FurtherCard]


@dataclass(frozen=True)
class EthernetReport:
    """A host's Ethernet card, its protocols and its threads.

    Attributes:
        frames_sent: Frames sent.
        frames_received: Frames received into host memory.
        ring_full: Frames dropped because their receive ring was full.
        too_long: Frames dropped because they are longer than a receive buffer.
        fcs_errors: Frames dropped because their frame check sequence was wrong.
        unknown_destination: Frames sent to an address without a station, which nobody takes.
        fetches: Reads that fetched descriptors.
        receive_interrupts: Interrupts raised for received frames.
        transmit_interrupts: Interrupts raised for sent frames because the driver waited for them.
        retransmissions: TCP segments sent again.
        dropped: Frames that the protocols dropped.
        backlog_full: Frames dropped because the backlog of a kernel thread was full.
        packets: Packets delivered to host memory: frames, or several frames that the card joined.
        channels: Frames by receive channel.
        soft_rings: Frames by soft ring.
        groups: CPU time by function group.
        busy_ps: CPU time of all groups, in picoseconds.
        handlers: Handled interrupts of receive channels.
        handler_busy_ps: CPU time of their handlers before they took frames, in picoseconds.
        system_calls: System calls.
        context_switches: Context switches of the host's CPUs.
        wakes: Wake-ups of sleeping threads.
        migrations: Migrations of threads to another CPU.
        cross_calls: Calls from one CPU of the host to another.
        interrupts: Interrupts of the host's CPUs.
        rules: Disposition of the frames of each rule of handlers.
        xdp: Frames that met XDP programs in the driver; none without a program.
    """

    frames_sent: int
    frames_received: int
    ring_full: int
    too_long: int
    fcs_errors: int
    unknown_destination: int
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
    xdp: XdpReport | None


@dataclass(frozen=True)
class Failure:
    """A failure on a card in a completed run.

    Attributes:
        rank: The rank of its card.
        kind: `trap`: an error stopped a handler or process. `fail`: a handler or process returned a failure or an
            invalid code. `budget`: an application used up a budget. `refused`: the card refused a command. `lost`: the
            network lost or damaged packets of this node, and nothing resends them.
        text: Description, with the source line if known.
        times: Number of occurrences.
    """

    rank: int
    kind: str
    text: str
    times: int


@dataclass(frozen=True)
class FurtherCard:
    """The counters of a further card of a host.

    Such a card has no port to the network.

    Attributes:
        card: The number of the card in the host.
        posted: Mailboxes that the host posted.
        pushed: Mailboxes that the card pushed, each with an interrupt.
        transfers: DMA transfers of indirect messages, one for each page.
        transferred_bytes: Bytes of the successful transfers.
        dma_errors: DMA transfers that failed.
        retries: Resent page lists.
        dropped: Invalid mailboxes, which were ignored.
        pages_pinned: Pages of the host pinned now.
        microengines: The microengines with a program.
    """

    card: int
    posted: int
    pushed: int
    transfers: int
    transferred_bytes: int
    dma_errors: int
    retries: int
    dropped: int
    pages_pinned: int
    microengines: list[MicroengineReport]


@dataclass(frozen=True)
class GroupReport:
    """The cost of a function group of the kernel or of programs.

    Attributes:
        group: Its name.
        busy_ps: CPU time, in picoseconds.
        instructions: Instructions.
        l1_misses: Loads that missed a core's first-level cache.
        shared_cache_misses: Of these, loads that also missed the shared cache.
        tlb_misses: Misses of the cores' TLBs for data.
        code_tlb_misses: Misses of the cores' TLBs for code.
    """

    group: str
    busy_ps: int
    instructions: int
    l1_misses: int
    shared_cache_misses: int
    tlb_misses: int
    code_tlb_misses: int


@dataclass(frozen=True)
class InterfaceReport:
    """Counters of a card with virtual network interfaces.

    Attributes:
        sends: Number of Send commands taken.
        programmed_io_sends: Number of Send commands for messages that were sent by programmed I/O.
        receives: Number of Receive commands taken.
        packets_sent: Number of packets handed to the link, or to another interface of the card.
        packets_received: Number of packets received.
        buffered: Number of packets put into the card's memory because no receive matched.
        buffer_stalls: Number of times that the card had no memory for a packet. The packet stayed in the packet buffer.
        strays: Number of messages dropped because their interface was not open, or was closed before a receive took
            them.
        unusable: Number of invalid or damaged packets.
        doorbells: Number of doorbells set.
        refused: Number of calls refused because a resource did not belong to the process.
    """

    sends: int
    programmed_io_sends: int
    receives: int
    packets_sent: int
    packets_received: int
    buffered: int
    buffer_stalls: int
    strays: int
    unusable: int
    doorbells: int
    refused: int


@dataclass(frozen=True)
class KernelReport:
    """Counters of a host's operating system.

    Attributes:
        calls: Number of system calls.
        pins: Number of times that the kernel locked and translated pages.
        pages_pinned: Number of pages locked and translated.
        unpins: Number of times that the kernel unlocked pages.
        interrupts: Number of interrupts that ran a handler.
        wakes: Number of thread wake-ups.
    """

    calls: int
    pins: int
    pages_pinned: int
    unpins: int
    interrupts: int
    wakes: int


@dataclass(frozen=True)
class LinkReport:
    """The effects of faults on one direction of a link.

    Attributes:
        link: The name of the direction, such as `hosts.0 -> switch.0`.
        packets: Packets on the link, including retransmissions and acknowledgements.
        lost: Packets that never arrived.
        corrupted: Packets with a damaged byte.
        duplicated: Packets that were sent twice.
        reordered: Packets that were delayed.
        resent: Packets among `packets` that the link itself resent after loss or damage, if it does so.
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
    """A microengine with a program.

    Its cycles count from the beginning of the simulation.

    Attributes:
        microengine: Its number.
        cycles_computing: Cycles in which a context computed.
        cycles_switching: Cycles of switches between contexts.
        cycles_asleep: Cycles in which every context with a process slept.
        cycles_idle: Cycles in which no context had a process.
        switches: Number of switches.
        processes: The contexts with a started process.
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


@dataclass(frozen=True)
class NodeCounts:
    """The counters of a node: those that every node has, and those of its card's design.

    Attributes:
        nic: The name of the node's card.
        host_memory_read_bytes: Bytes read from the host's memory by the card, or by the CPUs into their cache.
        host_memory_written_bytes: Bytes written to the host's memory by the card, or by the CPUs from their cache.
        kernel: Entries into the host's operating system.
        failures: Failures on this node. `Run.failures` has the failures of all nodes.
        refused_commands: Commands of handlers that the card refused. `failures` describes the same commands in text.
        card: The counters of the card. Their type depends on the card's design; `None` if a design is registered by
            another package.
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
    """Counters of a card's port, through which processes send frames.

    Attributes:
        frames_sent: Frames sent by processes, including those that forward messages between hosts.
        frames_received: Frames that processes took.
        frames_damaged: Damaged or misaddressed frames, which were dropped.
        frames_unclaimed: Frames for queues that no process had opened, which were dropped.
        frames_waiting: Frames waiting for a process.
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
    """Counters of a card with Portals: of messages, handlers, and reliable transport.

    Attributes:
        messages_matched: Number of messages that matched an entry.
        messages_dropped: Number of messages that matched no entry, or that the card dropped for another reason.
        first_dropped: The first dropped message, and the reason; None if the card dropped no message.
        handler_runs: Number of completed runs of handlers.
        handler_instructions: Number of instructions that handlers executed.
        handler_cycles: Number of cycles for which handlers held a processor, including their starts and their waits for
            commands.
        handler_lines_printed: Lines of handlers that the card has shown: at most 1000 (`LINES_KEPT`), and the rest of
            one call.
        handler_lines_suppressed: Lines of handlers that it has only counted.
        applications: Resources used by each application.
        transport: Counters of the card's reliable transport.
    """

    messages_matched: int
    messages_dropped: int
    first_dropped: str | None
    handler_runs: int
    handler_instructions: int
    handler_cycles: int
    handler_lines_printed: int
    handler_lines_suppressed: int
    applications: list[ApplicationReport]
    transport: TransportReport


@dataclass(frozen=True)
class ProcessReport:
    """A process on a context of a microengine.

    The context's cycles count from the beginning of the simulation, each with one cause.

    Attributes:
        context: The number of its context.
        name: The last function started there.
        returned: The result of its function. `None` while it runs, or if it was stopped.
        trapped: The reason and line of a stop. `None` if it was not stopped.
        cycles_computing: Cycles of instructions, and of core units for which the context waits, such as the CRC.
        cycles_asleep: Cycles of waiting for a memory, a signal or a channel.
        cycles_ready: Cycles in which the context was ready while the core ran other contexts, or switched to this
            context.
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
        queue: Its number; 255 is the queue of messages between hosts.
        frames_received: Frames that processes took.
        frames_unclaimed: Frames dropped because they arrived before a process opened the queue.
        frames_waiting: Frames waiting for a process.
    """

    queue: int
    frames_received: int
    frames_unclaimed: int
    frames_waiting: int


@dataclass(frozen=True)
class RdmaReport:
    """The counters of a card with RDMA, and the busy times of its parts.

    Attributes:
        puts: Number of puts posted.
        sends: Number of sends into streaming buffers posted.
        gets: Number of gets posted.
        gets_served: Number of gets that arrived at this card.
        registrations: Number of regions registered by system calls.
        doorbells: Number of writes to the doorbell register.
        ring_full: Number of times that the driver found the transmit ring full.
        descriptors: Number of descriptors fetched.
        fetches: Number of reads of host memory that fetched descriptors.
        packets_sent: Number of packets sent, over the link and to this card.
        packets_received: Number of packets received.
        flushed: Number of received packets that were dropped because the receive side was flushed.
        tlb_hits: Number of page lookups that hit the TLB.
        tlb_misses: Number of page lookups that missed the TLB.
        refused: Number of messages that this card refused.
        refused_by_peer: Number of messages of this card that their receiving card refused.
        events: Number of events written.
        packet_completions: Number of completions written for packets that are not the last of their message.
        events_lost: Number of events lost because a queue was full.
        abandoned: Number of messages given up because one of their packets never arrived. These messages also count as
            refused.
        stale_replies: Number of received reply packets that no pending get expects.
        unusable: Number of invalid or damaged packets, and of invalid messages to the library.
        transmit_busy_ps: Busy time of all transmit engines, in picoseconds.
        receive_busy_ps: Busy time of all receive engines, in picoseconds.
        processor_busy_ps: Busy time of the embedded processor, in picoseconds.
        processor_queue: Peak number of commands that waited for the embedded processor.
        regions: Number of regions registered at the end, including those of the library.
        pages: Number of pages registered at the end.
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
    refused_by_peer: int
    events: int
    packet_completions: int
    events_lost: int
    abandoned: int
    stale_replies: int
    unusable: int
    transmit_busy_ps: int
    receive_busy_ps: int
    processor_busy_ps: int
    processor_queue: int
    regions: int
    pages: int


@dataclass(frozen=True)
class RefusedCommand:
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


@dataclass(frozen=True)
class RuleReport:
    """Disposition of the frames of a rule.

    Attributes:
        rule: The rule.
        frames: Frames that matched it.
        to_host: Of these, frames that handlers sent to the host.
        to_wire: Frames that handlers sent on the wire.
        dropped: Frames that handlers dropped.
        failed: Frames with failed handlers.
    """

    rule: str
    frames: int
    to_host: int
    to_wire: int
    dropped: int
    failed: int


@dataclass(frozen=True)
class TrafficReport:
    """Traffic for a host's card, and the dispositions of its frames.

    Attributes:
        traffic: The expression that describes the traffic.
        rank: The rank with the target card.
        offered: Frames that the tester sent: all frames of the traffic, or those sent before the programs ended.
        offered_bytes: Bytes of the offered frames, without frame check sequences.
        offered_ns: Virtual time that the offered frames take at their rate, until the next frame would be due. For a
            capture, the last frame is followed by a mean gap.
        stalled_ns: Total delay of frames beyond their due times, because the network stalled the tester's link.
        handled: Frames that the card accepted.
        passed: Frames of `handled` that went to the host or out again.
        to_wire: Frames of `handled` that handlers sent out.
        dropped_by_handler: Frames that handlers dropped.
        failed: Frames with a failed handler.
        damaged: Frames with a wrong check sequence.
        dropped_by_overload: Frames dropped by a full buffer, of the card or of a switch.
        lost: Frames lost by faults of the network.
        dropped_at_host: Frames for the host that were dropped because the host had no free receive buffer.
        returned: Frames from hosts and handlers that reached the tester.
        returned_bytes: Bytes of the returned frames, without frame check sequences.
        latency_ns_mean: Mean latency through the card, from the frame's last byte in the packet buffer until the frame
            has left the buffer.
        latency_ns_p50: Median latency: the nearest rank, rounded up by at most 0.2 %. The other percentiles are rounded
            likewise.
        latency_ns_p99: 99th percentile of the latency.
        latency_ns_p999: 99.9th percentile of the latency.
        latency_ns_max: Maximum latency, not rounded.
    """

    traffic: str
    rank: int
    offered: int
    offered_bytes: int
    offered_ns: float
    stalled_ns: float
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
    """Counters of a card's reliable transport.

    Attributes:
        retransmitted: Number of retransmissions.
        corrupted: Number of packets discarded because of a wrong CRC.
        duplicated: Number of duplicates discarded.
        out_of_order: Number of packets discarded because an earlier packet was missing.
        acknowledgements: Number of acknowledgements sent.
        refusals: Number of refusals sent.
        timeouts: Number of timeouts.
        unusable: Without reliable transport: number of packets that were damaged or belonged to no message, and were
            dropped.
    """

    retransmitted: int
    corrupted: int
    duplicated: int
    out_of_order: int
    acknowledgements: int
    refusals: int
    timeouts: int
    unusable: int


@dataclass(frozen=True)
class XdpAborted:
    """Frames with `XDP_ABORTED` at a place of a program.

    Attributes:
        program: The program.
        place: The last line in front of its end, as `firewall.c:31`; without lines in the object, the instruction.
        frames: Frames.
    """

    program: str
    place: str
    frames: int


@dataclass(frozen=True)
class XdpReport:
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
