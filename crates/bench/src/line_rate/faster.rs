//! What a card is said to sustain, tried: the same traffic once more, as much faster.
//!
//! Loads at a rate do not say all of a higher one. Handlers that wait for a lock keep its word busy and hold it for longer, lines move
//! between the caches of more processors, a host takes more frames with each interrupt. So the rate that loads give is offered, as far as
//! the wire takes it, and what is seen there counts. Where handlers wait for one another or for lines, a wire is made that takes it: what
//! does not come through there does not leave the card either once it waits.

use super::limit::CACHE_MISSES;
use super::offer::Judged;
use super::rig::Rig;
use super::row::Row;
use super::tested::Tested;
use super::verdict::{BARELY, Verdict};
use nicety::cards::Card;
use nicety::{Error, Failure};
use nicety_nic::ethernet::EthernetSpec;
use nicety_nic::{CardSpec, SpinSpec};
use nicety_types::{Duration, Gap};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

/// Most runs to try.
const MOST: usize = 5;
/// How far beyond the rate that loads give is tried: the part that limits has too much to do then, and is told by that.
const BEYOND: f64 = 1.05;
/// From how much more than that on the part that limits is looked for once more, nearer; and how much more is tried where it kept up.
const FAR: f64 = 1.25;
/// Least room below the wire's rate for anything to be tried.
const LEAST: f64 = 1.01;
/// Packets of traffic that are tried, at most; of longer traffic they stand for it, if they come at its mean rate.
const PACKETS: u64 = 100_000;
/// How far their mean rate may be from that of all.
const SAME: f64 = 0.1;

/// How fast traffic comes, and how much of it.
pub(super) struct Speed {
    /// Over the rate that it has.
    pub(super) times: f64,
    /// How many packets each port offers, if it is not to be found out.
    pub(super) shares: Option<Vec<u64>>,
    /// How much earlier than that each packet comes, but for those that are due at once then.
    pub(super) ahead: Duration,
}

impl Speed {
    /// The rate that it has.
    pub(super) const fn as_given() -> Speed {
        Speed { times: 1.0, shares: None, ahead: Duration::ZERO }
    }

    /// So many times as fast, and so many packets of each port.
    pub(super) const fn some(times: f64, shares: Vec<u64>) -> Speed {
        Speed { times, shares: Some(shares), ahead: Duration::ZERO }
    }
}

/// A run with the same traffic at a higher rate.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "TriedRate")]
pub struct TriedRow {
    /// The rate, over the traffic's.
    pub rate_fraction: f64,
    /// Whether that is more than the wire takes: then it was a wire that is as much faster.
    pub beyond_wire: bool,
    /// Packets offered: the first ones of the traffic.
    pub packets: u64,
    /// Whether the card keeps up with it; none where the run was stopped.
    pub verdict: Option<Verdict>,
    /// The part that limits then.
    pub limiting_part: Option<String>,
    /// The rate that the card sustains by this run, over the traffic's.
    pub capacity_fraction: Option<f64>,
    /// Why the run was stopped, if it was: a handler that is starved by others, or a failure that the traffic's own rate does not have.
    pub stopped: Option<String>,
}

impl Rig<'_> {
    /// Tries what a card is said to sustain of traffic with which it keeps up. Also gives the rate that it sustains then, over the
    /// traffic's, and the part that limits; nothing where nothing was tried.
    pub(super) fn try_faster(
        &self,
        tested: &Tested<'_>,
        expressions: &[String],
        first: &Judged,
    ) -> Result<Tries, Error> {
        let offered = first.row.traffic.as_ref().map_or(first.row.packets, |traffic| traffic.offered);
        let shares = shares(first.shares.as_deref(), offered);
        let wire = 1.0 / first.wire.max(f64::MIN_POSITIVE);
        let quiet = self.quiet();
        try_rates(&first.row, &first.failures, wire, |times| {
            let speed = Speed::some(times, shares.clone());
            let card = with_wire(self.card, times / wire)?;
            let rig = Rig { environment: &quiet, card: card.as_ref().unwrap_or(self.card), ..*self };
            rig.offer_at(tested, expressions, &speed, None).map(|judged| (judged.row, judged.failures))
        })
    }

    /// The same of equal packets, which have the wire's rate.
    pub(super) fn try_equal(&self, first: &Row, failures: &[Failure]) -> Result<Tries, Error> {
        let quiet = self.quiet();
        try_rates(first, failures, 1.0, |times| {
            let card = with_wire(self.card, times)?;
            let rig = Rig { environment: &quiet, card: card.as_ref().unwrap_or(self.card), ..*self };
            rig.send_equal(rig.card.spec.of::<SpinSpec>()?, None)
        })
    }
}

/// Tries rates, by what runs at so many times the rate of the first one show. The wire takes so many times that rate.
fn try_rates(
    row: &Row,
    failures: &[Failure],
    wire: f64,
    run: impl Fn(f64) -> Result<(Row, Vec<Failure>), Error>,
) -> Result<Tries, Error> {
    let own = own_most(row);
    let most = if row.has_more_to_do { own } else { wire };
    let mut next = (BEYOND * row.capacity_fraction).min(most);
    let mut tries = Tries::default();
    if row.verdict == Verdict::No || row.capacity_fraction >= own {
        return Ok(tries);
    }
    // The highest rate at which it ran, and the lowest one at which it was stopped.
    let (mut ran, mut stopped) = (1.0, f64::INFINITY);
    let tried = |times| try_rate(row, failures, times, &run);
    while tries.rows.len() < MOST && next >= LEAST * ran {
        match tried(next)? {
            Outcome::OtherRate => return Ok(Tries::default()),
            Outcome::Ran(faster, sustains) => {
                let overloaded = faster.verdict == Verdict::No;
                // Of what it would sustain beyond that nothing is known where a run was stopped.
                let known = if overloaded || stopped.is_infinite() { sustains } else { next };
                (tries.capacity, ran) = (None, if overloaded { ran } else { next });
                tries.add(next, wire, (*faster, sustains), known.min(own), row);
                if overloaded {
                    // With far too much to do other parts may have too much as well, and handlers get into each other's way in another way.
                    let near = BEYOND * sustains;
                    let others = [(next * near).sqrt(), near].into_iter().filter(|_| next > FAR * near);
                    for times in others.filter(|times| *times >= LEAST * ran) {
                        // Packets that do not wait yet come through a little faster than those that do.
                        if let Outcome::Ran(faster, sustains) = tried(times)?
                            && faster.verdict == Verdict::No
                        {
                            tries.add(times, wire, (*faster, sustains), sustains.min(own), row);
                        }
                    }
                    break;
                }
                next = (BEYOND * sustains).max(FAR * next).min(most).min((next * stopped).sqrt());
            }
            Outcome::Stopped(error) => {
                tries.rows.push(TriedRow::stopped(next, next > wire, row, &error));
                tries.capacity = tries.capacity.or(Some(ran));
                stopped = next;
                next = (ran * next).sqrt();
            }
        }
    }
    Ok(tries)
}

/// What came of a run.
enum Outcome {
    /// What it shows, and the rate that the card sustains by it, over the first one's.
    Ran(Box<Row>, f64),
    /// It was stopped, or something failed that did not before.
    Stopped(Error),
    /// The first packets of long traffic do not come at its mean rate.
    OtherRate,
}

/// One run at so many times the rate; an error where everything was interrupted.
fn try_rate(
    row: &Row,
    failures: &[Failure],
    times: f64,
    run: &impl Fn(f64) -> Result<(Row, Vec<Failure>), Error>,
) -> Result<Outcome, Error> {
    let faster = match run(times).and_then(|(row, found)| without_new(row, found, failures)) {
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        Err(error) => return Ok(Outcome::Stopped(error)),
        Ok(faster) => faster,
    };
    let rate = row.packet_interval_ns / faster.packet_interval_ns;
    Ok(match (rate / times - 1.0).abs() <= SAME {
        true => {
            let sustains = rate * faster.capacity_fraction;
            Outcome::Ran(Box::new(faster), sustains)
        }
        false => Outcome::OtherRate,
    })
}

/// What was tried.
#[derive(Default)]
pub(super) struct Tries {
    rows: Vec<TriedRow>,
    /// The rate that the card sustains, over that of the first run, and what limits then.
    capacity: Option<f64>,
    part: Option<String>,
}

impl Tries {
    /// Whether handlers wait for one another at a higher rate, or a run was stopped.
    pub(super) fn found_waiting(&self) -> bool {
        let waits = ["lock", "contended word", CACHE_MISSES, "waiting"];
        let of_part = |part: &str| waits.contains(&part);
        self.rows.iter().any(|row| row.stopped.is_some() || row.limiting_part.as_deref().is_some_and(of_part))
    }

    /// A run at so many times the first one's rate, of which the wire takes so many times as much; the least that is `known` to be sustained counts.
    fn add(&mut self, times: f64, wire: f64, (run, sustains): (Row, f64), known: f64, first: &Row) {
        self.rows.push(TriedRow::of(times, times > wire, &run, sustains));
        // Processors that a word keeps waiting are busy, also where there is not quite too much to do for the word.
        let of_word = self.part.take().filter(|part| {
            ["lock", "contended word"].contains(&&**part) && run.limiting_part == "handler processors"
        });
        let is_own = known < sustains && known >= own_most(first);
        self.part = Some(if is_own { own_part(first) } else { of_word.unwrap_or(run.limiting_part) });
        self.capacity = Some(self.capacity.map_or(known, |least| least.min(known)));
    }
}

/// How many times the first rate the card's own wire takes: a faster one does not help that.
fn own_most(row: &Row) -> f64 {
    1.0 / row.loads.link.max(row.loads.send_engine.unwrap_or_default()).max(f64::MIN_POSITIVE)
}

/// The part that sends, of a card whose own wire has most to do.
fn own_part(row: &Row) -> String {
    match row.loads.send_engine {
        Some(engine) if engine > row.loads.link => "send engine".to_owned(),
        _ => "link".to_owned(),
    }
}

/// The card with a wire that is so many times as fast, if it is faster.
fn with_wire(card: &Card, times: f64) -> Result<Option<Card>, Error> {
    if times <= 1.0 {
        return Ok(None);
    }
    let faster = |gap: Gap| {
        // Of a mebibyte, in picoseconds.
        let all = gap.cover(1 << 20).ps() as f64 / times;
        Gap::new((all.round() as u64).max(1), 1 << 20)
    };
    let spec: Arc<dyn CardSpec> = match card.spec.of::<EthernetSpec>() {
        Ok(spec) => {
            let mut spec = spec.clone();
            spec.node.link.gap = faster(spec.node.link.gap);
            Arc::new(spec)
        }
        Err(_) => {
            let mut spec = card.spec.of::<SpinSpec>()?.clone();
            spec.link.gap = faster(spec.link.gap);
            spec.send_gap = Duration::from_ps((spec.send_gap.ps() as f64 / times).round() as u64);
            Arc::new(spec)
        }
    };
    Ok(Some(Card { spec, ..card.clone() }))
}

/// How many packets each port offers of traffic with so many.
pub(super) fn shares(of_ports: Option<&[u64]>, offered: u64) -> Vec<u64> {
    let some = |packets: u64| match offered > PACKETS {
        true => (u128::from(packets) * u128::from(PACKETS)).div_ceil(offered.into()) as u64,
        false => packets,
    };
    of_ports.unwrap_or(&[offered]).iter().map(|packets| some(*packets)).collect()
}

/// What a run shows, unless something failed in it that did not before.
pub(super) fn without_new<T>(shown: T, found: Vec<Failure>, before: &[Failure]) -> Result<T, Error> {
    let is_known = |failure: &Failure| before.iter().any(|other| other.kind == failure.kind);
    match found.into_iter().find(|failure| !is_known(failure)) {
        Some(failure) => Err(Error::Program(failure.text)),
        None => Ok(shown),
    }
}

/// Why a run was stopped, without when and where, which are this run's.
pub(super) fn what_stopped(error: &Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let what = match line.starts_with('[') {
        true => line.split_once("] ").map_or(line, |(_, what)| what),
        false => line,
    };
    what.to_owned()
}

impl TriedRow {
    fn of(rate_fraction: f64, beyond_wire: bool, row: &Row, capacity: f64) -> TriedRow {
        TriedRow {
            rate_fraction,
            beyond_wire,
            packets: packets(row),
            verdict: Some(row.verdict),
            limiting_part: Some(row.limiting_part.clone()),
            capacity_fraction: Some(capacity),
            stopped: None,
        }
    }

    fn stopped(rate_fraction: f64, beyond_wire: bool, first: &Row, error: &Error) -> TriedRow {
        TriedRow {
            rate_fraction,
            beyond_wire,
            packets: packets(first).min(PACKETS),
            verdict: None,
            limiting_part: None,
            capacity_fraction: None,
            stopped: Some(what_stopped(error)),
        }
    }
}

/// Packets offered.
fn packets(row: &Row) -> u64 {
    row.traffic.as_ref().map_or(row.packets, |traffic| traffic.offered)
}

impl Row {
    /// The row with what was tried: what the card sustains, and the part that limits then. Where that is less than loads say, it keeps up
    /// barely.
    pub(super) fn tried(self, tries: Tries) -> Row {
        let Tries { rows: tried, capacity, part } = tries;
        let Some(capacity) = capacity else { return Row { tried, ..self } };
        let barely = self.verdict == Verdict::Barely || capacity * BARELY < 1.0;
        Row {
            verdict: if barely { Verdict::Barely } else { Verdict::Yes },
            limiting_part: part.unwrap_or(self.limiting_part),
            capacity_fraction: capacity,
            tried,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::Loads;
    use super::*;
    use std::cell::RefCell;

    /// A run at so many times the rate of packets every 100 ns, of which so many times come through at most.
    fn row(times: f64, sustained: f64) -> Row {
        let load = times / sustained;
        Row {
            packet_interval_ns: 100.0 / times,
            verdict: match load {
                load if load > 1.0 => Verdict::No,
                load if load >= BARELY => Verdict::Barely,
                _ => Verdict::Yes,
            },
            limiting_part: "lock".to_owned(),
            capacity_fraction: 1.0 / load,
            ..Row::default()
        }
    }

    /// What is tried with a first run whose loads say that so much is sustained: the rates, the capacity and the part.
    fn tried(
        first: &Row,
        wire: f64,
        run: impl Fn(f64) -> Result<(Row, Vec<Failure>), Error>,
    ) -> (Vec<f64>, Option<f64>, Option<String>) {
        let rates = RefCell::new(Vec::new());
        let tries = try_rates(first, &[], wire, |times| {
            rates.borrow_mut().push((times * 1000.0).round() / 1000.0);
            run(times)
        });
        let Tries { capacity, part, .. } = tries.unwrap();
        (rates.into_inner(), capacity.map(|times| (times * 1000.0).round() / 1000.0), part)
    }

    fn ok(row: Row) -> Result<(Row, Vec<Failure>), Error> {
        Ok((row, Vec::new()))
    }

    #[test]
    fn what_loads_say_is_tried_a_little_beyond() {
        let (rates, capacity, part) = tried(&row(1.0, 4.0), 100.0, |times| ok(row(times, 4.0)));
        assert_eq!((rates, capacity, part.as_deref()), (vec![4.2], Some(4.0), Some("lock")));
        // More than loads said: on to where it is known.
        let (rates, capacity, _) = tried(&row(1.0, 2.0), 100.0, |times| ok(row(times, 4.0)));
        assert_eq!((rates, capacity), (vec![2.1, 4.2], Some(4.0)));
        // A run whose load is near 1 and that keeps up says little about more.
        let close = |times: f64| match times < 3.0 {
            true => Row { capacity_fraction: 1.01, verdict: Verdict::Barely, ..row(times, 4.0) },
            false => row(times, 4.0),
        };
        let (rates, capacity, _) = tried(&row(1.0, 2.0), 100.0, |times| ok(close(times)));
        assert_eq!((rates, capacity), (vec![2.1, 2.625, 3.281, 4.2], Some(4.0)));
    }

    #[test]
    fn far_too_much_is_followed_by_less() {
        let (rates, capacity, _) = tried(&row(1.0, 40.0), 100.0, |times| ok(row(times, 4.0)));
        assert_eq!((rates, capacity), (vec![42.0, 13.282, 4.2], Some(4.0)));
        // The least counts, unless it keeps up there.
        let other = |times: f64| if times > 20.0 { 6.0 } else { 3.0 + times / 10.0 };
        let (rates, capacity, _) = tried(&row(1.0, 40.0), 100.0, |times| ok(row(times, other(times))));
        assert_eq!((rates, capacity), (vec![42.0, 16.267, 6.3], Some(3.63)));
        let other = |times: f64| if times > 7.0 { 6.0 } else { 30.0 };
        let (_, capacity, _) = tried(&row(1.0, 40.0), 100.0, |times| ok(row(times, other(times))));
        assert_eq!(capacity, Some(6.0));
        // What no longer comes through once it waits, although it did before.
        let (_, capacity, _) = tried(&row(1.0, 4.0), 100.0, |times| ok(row(times, 0.8)));
        assert_eq!(capacity, Some(0.8));
    }

    #[test]
    fn the_wire_bounds_what_is_tried_unless_handlers_wait_for_one_another() {
        let (rates, capacity, _) = tried(&row(1.0, 8.0), 2.5, |times| ok(row(times, 9.0)));
        assert_eq!((rates, capacity), (vec![2.5], Some(9.0)));
        let waits = Row { has_more_to_do: true, ..row(1.0, 8.0) };
        let (rates, capacity, _) = tried(&waits, 2.5, |times| ok(row(times, 3.0)));
        assert_eq!((rates, capacity), (vec![8.4, 5.144, 3.15], Some(3.0)));
        // The card's own wire sends half of what comes.
        let sends =
            Row { loads: Loads { link: 0.2, ..Loads::default() }, has_more_to_do: true, ..row(1.0, 4.0) };
        let (rates, capacity, part) = tried(&sends, 2.5, |times| ok(row(times, 9.0)));
        assert_eq!((rates, capacity, part.as_deref()), (vec![4.2, 5.0], Some(5.0), Some("link")));
        // Nothing to try: a full wire, a card that does not keep up, one whose own wire limits.
        for (first, wire) in [
            (row(1.0, 8.0), 1.0),
            (row(1.0, 0.9), 8.0),
            (Row { loads: Loads { link: 0.5, ..Loads::default() }, ..row(1.0, 2.0) }, 8.0),
        ] {
            assert_eq!(tried(&first, wire, |_| unreachable!()), (Vec::new(), None, None));
        }
    }

    #[test]
    fn a_run_that_is_stopped_is_followed_by_one_in_between() {
        let run = |times: f64| match times > 5.0 {
            true => Err(Error::HandlerTrap("[5 ns node 1] starved\nand more".into())),
            false => ok(row(times, 100.0)),
        };
        let (rates, capacity, _) = tried(&row(1.0, 10.0), 100.0, run);
        assert_eq!((rates, capacity), (vec![10.5, 3.24, 5.833, 4.348, 5.036], Some(4.348)));
        let tries = try_rates(&row(1.0, 10.0), &[], 100.0, run).unwrap();
        assert_eq!(tries.rows[0].stopped.as_deref(), Some("starved"));
        let all = tried(&row(1.0, 1.2), 100.0, |_| Err(Error::Deadlock(String::new())));
        assert_eq!((all.0, all.1), (vec![1.26, 1.122, 1.059, 1.029, 1.015], Some(1.0)));
        let interrupted = try_rates(&row(1.0, 2.0), &[], 100.0, |_| Err(Error::Interrupted));
        assert!(matches!(interrupted, Err(Error::Interrupted)));
    }

    #[test]
    fn first_packets_at_another_rate_than_all_say_nothing() {
        let slower = |times: f64| ok(Row { packet_interval_ns: 200.0 / times, ..row(times, 4.0) });
        assert_eq!(tried(&row(1.0, 4.0), 100.0, slower).1, None);
    }

    #[test]
    fn what_was_tried_makes_it_barely_and_never_yes() {
        let with = |first: &Row, capacity| {
            let part = Some("memory bank".to_owned());
            first.clone().tried(Tries { rows: Vec::new(), capacity, part })
        };
        let yes = row(1.0, 4.0);
        assert_eq!(with(&yes, Some(1.2)).verdict, Verdict::Yes);
        assert_eq!(with(&yes, Some(1.1)).verdict, Verdict::Barely);
        assert_eq!((with(&yes, None).verdict, with(&yes, None).capacity_fraction), (Verdict::Yes, 4.0));
        assert_eq!(with(&row(1.0, 1.05), Some(3.0)).verdict, Verdict::Barely);
        assert_eq!(with(&yes, Some(1.2)).limiting_part, "memory bank");
    }
}
