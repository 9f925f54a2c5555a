//! The parts of a card by load, and the verdict that follows from them.

use super::part::Part;
use super::row::Row;
use super::verdict::{BARELY, PartRow, Verdict};

/// The names of parts that exist several times.
#[derive(Clone, Copy, Default)]
pub(super) struct Named<'n> {
    /// The busiest part of the host.
    pub(super) host: Option<&'n str>,
    /// The cluster with the busiest DMA engine.
    pub(super) cluster: Option<usize>,
    /// The scarcer slots.
    pub(super) slots: Option<&'n str>,
    /// The command engine with the most occupied places.
    pub(super) engine: Option<&'n str>,
    /// The busiest channel between engines and memories.
    pub(super) channel: Option<&'n str>,
}

/// Returns the parts of a card, the most loaded first. `places` is the load of the packet buffer, if known: while another part is
/// overloaded, packets fill the buffer because of it.
pub(super) fn parts(row: &Row, places: Option<f64>, named: Named<'_>) -> Vec<PartRow> {
    let Named { host, cluster, slots, engine, channel } = named;
    let loads = &row.loads;
    let mut parts = vec![
        PartRow::new(Part::HandlerCores, None, loads.hpus),
        PartRow::new(Part::MatchingUnit, None, loads.matching),
        PartRow::new(Part::Link, None, loads.link),
        PartRow::new(Part::BusToCard, None, loads.bus_to_card),
        PartRow::new(Part::BusToHost, None, loads.bus_to_host),
    ];
    let others = [
        (Part::InstructionIssue, None, loads.instruction_issue),
        (Part::SendEngine, None, loads.send_engine),
        (Part::PacketWriter, None, loads.packet_writer),
        (Part::ClusterDma, cluster.map(|number| format!("cluster {number}")), loads.cluster_dma),
        (Part::PacketSender, None, loads.packet_sender),
        (Part::CommandEngine, engine.map(str::to_owned), loads.command_engine),
        (Part::MemoryChannel, channel.map(str::to_owned), loads.memory_channel),
        (Part::PacketsInFlight, Some("hpu.packets.in_flight".to_owned()), loads.packets_in_flight),
        (Part::PacketSlots, slots.map(str::to_owned), loads.packet_slots),
    ];
    let there = |(part, name, load): (_, _, Option<f64>)| load.map(|load| PartRow::new(part, name, load));
    parts.extend(others.into_iter().filter_map(there));
    let longest = row.locks.iter().filter(|lock| lock.waits > 0).max_by(|a, b| a.load.total_cmp(&b.load));
    parts.extend(longest.map(|lock| {
        PartRow::new(Part::Lock, Some(format!("{}, acquired at {}", lock.word, lock.acquired_at)), lock.load)
    }));
    let contended = row.retries.as_ref().filter(|word| word.load > 0.0);
    parts.extend(contended.map(|word| {
        PartRow::new(
            Part::ContendedWord,
            Some(format!("{}, changed at {}", word.word, word.retried_at)),
            word.load,
        )
    }));
    let busiest = row.memory.levels.iter().max_by(|a, b| a.load.total_cmp(&b.load));
    parts
        .extend(busiest.map(|level| PartRow::new(Part::MemoryBank, Some(level.busiest.clone()), level.load)));
    let most = row.memory.caches.iter().max_by(|a, b| a.load.total_cmp(&b.load));
    parts.extend(most.map(|cache| PartRow::new(Part::CacheMisses, Some(cache.level.clone()), cache.load)));
    let of_host = |load: f64| PartRow::new(Part::Host, host.map(str::to_owned).filter(|_| load > 0.0), load);
    parts.extend(loads.host.map(of_host));
    parts.extend(places.map(|load| PartRow::new(Part::PacketBuffer, None, load)));
    parts.sort_by(|a, b| b.load.total_cmp(&a.load));
    parts
}

/// Adds the contexts of messages, if all were taken at times. Beside an overloaded part they are taken because of it.
pub(super) fn with_contexts(mut parts: Vec<PartRow>, load: f64, limits: bool) -> Vec<PartRow> {
    let load = if limits { load } else { load.min(1.0) };
    parts.push(PartRow::new(Part::MessageContexts, Some("hpu.contexts".to_owned()), load));
    parts.sort_by(|a, b| b.load.total_cmp(&a.load));
    parts
}

/// Returns the verdict, and the limiting part: the bottleneck if there is one, or else the part with the highest load.
pub(super) fn verdict(limited_by: Option<Part>, parts: &[PartRow]) -> (Verdict, Part) {
    match (limited_by, parts) {
        (Some(part), _) => (Verdict::No, part),
        (None, [most, ..]) if most.load >= BARELY => {
            debug_assert!(most.load <= 1.0, "{parts:?}");
            (Verdict::Barely, most.part)
        }
        (None, [most, ..]) => (Verdict::Yes, most.part),
        (None, []) => unreachable!("every card has handler cores"),
    }
}

/// Returns the sustainable rate over the line rate, by the load of the limiting part; above 1 there is a margin. Without a
/// suitable load, for example if handlers wait for one another, it is the rate `seen`. `steady`, a rate without the ends of the
/// run, is the maximum.
pub(super) fn capacity(limited_by: Option<Part>, parts: &[PartRow], seen: f64, steady: f64) -> f64 {
    let of = |part: &PartRow| 1.0 / part.load.max(f64::MIN_POSITIVE);
    let Some(limit) = limited_by else { return parts.first().map_or(1.0, of) };
    // Processors that wait for lines also have their other work.
    let limits = |part: &PartRow| part.part == limit || limit == Part::CacheMisses;
    let overloaded = parts.iter().find(|part| limits(part) && part.load > 1.0);
    // Contexts are held for longer in a longer run.
    let most = if limit == Part::MessageContexts { steady.min(seen) } else { steady };
    overloaded.map_or(seen, |part| of(part).min(most))
}

#[cfg(test)]
mod tests {
    use super::super::load::LockRow;
    use super::super::memory::{LevelRow, MemoryRow};
    use super::super::row::Loads;
    use super::*;

    fn lock(word: &str, load: f64) -> LockRow {
        LockRow {
            word: word.into(),
            acquired_at: "lock.c:10".into(),
            released_at: None,
            waited_at: "lock.c:10".into(),
            waits: 1,
            held_ns: 1.0,
            handover_ns: 0.0,
            load,
            max_packets_per_s: 1.0,
        }
    }

    fn level(busiest: &str, load: f64) -> LevelRow {
        LevelRow {
            level: "l1".into(),
            accesses: 1.0,
            wait_cycles: 0.0,
            busiest: busiest.into(),
            busiest_accesses: 1.0,
            busiest_wait_cycles: 0.0,
            load,
            max_packets_per_s: 1.0,
            lines: Vec::new(),
        }
    }

    #[test]
    fn contexts_that_do_not_limit_are_full_at_most() {
        let of = |load, limits| {
            let parts = with_contexts(vec![PartRow::new(Part::Link, None, 0.5)], load, limits);
            parts.iter().map(|part| (part.part, part.load)).collect::<Vec<_>>()
        };
        assert_eq!(of(1.2, true), [(Part::MessageContexts, 1.2), (Part::Link, 0.5)]);
        assert_eq!(of(1.2, false), [(Part::MessageContexts, 1.0), (Part::Link, 0.5)]);
        assert_eq!(of(0.2, false), [(Part::Link, 0.5), (Part::MessageContexts, 0.2)]);
    }

    #[test]
    fn below_90_percent_is_yes_and_below_100_barely() {
        let of = |hpus: f64| {
            let row = Row { loads: Loads { hpus, matching: 0.3, ..Loads::default() }, ..Row::default() };
            verdict((hpus > 1.0).then_some(Part::HandlerCores), &parts(&row, None, Named::default()))
        };
        assert_eq!(of(0.899), (Verdict::Yes, Part::HandlerCores));
        assert_eq!(of(0.9), (Verdict::Barely, Part::HandlerCores));
        assert_eq!(of(1.0), (Verdict::Barely, Part::HandlerCores));
        assert_eq!(of(1.001), (Verdict::No, Part::HandlerCores));
        assert_eq!(of(0.2), (Verdict::Yes, Part::MatchingUnit));
    }

    #[test]
    fn parts_have_names_and_headroom_and_the_most_loaded_is_first() {
        let row = Row {
            loads: Loads { hpus: 0.5, matching: 0.25, lock: 0.75, memory_bank: 0.6, ..Loads::default() },
            locks: vec![lock("byte 0 of the state", 0.25), lock("byte 8 of the state", 0.75)],
            memory: MemoryRow { levels: vec![level("bank 3 of l1", 0.6)], ..MemoryRow::default() },
            ..Row::default()
        };
        let parts = parts(&row, Some(0.95), Named::default());
        let shown: Vec<(Part, Option<&str>, f64)> =
            parts.iter().map(|part| (part.part, part.name.as_deref(), part.headroom)).collect();
        assert_eq!(shown[0].0, Part::PacketBuffer);
        assert_eq!(shown[1], (Part::Lock, Some("byte 8 of the state, acquired at lock.c:10"), 0.25));
        assert_eq!(shown[2].0, Part::MemoryBank);
        assert_eq!(shown[2].1, Some("bank 3 of l1"));
        assert_eq!(shown[3], (Part::HandlerCores, None, 0.5));
        assert_eq!(parts[4].capacity_fraction, Some(4.0));
        assert_eq!(parts[5].capacity_fraction, None);
        assert_eq!(verdict(None, &parts), (Verdict::Barely, Part::PacketBuffer));
        for steady in [0.5, 1.0] {
            assert_eq!(capacity(None, &parts, 1.0, steady), 1.0 / 0.95);
            assert_eq!(capacity(Some(Part::Waiting), &parts, 0.7, steady), 0.7);
            // A part that has time for all packets, and still limits, as a buffer with bursts does.
            assert_eq!(capacity(Some(Part::PacketBuffer), &parts, 0.9, steady), 0.9);
        }
        // By the limiting part, and at most the rate without the ends of the run.
        let two = [PartRow::new(Part::HandlerCores, None, 4.0), PartRow::new(Part::Lock, None, 2.0)];
        let of = |seen, steady| capacity(Some(Part::Lock), &two, seen, steady);
        assert_eq!([of(0.6, 0.6), of(0.4, 0.4), of(0.6, 1.0), of(0.4, 1.0)], [0.5, 0.4, 0.5, 0.5]);
        let contexts = [PartRow::new(Part::MessageContexts, None, 1.25)];
        assert_eq!(capacity(Some(Part::MessageContexts), &contexts, 0.7, 1.0), 0.7);
        // Misses take a fraction of the processors' time.
        let misses =
            [PartRow::new(Part::HandlerCores, None, 2.5), PartRow::new(Part::CacheMisses, None, 2.0)];
        assert_eq!(capacity(Some(Part::CacheMisses), &misses, 0.6, 1.0), 0.4);
    }
}
