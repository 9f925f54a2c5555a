//! The bottleneck of a card that does not keep up, from the loads of its parts and from observations of the run.

use super::part::Part;
use super::row::Loads;
use super::verdict::PartRow;
use nicety::{Duration, Time};

/// The fraction of line rate that counts as reached if no resource is overloaded. Handlers with different run times blur the ends
/// of the measured interval.
pub(super) const CLOSE: f64 = 0.99;

/// The minimum busy fraction of an overloaded part. It is busy all the time but for the ends of the run: before the first
/// packets, and behind the last ones.
const NEARLY: f64 = 0.95;

/// Returns the bottleneck, with contexts full for the fraction `full` of the time. Waiting packets then wait for a context,
/// unless `busy` processors hold the contexts.
pub(super) fn limit_of_contexts(limited_by: Option<Part>, full: f64, busy: f64) -> Option<Part> {
    match limited_by {
        Some(Part::PacketBuffer | Part::Waiting) if full >= NEARLY && busy < NEARLY => {
            Some(Part::MessageContexts)
        }
        other => other,
    }
}

/// Whether packets sent at these times were stalled in both halves: recurring stalls of a sender at the wire rate go on forever.
pub(super) fn is_stalled(sent: &[Time], interval: Duration) -> bool {
    let middle = sent.len() / 2;
    let late = |packets: &[Time]| match packets {
        [first, .., last] => last.since(*first).ps() > interval.ps() * (packets.len() - 1) as u64,
        _ => true,
    };
    sent.len() > 1 && late(&sent[..=middle]) && late(&sent[middle..])
}

/// Dispositions of traffic that the card could not take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lost {
    /// Packets dropped by a full packet buffer.
    pub(super) dropped: u64,
    /// Frames without a buffer in the host, as a fraction of the handled packets.
    pub(super) at_host: f64,
    /// Frames that handlers sent and a full output port dropped, as a fraction of the handled packets.
    pub(super) at_link: f64,
    /// Whether the sender was stalled for good.
    pub(super) stalled: bool,
    /// The senders' rate in the second half of the run, over their intended rate.
    pub(super) sent_fraction: f64,
    /// Whether packets stayed longer and longer in the card.
    pub(super) piled_up: bool,
    /// Whether a handler yielded its processor.
    pub(super) parked: bool,
}

/// Observations of the card during the arrival of packets.
#[derive(Clone, Copy)]
pub(super) struct Observations {
    /// All processors were busy all the time.
    pub(super) hpus_busy: bool,
    /// The sender waited for credits.
    pub(super) stalled: bool,
    /// During the stall, packets had all slots of the packet buffer, and only slots were missing.
    pub(super) buffer_full: bool,
    /// The rate achieved over the line rate.
    pub(super) fraction: f64,
}

/// Returns the bottleneck: a resource that is overloaded at line rate, and busy all the time at the achieved rate. `handled` has
/// the loads of the handled packets; after losses they may differ from the packets at line rate.
///
/// Processors that wait for a bus, a link or a lock are busy as a consequence, so they come last. `misses` is the share of their
/// load that is waits for lines of data caches.
pub(super) fn limit(loads: &Loads, handled: &Loads, misses: f64, seen: Observations) -> Option<Part> {
    let processors =
        if misses > 0.0 && loads.hpus - misses <= 1.0 { Part::CacheMisses } else { Part::HandlerCores };
    let Observations { hpus_busy, stalled, buffer_full, fraction } = seen;
    let others = [
        (Part::InstructionIssue, loads.instruction_issue.unwrap_or_default()),
        (Part::MatchingUnit, loads.matching),
        (Part::Link, loads.link),
        (Part::BusToCard, loads.bus_to_card),
        (Part::BusToHost, loads.bus_to_host),
        (Part::SendEngine, loads.send_engine.unwrap_or_default()),
        (Part::PacketWriter, loads.packet_writer.unwrap_or_default()),
        (Part::ClusterDma, loads.cluster_dma.unwrap_or_default()),
        (Part::PacketSender, loads.packet_sender.unwrap_or_default()),
        (Part::MemoryChannel, loads.memory_channel.unwrap_or_default()),
        (Part::CommandEngine, loads.command_engine.unwrap_or_default()),
        (Part::Lock, loads.lock),
        (Part::ContendedWord, loads.contended_word),
        (Part::MemoryBank, loads.memory_bank),
    ];
    // The first of equal loads: a full link keeps its engine busy.
    let most_loaded = others.into_iter().rev().max_by(|a, b| a.1.total_cmp(&b.1)).expect("there are some");
    let busy_of = |(part, load): (Part, f64)| handled.of(part).unwrap_or(load) * fraction;
    // A bank is busy with repeated attempts on a word. More bank capacity would not make them succeed.
    let words = [(Part::Lock, loads.lock), (Part::ContendedWord, loads.contended_word)];
    let tried = words.into_iter().find(|word| word.1 > 1.0 && busy_of(*word) >= NEARLY);
    let (name, most) = tried.filter(|_| most_loaded.0 == Part::MemoryBank).unwrap_or(most_loaded);
    let busy = busy_of((name, most));
    // Handlers that wait for a word keep their processors busy.
    let enough = if words.iter().any(|word| word.0 == name) { NEARLY } else { CLOSE };
    match most > 1.0 && busy >= enough {
        true => Some(name),
        false if loads.hpus > 1.0 && hpus_busy => Some(processors),
        false if most > 1.0 && busy >= NEARLY => Some(name),
        false if loads.hpus > 1.0 && handled.hpus * fraction >= NEARLY => Some(processors),
        // Packets keep their places while they wait for a bus or a lock, so the bus and the lock come first.
        false if loads.packet_slots > Some(1.0) && loads.packet_slots > loads.packets_in_flight => {
            Some(Part::PacketSlots)
        }
        false if loads.packets_in_flight > Some(1.0) => Some(Part::PacketsInFlight),
        // Nothing was busy all the time, but packets wait: for a slot, or for handlers that wait for one another.
        false if stalled && buffer_full => Some(Part::PacketBuffer),
        false if stalled || fraction < CLOSE => Some(Part::Waiting),
        // The packet buffer still hides the lack of processors.
        false if loads.hpus > 1.0 => Some(processors),
        false => None,
    }
}

/// Returns the bottleneck with traffic, given that by the loads of a run, which ends with packets in the card. Without an
/// overloaded part the card keeps up, unless packets are lost or the sender was stalled. `fraction` is the share of packets that
/// the card lets through.
pub(super) fn limit_of_traffic(
    by_loads: Option<Part>,
    lost: &Lost,
    fraction: f64,
    parts: &[PartRow],
) -> Option<Part> {
    // PsPIN's engines and channels have enough capacity for the packets that another part lets through.
    let is_busy = |part: &&PartRow| {
        ![Part::CommandEngine, Part::MemoryChannel].contains(&part.part) || part.load * fraction >= NEARLY
    };
    let overloaded = parts
        .iter()
        .find(|part| {
            part.load > 1.0 && ![Part::PacketBuffer, Part::Host].contains(&part.part) && is_busy(part)
        })
        .map(|most| most.part);
    let has_places = parts.iter().all(|part| part.part != Part::PacketBuffer || part.load <= 1.0);
    let of_card = match by_loads {
        None | Some(Part::Waiting) if overloaded.is_none() && lost.dropped > 0 => Some(Part::PacketBuffer),
        Some(Part::Waiting) if !lost.stalled && !lost.piled_up => overloaded,
        // Handlers that keep their processors do not wait for one another while a processor is idle: packets came in bursts.
        Some(Part::Waiting) if !lost.parked => overloaded.or(by_loads),
        // A buffer that drops, or has room for all, is full because another part is overloaded.
        Some(Part::PacketBuffer) if lost.dropped > 0 || has_places => overloaded.or(by_loads),
        other => other,
    };
    // The host limits if it cannot take even the packets that the card lets through, however long its rings hide that.
    let host = parts.iter().find(|part| part.part == Part::Host).map_or(0.0, |host| host.load);
    match of_card {
        None if lost.at_link > 0.0 => Some(Part::Link),
        None if host > 1.0 || lost.at_host > 0.0 => Some(Part::Host),
        Some(_) if host * fraction > 1.0 => Some(Part::Host),
        _ => of_card,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_named() {
        let of = |loads: &Loads, hpus_busy, buffer_full, fraction| {
            limit(
                loads,
                loads,
                0.0,
                Observations { hpus_busy, stalled: fraction < 1.0, buffer_full, fraction },
            )
        };
        let idle = Loads { hpus: 0.5, matching: 0.3, ..Loads::default() };
        assert_eq!(of(&idle, false, true, 1.0), None);
        assert_eq!(of(&idle, false, false, 0.9), Some(Part::Waiting));
        assert_eq!(of(&idle, false, true, 0.9), Some(Part::PacketBuffer));
        let short = Loads { hpus: 2.0, ..idle };
        assert_eq!(of(&short, true, true, 0.5), Some(Part::HandlerCores));
        assert_eq!(of(&short, false, false, 1.0), Some(Part::HandlerCores));
        // The processors are too few for line rate, but not busy all the time either.
        assert_eq!(of(&short, false, false, 0.3), Some(Part::Waiting));
        // The card does not keep up with a small excess, either.
        assert_eq!(of(&idle, false, true, 0.9999), Some(Part::PacketBuffer));
        let lock = Loads { lock: 5.0, hpus: 5.5, ..idle };
        assert_eq!(of(&lock, true, true, 0.2), Some(Part::Lock));
        // A bank that is busy with attempts on a word.
        let polled = Loads { memory_bank: 5.2, contended_word: 4.9, ..idle };
        assert_eq!(of(&polled, true, true, 0.2), Some(Part::ContendedWord));
        assert_eq!(of(&Loads { contended_word: 3.0, ..polled }, true, true, 0.2), Some(Part::MemoryBank));
        let bank = Loads { memory_bank: 3.0, hpus: 4.0, ..idle };
        assert_eq!(of(&bank, true, true, 1.0 / 3.0), Some(Part::MemoryBank));
        // More processors would process more, but not everything.
        assert_eq!(of(&Loads { hpus: 20.0, ..lock }, true, true, 0.05), Some(Part::HandlerCores));
        let matching = Loads { matching: 4.0, ..idle };
        assert_eq!(of(&matching, false, true, 0.25), Some(Part::MatchingUnit));
        // The bus is overloaded, but the processors more so.
        let both = Loads { hpus: 4.0, bus_to_host: 1.1, ..idle };
        assert_eq!(of(&both, true, true, 0.25), Some(Part::HandlerCores));
        // The processors' load is their wait for the bus.
        let bus = Loads { hpus: 2.0, bus_to_host: 2.0, ..idle };
        assert_eq!(of(&bus, true, true, 0.5), Some(Part::BusToHost));
    }

    #[test]
    fn places_limit_behind_the_parts_that_packets_wait_for_in_them() {
        let seen = Observations { hpus_busy: true, stalled: true, buffer_full: true, fraction: 0.5 };
        let of = |loads: Loads, hpus_busy| limit(&loads, &loads, 0.0, Observations { hpus_busy, ..seen });
        let places =
            Loads { packets_in_flight: Some(2.0), packet_slots: Some(1.5), hpus: 0.5, ..Loads::default() };
        assert_eq!(of(places, false), Some(Part::PacketsInFlight));
        assert_eq!(of(Loads { packet_slots: Some(2.5), ..places }, false), Some(Part::PacketSlots));
        assert_eq!(of(Loads { packets_in_flight: Some(0.9), ..places }, false), Some(Part::PacketSlots));
        assert_eq!(of(Loads { bus_to_host: 2.0, ..places }, false), Some(Part::BusToHost));
        assert_eq!(of(Loads { hpus: 2.0, ..places }, true), Some(Part::HandlerCores));
    }

    #[test]
    fn contexts_limit_where_all_are_taken_and_processors_are_idle() {
        for (limited_by, full, busy, named) in [
            (Some(Part::Waiting), 1.2, 0.3, Some(Part::MessageContexts)),
            (Some(Part::PacketBuffer), 0.95, 0.3, Some(Part::MessageContexts)),
            (Some(Part::Waiting), 0.5, 0.3, Some(Part::Waiting)),
            (Some(Part::Waiting), 1.2, 0.97, Some(Part::Waiting)),
            (Some(Part::Lock), 1.2, 0.3, Some(Part::Lock)),
            (None, 1.0, 0.3, None),
        ] {
            assert_eq!(limit_of_contexts(limited_by, full, busy), named);
        }
    }

    #[test]
    fn cache_misses_limit_where_processors_would_keep_up_without_them() {
        let seen = Observations { hpus_busy: true, stalled: true, buffer_full: true, fraction: 0.5 };
        let of = |misses, memory_bank| {
            let loads = Loads { hpus: 2.0, memory_bank, ..Loads::default() };
            limit(&loads, &loads, misses, seen)
        };
        assert_eq!(of(0.0, 0.5), Some(Part::HandlerCores));
        assert_eq!(of(0.9, 0.5), Some(Part::HandlerCores));
        assert_eq!(of(1.0, 0.5), Some(Part::CacheMisses));
        // They wait for an overloaded bank.
        assert_eq!(of(1.0, 2.0), Some(Part::MemoryBank));
        let few = Loads { hpus: 0.9, ..Loads::default() };
        assert_eq!(
            limit(
                &few,
                &few,
                0.5,
                Observations { hpus_busy: false, stalled: false, buffer_full: true, fraction: 1.0 }
            ),
            None
        );
    }

    #[test]
    fn a_sender_is_held_up_where_it_sends_later_in_both_halves() {
        let of = |times: &[u64]| {
            is_stalled(&times.iter().map(|&at| Time::from_ps(at)).collect::<Vec<_>>(), Duration::from_ps(10))
        };
        assert!(!of(&[]) && !of(&[7]));
        assert!(!of(&[0, 10, 20, 30, 40, 50, 60]));
        // A stall once, in the first half or in the second one.
        assert!(!of(&[0, 19, 29, 39, 49, 59, 69]) && !of(&[0, 10, 20, 30, 40, 59, 69]));
        assert!(of(&[0, 11, 21, 31, 41, 51, 62]) && of(&[0, 11]));
    }

    #[test]
    fn bursts_that_wait_are_no_bottleneck_and_lost_ones_are() {
        let parts = |load| [PartRow::new(Part::Link, None, load)];
        let lost = |dropped, stalled| Lost { dropped, stalled, parked: true, ..Lost::default() };
        let of = |by_loads, dropped, stalled| {
            limit_of_traffic(by_loads, &lost(dropped, stalled), 1.0, &parts(0.9))
        };
        assert_eq!(of(Some(Part::Waiting), 0, false), None);
        let piled_up = Lost { piled_up: true, ..Lost::default() };
        assert_eq!(limit_of_traffic(Some(Part::Waiting), &piled_up, 1.0, &parts(0.9)), Some(Part::Waiting));
        assert_eq!(of(Some(Part::Waiting), 0, true), Some(Part::Waiting));
        assert_eq!(of(None, 3, false), Some(Part::PacketBuffer));
        assert_eq!(of(Some(Part::Waiting), 3, false), Some(Part::PacketBuffer));
        assert_eq!(of(Some(Part::MatchingUnit), 0, false), Some(Part::MatchingUnit));
        assert_eq!(of(None, 0, true), None);
        let out = Lost { at_link: 0.1, ..Lost::default() };
        assert_eq!(limit_of_traffic(None, &out, 1.0, &parts(0.9)), Some(Part::Link));
        // Too few packets fill the buffer, but more packets would.
        assert_eq!(
            limit_of_traffic(Some(Part::Waiting), &lost(0, false), 1.0, &parts(14.9)),
            Some(Part::Link)
        );
    }

    #[test]
    fn an_engine_that_another_part_keeps_idle_is_no_bottleneck() {
        let parts = [PartRow::new(Part::CommandEngine, None, 1.3)];
        let stalled = Lost { stalled: true, piled_up: true, ..Lost::default() };
        assert_eq!(limit_of_traffic(Some(Part::Waiting), &stalled, 0.5, &parts), Some(Part::Waiting));
        assert_eq!(limit_of_traffic(Some(Part::Waiting), &stalled, 0.76, &parts), Some(Part::CommandEngine));
    }

    #[test]
    fn a_part_that_has_too_much_to_do_is_named_before_waiting_and_the_buffer() {
        // At 100.7 %, and idle for a fiftieth of the run: before the first packets and behind the last ones.
        let loads = Loads { hpus: 1.007, ..Loads::default() };
        let seen = Observations { hpus_busy: false, stalled: true, buffer_full: false, fraction: 0.973 };
        assert_eq!(limit(&loads, &loads, 0.0, seen), Some(Part::HandlerCores));
        assert_eq!(
            limit(&loads, &loads, 0.0, Observations { buffer_full: true, ..seen }),
            Some(Part::HandlerCores)
        );
        let link = Loads { link: 1.2, ..loads };
        assert_eq!(limit(&link, &link, 0.0, Observations { fraction: 0.8, ..seen }), Some(Part::Link));
        // They are idle for longer: they wait, if they yield their processors.
        assert_eq!(limit(&loads, &loads, 0.0, Observations { fraction: 0.9, ..seen }), Some(Part::Waiting));
        let parts =
            [PartRow::new(Part::PacketBuffer, None, 3.0), PartRow::new(Part::HandlerCores, None, 1.007)];
        let of = |by_loads, dropped, parked| {
            let lost = Lost { dropped, stalled: true, parked, ..Lost::default() };
            limit_of_traffic(by_loads, &lost, 0.9, &parts)
        };
        assert_eq!(of(Some(Part::Waiting), 0, true), Some(Part::Waiting));
        assert_eq!(of(Some(Part::Waiting), 0, false), Some(Part::HandlerCores));
        // With credits packets have places on the way, too. Without them, processors are the reason for a full buffer.
        assert_eq!(of(Some(Part::PacketBuffer), 0, false), Some(Part::PacketBuffer));
        assert_eq!(of(Some(Part::PacketBuffer), 7, false), Some(Part::HandlerCores));
        let few = [PartRow::new(Part::PacketBuffer, None, 0.86), PartRow::new(Part::Lock, None, 1.15)];
        let stalled = Lost { stalled: true, ..Lost::default() };
        assert_eq!(limit_of_traffic(Some(Part::PacketBuffer), &stalled, 0.8, &few), Some(Part::Lock));
    }

    #[test]
    fn packets_that_come_through_may_be_others_than_those_offered() {
        // 450 % for the offered packets. The tenth of them that came through were the long ones, and took all of the time.
        let (loads, handled) =
            (Loads { link: 4.5, ..Loads::default() }, Loads { link: 9.0, ..Loads::default() });
        let seen = Observations { hpus_busy: false, stalled: false, buffer_full: true, fraction: 0.11 };
        assert_eq!(limit(&loads, &handled, 0.0, seen), Some(Part::Link));
    }

    #[test]
    fn a_host_limits_where_it_cannot_do_what_the_card_lets_through() {
        let of = |by_loads, host, at_host, fraction| {
            let parts = [PartRow::new(Part::Host, None, host)];
            limit_of_traffic(by_loads, &Lost { at_host, ..Lost::default() }, fraction, &parts)
        };
        assert_eq!(of(None, 0.9, 0.0, 1.0), None);
        // With full rings, and before they are full.
        assert_eq!([0.0, 0.2].map(|at_host| of(None, 1.2, at_host, 1.0)), [Some(Part::Host); 2]);
        // A burst that exceeds its rings.
        assert_eq!(of(None, 0.5, 0.1, 1.0), Some(Part::Host));
        assert_eq!(of(Some(Part::Link), 1.2, 0.0, 0.5), Some(Part::Link));
        assert_eq!(of(Some(Part::Link), 3.0, 0.0, 0.5), Some(Part::Host));
    }
}
