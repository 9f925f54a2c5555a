//! The bottleneck of a card that does not keep up, told by the loads of its parts and by what was seen of it.

use super::row::Loads;
use nicety::{Duration, Time};

/// The fraction of line rate that counts as reached if no resource is overloaded: handlers with different run times
/// blur the ends of the measured interval.
pub(super) const CLOSE: f64 = 0.99;

/// The part that limits where handler processors would keep up if all accesses were hits.
pub(super) const CACHE_MISSES: &str = "cache misses";

/// Whether packets sent at these times were held up all along, in either half: what holds up a sender at the wire's rate
/// now and then holds it up for ever.
pub(super) fn held_up(sent: &[Time], interval: Duration) -> bool {
    let middle = sent.len() / 2;
    let late = |packets: &[Time]| match packets {
        [first, .., last] => last.since(*first).ps() > interval.ps() * (packets.len() - 1) as u64,
        _ => true,
    };
    sent.len() > 1 && late(&sent[..=middle]) && late(&sent[middle..])
}

/// What was seen of the card as packets came.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    /// All processors were busy, all the time.
    pub(super) hpus_busy: bool,
    /// The sender waited for credits.
    pub(super) held_up: bool,
    /// While it did, packets had all slots of the packet buffer, and nothing but slots was missing.
    pub(super) buffer_full: bool,
    /// The rate achieved over the line rate.
    pub(super) fraction: f64,
}

/// The bottleneck: a resource that is overloaded at line rate, and that was busy all the time at the rate achieved.
/// Processors that wait for a bus, a link or a lock are busy all the time as a consequence, so they come last. `misses` is the
/// part of their load that they wait for lines of data caches.
pub(super) fn limit(loads: &Loads, misses: f64, seen: Seen) -> Option<&'static str> {
    let processors =
        if misses > 0.0 && loads.hpus - misses <= 1.0 { CACHE_MISSES } else { "handler processors" };
    let Seen { hpus_busy, held_up, buffer_full, fraction } = seen;
    let explains = |load: f64| load > 1.0 && load * fraction >= CLOSE;
    let others = [
        ("matching unit", loads.matching),
        ("link", loads.link),
        ("bus to card", loads.bus_to_card),
        ("bus to host", loads.bus_to_host),
        ("lock", loads.lock),
        ("memory bank", loads.memory_bank),
    ];
    let (name, most) = others.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("there are some");
    match explains(most) {
        true => Some(name),
        false if loads.hpus > 1.0 && hpus_busy => Some(processors),
        // Nothing was busy all the time, and yet packets wait: for a slot, or for handlers that wait for one another.
        false if held_up && buffer_full => Some("packet buffer"),
        false if held_up || fraction < CLOSE => Some("waiting"),
        // The packet buffer hides for now that the processors are too few.
        false if loads.hpus > 1.0 => Some(processors),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_named() {
        let of = |loads: &Loads, hpus_busy, buffer_full, fraction| {
            limit(loads, 0.0, Seen { hpus_busy, held_up: fraction < 1.0, buffer_full, fraction })
        };
        let idle = Loads { hpus: 0.5, matching: 0.3, ..Loads::default() };
        assert_eq!(of(&idle, false, true, 1.0), None);
        assert_eq!(of(&idle, false, false, 0.9), Some("waiting"));
        assert_eq!(of(&idle, false, true, 0.9), Some("packet buffer"));
        let short = Loads { hpus: 2.0, ..idle };
        assert_eq!(of(&short, true, true, 0.5), Some("handler processors"));
        assert_eq!(of(&short, false, false, 1.0), Some("handler processors"));
        // There are too few processors for line rate, but they are not busy all the time either.
        assert_eq!(of(&short, false, false, 0.3), Some("waiting"));
        // A little is not kept up with either.
        assert_eq!(of(&idle, false, true, 0.9999), Some("packet buffer"));
        let lock = Loads { lock: 5.0, hpus: 5.5, ..idle };
        assert_eq!(of(&lock, true, true, 0.2), Some("lock"));
        let bank = Loads { memory_bank: 3.0, hpus: 4.0, ..idle };
        assert_eq!(of(&bank, true, true, 1.0 / 3.0), Some("memory bank"));
        // More processors would process more, though not everything.
        assert_eq!(of(&Loads { hpus: 20.0, ..lock }, true, true, 0.05), Some("handler processors"));
        let matching = Loads { matching: 4.0, ..idle };
        assert_eq!(of(&matching, false, true, 0.25), Some("matching unit"));
        // The bus is overloaded, but the processors more so.
        let both = Loads { hpus: 4.0, bus_to_host: 1.1, ..idle };
        assert_eq!(of(&both, true, true, 0.25), Some("handler processors"));
        // The processors' load is the wait for the bus.
        let bus = Loads { hpus: 2.0, bus_to_host: 2.0, ..idle };
        assert_eq!(of(&bus, true, true, 0.5), Some("bus to host"));
    }

    #[test]
    fn cache_misses_limit_where_processors_would_keep_up_without_them() {
        let seen = Seen { hpus_busy: true, held_up: true, buffer_full: true, fraction: 0.5 };
        let of =
            |misses, memory_bank| limit(&Loads { hpus: 2.0, memory_bank, ..Loads::default() }, misses, seen);
        assert_eq!(of(0.0, 0.5), Some("handler processors"));
        assert_eq!(of(0.9, 0.5), Some("handler processors"));
        assert_eq!(of(1.0, 0.5), Some("cache misses"));
        // They wait for a bank that has too much to do.
        assert_eq!(of(1.0, 2.0), Some("memory bank"));
        let few = Loads { hpus: 0.9, ..Loads::default() };
        assert_eq!(
            limit(&few, 0.5, Seen { hpus_busy: false, held_up: false, buffer_full: true, fraction: 1.0 }),
            None
        );
    }

    #[test]
    fn a_sender_is_held_up_where_it_sends_later_in_both_halves() {
        let of = |times: &[u64]| {
            held_up(&times.iter().map(|&at| Time::from_ps(at)).collect::<Vec<_>>(), Duration::from_ps(10))
        };
        assert!(!of(&[]) && !of(&[7]));
        assert!(!of(&[0, 10, 20, 30, 40, 50, 60]));
        // Once, in the first half or in the second one.
        assert!(!of(&[0, 19, 29, 39, 49, 59, 69]) && !of(&[0, 10, 20, 30, 40, 59, 69]));
        assert!(of(&[0, 11, 21, 31, 41, 51, 62]) && of(&[0, 11]));
    }
}
