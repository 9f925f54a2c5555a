//! The sustainable rate of a card, found by runs of the same traffic at other rates (`search.rs`).
//!
//! A card sustains a rate without losses and without a growing backlog, also behind a burst (`burst.rs`). Handlers that wait for
//! one another behave differently once many of them run.
//!
//! Loads at one rate do not determine those at another. Handlers that wait for a lock keep its word busy and hold it for longer.
//! Lines move between the caches of more processors. A host takes more frames with each interrupt. So loads only give the start
//! of the search and the limiting part.
//!
//! For a rate above the wire's, the senders' wires are made faster. The card's own output wire has an exact load, so the search
//! does not exceed its capacity.

use super::burst::Burst;
use super::offer::TrafficRun;
use super::part::Part;
use super::rig::Rig;
use super::row::{Row, TrialRow};
use super::search::{Found, Known, Outcome, search};
use super::speed::{PACKETS, Speed, shares, stop_reason, with_wire, without_new};
use super::tested::Tested;
use super::verdict::{BARELY, Verdict};
use nicety::{Error, Failure};
use nicety_nic_spin::SpinSpec;
use std::cell::RefCell;

/// Maximum relative difference between their mean rate and that of all packets.
const SAME: f64 = 0.1;

/// The runs of a search, and its result.
#[derive(Default)]
pub(super) struct Trials {
    rows: Vec<TrialRow>,
    found: Option<Found>,
    /// The limiting part.
    part: Option<Part>,
}

impl Rig<'_> {
    /// Searches the sustainable rate of traffic, after a run at its own rate and possibly one behind a burst.
    pub(super) fn try_traffic(
        &self,
        tested: &Tested<'_>,
        expressions: &[String],
        first: &TrafficRun,
        burst: Option<f64>,
    ) -> Result<Trials, Error> {
        let row = &first.row;
        let offered = row.traffic.as_ref().map_or(row.packets, |traffic| traffic.offered);
        let shares = shares(first.shares.as_deref(), offered);
        let wire = 1.0 / first.wire.max(f64::MIN_POSITIVE);
        let quiet = self.quiet();
        let even = |times: f64| {
            let faster = (times / wire).max(1.0);
            let card = with_wire(self.card, faster)?;
            let rig = Rig { environment: &quiet, card: card.as_ref().unwrap_or(self.card), ..*self };
            let speed = Speed::some(times, faster, shares.clone());
            let run = rig.offer_at(tested, expressions, &speed, None)?;
            without_new(run.row, run.failures, &first.failures)
        };
        let behind = |times: f64| self.send_burst(tested, expressions, first, times);
        let runs = Runs { first: row, wire, even: &even, behind: &behind, rows: RefCell::default() };
        self.try_rates(runs, burst)
    }

    /// As [`Rig::try_traffic`], for equal packets at the wire rate: the card always has a backlog.
    pub(super) fn try_equal(&self, first: &Row, failures: &[Failure]) -> Result<Trials, Error> {
        // A card with a constant backlog has shown its rate behind a burst. Runs at lower rates are too short to show more.
        if first.verdict == Verdict::No {
            return Ok(Trials::default());
        }
        let quiet = self.quiet();
        let even = |times: f64| {
            let sender = with_wire(self.card, times)?;
            let rig = Rig { environment: &quiet, ..*self };
            let (row, found) = rig.send_equal(rig.card.spec.of::<SpinSpec>()?, sender.as_ref(), None)?;
            without_new(row, found, failures)
        };
        let runs = Runs { first, wire: 1.0, even: &even, behind: &|_| Ok(None), rows: RefCell::default() };
        self.try_rates(runs, None)
    }

    /// Searches a rate, given the departure rate behind a burst at the first rate.
    fn try_rates(&self, runs: Runs<'_>, burst: Option<f64>) -> Result<Trials, Error> {
        // In a comparison, a card that does not keep up has its departure rate as the result.
        if self.rough && runs.first.verdict == Verdict::No {
            return Ok(Trials::default());
        }
        let known = known(runs.first, burst, self.rough);
        runs.search(&known, |so_far| self.tell(so_far))
    }
}

/// Returns the state after the first run and a run behind a burst.
fn known(row: &Row, burst: Option<f64>, rough: bool) -> Known {
    let first = match burst {
        _ if row.verdict == Verdict::No => Outcome::Behind(row.capacity_fraction),
        Some(through) => Outcome::Behind(through),
        None => Outcome::Sustained(row.capacity_fraction),
    };
    // A word that may be a lock gives the start of the search.
    let locks = row.locks.iter().map(|lock| 1.0 / lock.load.max(f64::MIN_POSITIVE));
    let loads = locks.filter(|most| *most > 1.0).fold(row.capacity_fraction, f64::min);
    Known { first, loads, most: own_most(row), rough }
}

/// Describes the progress of a search.
fn so_far_of(found: &Found) -> String {
    match (found.sustained > 0.0, found.not_sustained) {
        (true, Some(not)) => {
            format!("sustainable rate: {:.2} to {not:.2} x the offered rate", found.sustained)
        }
        (false, Some(not)) => format!("sustainable rate: below {not:.2} x the offered rate"),
        (_, None) => format!("sustainable rate: at least {:.2} x the offered rate", found.sustained),
    }
}

/// Runs at rates relative to that of the first run.
struct Runs<'r> {
    first: &'r Row,
    wire: f64,
    even: &'r dyn Fn(f64) -> Result<Row, Error>,
    behind: &'r dyn Fn(f64) -> Result<Option<Burst>, Error>,
    rows: RefCell<Vec<TrialRow>>,
}

impl Runs<'_> {
    fn search(self, known: &Known, tell: impl Fn(&str)) -> Result<Trials, Error> {
        let found = search(known, |times, so_far| {
            tell(&so_far_of(so_far));
            self.at(times)
        })?;
        let rows = self.rows.into_inner();
        let part = part(&rows, found.as_ref(), self.first);
        Ok(Trials { rows, found, part })
    }

    /// Makes a run behind a burst, where there is room for one, and a run without a burst after recovery.
    fn at(&self, times: f64) -> Result<Outcome, Error> {
        let run =
            TrialRow { rate_fraction: times, above_wire_rate: times > self.wire, ..TrialRow::default() };
        match (self.behind)(times) {
            Ok(None) => {}
            Ok(Some(burst)) => {
                let run =
                    TrialRow { packets: burst.packets, burst_packets: burst.burst_packets, ..run.clone() };
                if burst.is_behind() {
                    let through = times * burst.fraction;
                    self.rows.borrow_mut().push(TrialRow {
                        bottleneck: Some(burst.part),
                        capacity_fraction: Some(through),
                        ..run
                    });
                    return Ok(Outcome::Behind(through));
                }
                let starved_ns = burst.starved_ns;
                self.rows.borrow_mut().push(TrialRow { sustained: true, starved_ns, ..run });
            }
            Err(error) => return self.stopped(run, error),
        }
        let row = match (self.even)(times) {
            Ok(row) => row,
            Err(error) => return self.stopped(run, error),
        };
        let rate = self.first.packet_interval_ns / row.packet_interval_ns;
        if (rate / times - 1.0).abs() > SAME {
            return Ok(Outcome::OtherRate);
        }
        let (sustained, capacity) = (row.verdict != Verdict::No, rate * row.capacity_fraction);
        self.rows.borrow_mut().push(TrialRow {
            packets: packets(&row),
            sustained,
            verdict: Some(row.verdict),
            bottleneck: Some(row.bottleneck),
            capacity_fraction: Some(capacity),
            ..run
        });
        Ok(if sustained { Outcome::Sustained(capacity) } else { Outcome::Behind(capacity) })
    }

    /// Records a stopped run. Returns an error after an interrupt of everything.
    fn stopped(&self, run: TrialRow, error: Error) -> Result<Outcome, Error> {
        if error == Error::Interrupted {
            return Err(error);
        }
        let packets = packets(self.first).min(PACKETS);
        self.rows.borrow_mut().push(TrialRow { packets, stopped: Some(stop_reason(&error)), ..run });
        Ok(Outcome::Stopped)
    }
}

/// Returns the limiting part: that of the lowest rate above the sustained one.
fn part(rows: &[TrialRow], found: Option<&Found>, first: &Row) -> Option<Part> {
    let found = found?;
    if found.rate >= own_most(first) {
        return Some(own_part(first));
    }
    let not = rows.iter().filter(|row| !row.sustained && row.rate_fraction >= found.rate);
    let nearest = not.min_by(|a, b| a.rate_fraction.total_cmp(&b.rate_fraction))?;
    let part = nearest.bottleneck?;
    // Processors that wait for a word are busy, even if the word is not quite overloaded.
    let waits = |row: &&TrialRow| matches!(row.bottleneck, Some(Part::Lock | Part::ContendedWord));
    let of_word = rows.iter().filter(|row| !row.sustained).find(waits).and_then(|row| row.bottleneck);
    Some(of_word.filter(|_| part == Part::HandlerCores).unwrap_or(part))
}

impl Trials {
    /// Whether handlers wait for one another at a higher rate, or a run was stopped.
    pub(super) fn found_waiting(&self) -> bool {
        let waits = [Part::Lock, Part::ContendedWord, Part::CacheMisses, Part::Waiting];
        let of_part = |part: Part| waits.contains(&part);
        self.rows.iter().any(|row| row.stopped.is_some() || row.bottleneck.is_some_and(of_part))
    }

    /// Whether a run recovered from a burst at the first run's rate or a higher one.
    pub(super) fn recovers(&self) -> bool {
        self.rows.iter().any(|row| row.sustained && row.burst_packets > 0 && row.rate_fraction >= 1.0)
    }
}

/// The capacity of the card's own wire over the first rate. A faster sender's wire does not change it.
fn own_most(row: &Row) -> f64 {
    1.0 / row.loads.link.max(row.loads.send_engine.unwrap_or_default()).max(f64::MIN_POSITIVE)
}

/// Returns the sending part, of a card with its own wire as the bottleneck.
fn own_part(row: &Row) -> Part {
    match row.loads.send_engine {
        Some(engine) if engine > row.loads.link => Part::SendEngine,
        _ => Part::Link,
    }
}

/// Returns the packets offered.
fn packets(row: &Row) -> u64 {
    row.traffic.as_ref().map_or(row.packets, |traffic| traffic.offered)
}

impl Row {
    /// Adds the result of a search: the sustainable rate, and the limiting part. A card with a small margin above the rate barely
    /// keeps up.
    pub(super) fn with_trials(self, tries: Trials) -> Row {
        let Trials { rows: trials, found, part } = tries;
        let Some(Found { rate, sustained, not_sustained }) = found.filter(|_| !trials.is_empty()) else {
            return Row { trials, ..self };
        };
        let (verdict, bottleneck) = match self.verdict {
            Verdict::No => (Verdict::No, self.bottleneck),
            verdict => {
                let barely = verdict == Verdict::Barely || rate * BARELY < 1.0;
                let verdict = if barely { Verdict::Barely } else { verdict };
                (verdict, part.unwrap_or(self.bottleneck))
            }
        };
        Row {
            verdict,
            bottleneck,
            capacity_fraction: rate,
            sustained_fraction: Some(sustained).filter(|rate| *rate > 0.0),
            not_sustained_fraction: not_sustained,
            trials,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::LockRow;
    use super::super::row::Loads;
    use super::*;

    /// Returns a run at `times` the rate of packets every 100 ns, with a maximum throughput of `sustained` times that rate.
    fn row(times: f64, sustained: f64) -> Row {
        let load = times / sustained;
        Row {
            packet_interval_ns: 100.0 / times,
            verdict: match load {
                load if load > 1.0 => Verdict::No,
                load if load >= BARELY => Verdict::Barely,
                _ => Verdict::Yes,
            },
            bottleneck: Part::MemoryBank,
            capacity_fraction: 1.0 / load,
            ..Row::default()
        }
    }

    /// Returns a burst, and the maximum departure rate behind it.
    fn burst(times: f64, sustained: f64) -> Burst {
        let (fraction, part) = ((sustained / times).min(1.0), Part::Lock);
        Burst { packets: 1000, burst_packets: 250, fraction, part, starved_ns: None }
    }

    /// Runs the search with this first run, on a wire with this capacity.
    fn trials_of(
        first: &Row,
        wire: f64,
        even: &dyn Fn(f64) -> Result<Row, Error>,
        behind: &dyn Fn(f64) -> Result<Option<Burst>, Error>,
    ) -> Trials {
        let runs = Runs { first, wire, even, behind, rows: RefCell::default() };
        runs.search(&known(first, None, false), |_| ()).unwrap()
    }

    #[test]
    fn a_run_behind_a_burst_comes_before_one_without() {
        let first = row(1.0, 8.0);
        let tries =
            trials_of(&first, 2.0, &|times| Ok(row(times, 8.0)), &|times| Ok(Some(burst(times, 4.0))));
        let rows: Vec<(u64, u64, bool)> = tries
            .rows
            .iter()
            .map(|row| ((100.0 * row.rate_fraction).round() as u64, row.burst_packets, row.sustained))
            .collect();
        assert_eq!(rows, [(820, 250, false), (396, 250, true), (396, 0, true), (412, 250, false)]);
        assert!(
            tries.rows.iter().all(|row| row.above_wire_rate) && tries.recovers() && tries.found_waiting()
        );
        let (found, row) = (tries.found.unwrap(), first.with_trials(tries));
        assert_eq!((found.rate, row.bottleneck), (row.capacity_fraction, Part::Lock));
        assert!((found.rate - 4.0).abs() < 1e-9);
        let bounds = [row.sustained_fraction, row.not_sustained_fraction].map(Option::unwrap);
        assert!((bounds[0] - 3.96).abs() < 1e-9 && (bounds[1] - 4.12).abs() < 1e-9, "{bounds:?}");
        assert_eq!(row.verdict, Verdict::Yes);
    }

    #[test]
    fn without_room_for_a_burst_loads_and_backlog_count() {
        let first = row(1.0, 4.0);
        let tries = trials_of(&first, 100.0, &|times| Ok(row(times, 4.0)), &|_| Ok(None));
        assert!((tries.found.unwrap().rate - 4.0).abs() < 1e-9);
        assert!(
            !tries.recovers() && tries.rows.iter().all(|row| row.burst_packets == 0 && row.verdict.is_some())
        );
        // If the card does not keep up, the search goes to lower rates, and the limiting part stays.
        let first = Row { bottleneck: Part::PacketBuffer, ..row(1.0, 0.5) };
        let row =
            first.clone().with_trials(trials_of(&first, 1.0, &|times| Ok(row(times, 0.5)), &|_| Ok(None)));
        assert_eq!((row.verdict, row.capacity_fraction), (Verdict::No, 0.5));
        assert_eq!((row.bottleneck, row.trials.len()), (Part::PacketBuffer, 2));
    }

    #[test]
    fn a_card_that_a_burst_puts_behind_is_looked_for_below_its_rate() {
        let first = row(1.0, 4.0);
        let (even, behind) = (|times| Ok(row(times, 4.0)), |times| Ok(Some(burst(times, 0.8))));
        let runs = Runs { first: &first, wire: 10.0, even: &even, behind: &behind, rows: RefCell::default() };
        let tries = runs.search(&known(&first, Some(0.8), false), |_| ()).unwrap();
        let row = first.clone().with_trials(tries);
        assert_eq!(row.verdict, Verdict::Barely);
        assert!((row.capacity_fraction - 0.8).abs() < 1e-9 && row.sustained_fraction.unwrap() < 0.8);
    }

    #[test]
    fn the_cards_own_wire_limits_exactly() {
        let loads = Loads { link: 0.4, ..Loads::default() };
        let first = Row { loads, ..row(1.0, 2.5) };
        let tries =
            trials_of(&first, 2.5, &|times| Ok(row(times, 9.0)), &|times| Ok(Some(burst(times, 9.0))));
        assert_eq!((tries.found.unwrap().rate, tries.part), (2.5, Some(Part::Link)));
        let engine = Loads { send_engine: Some(0.5), ..loads };
        let tries =
            trials_of(&Row { loads: engine, ..row(1.0, 2.0) }, 9.0, &|times| Ok(row(times, 9.0)), &|_| {
                Ok(None)
            });
        assert_eq!((tries.found.unwrap().rate, tries.part), (2.0, Some(Part::SendEngine)));
        // The wire is already full.
        let full = Row { loads: Loads { link: 1.0, ..loads }, ..row(1.0, 1.0) };
        let row = full.clone().with_trials(trials_of(&full, 1.0, &|_| unreachable!(), &|_| unreachable!()));
        assert_eq!((row.trials.len(), row.capacity_fraction, row.sustained_fraction), (0, 1.0, None));
    }

    #[test]
    fn a_word_that_may_be_a_lock_says_where_to_begin() {
        let lock = LockRow {
            word: String::new(),
            acquired_at: String::new(),
            released_at: None,
            waited_at: String::new(),
            waits: 0,
            held_ns: 1.0,
            handover_ns: 0.0,
            load: 0.25,
            max_packets_per_s: 1.0,
        };
        let first = Row { locks: vec![lock], ..row(1.0, 15.0) };
        assert_eq!(known(&first, None, false).loads, 4.0);
    }

    #[test]
    fn a_run_that_is_stopped_has_its_reason_and_an_interrupt_ends_all() {
        let first = row(1.0, 10.0);
        let even = |times: f64| match times > 5.0 {
            true => Err(Error::HandlerTrap("[5 ns node 1] starved\nand more".into())),
            false => Ok(row(times, 100.0)),
        };
        let tries = trials_of(&first, 100.0, &even, &|_| Ok(None));
        assert_eq!(tries.rows[0].stopped.as_deref(), Some("starved"));
        assert!(tries.found_waiting() && tries.found.unwrap().rate < 5.0);
        let runs = Runs {
            first: &first,
            wire: 2.0,
            even: &|_| Err(Error::Interrupted),
            behind: &|_| Ok(None),
            rows: RefCell::default(),
        };
        assert!(matches!(runs.search(&known(&first, None, false), |_| ()), Err(Error::Interrupted)));
    }

    #[test]
    fn first_packets_at_another_rate_than_all_say_nothing() {
        let slower = |times: f64| Ok(Row { packet_interval_ns: 200.0 / times, ..row(times, 4.0) });
        let tries = trials_of(&row(1.0, 4.0), 100.0, &slower, &|_| Ok(None));
        assert_eq!((tries.found, tries.rows.len()), (None, 0));
    }

    #[test]
    fn trials_make_it_barely_and_never_yes() {
        let with = |first: &Row, rate| {
            let found = Some(Found { rate, sustained: rate, not_sustained: Some(rate * 1.02) });
            first.clone().with_trials(Trials {
                rows: vec![TrialRow::default()],
                found,
                part: Some(Part::Link),
            })
        };
        let yes = row(1.0, 4.0);
        assert_eq!(with(&yes, 1.2).verdict, Verdict::Yes);
        assert_eq!(with(&yes, 1.1).verdict, Verdict::Barely);
        assert_eq!(with(&row(1.0, 1.05), 3.0).verdict, Verdict::Barely);
        assert_eq!(with(&yes, 1.2).bottleneck, Part::Link);
    }
}
