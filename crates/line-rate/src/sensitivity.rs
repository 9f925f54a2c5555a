//! The sensitivity of a verdict to assumed values. Each value of a card's spec without a measurement or a document is halved and
//! doubled, and the check runs again.

use super::check::{handlers_of, point_name};
use super::request::Request;
use super::rig::Rig;
use super::row::{Row, SensitiveRow, SensitivityRow, StoppedRow, VariedRow};
use super::tested::Tested;
use nicety::cards::{Card, load};
use nicety::{Environment, Error, Failure, FailureKind};
use nicety_bench::PointFailure;
use nicety_nic_spin::SpinSpec;
use nicety_spec::{Kind, Parameter, Variation};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Maximum values in a row.
const SHOWN: usize = 3;
/// Change of the sustainable rate that counts as none: blur at the ends of the measured interval.
const NONE: f64 = 1e-3;

/// Values that a program of XDP is built for, and the direction in which a card would have less than that.
const BUILT_FOR: [(&str, Variation); 4] = [
    ("hpu.cores", Variation::Double),
    ("hpu.headroom", Variation::Halve),
    ("receive.channels", Variation::Halve),
    ("frames.mtu", Variation::Halve),
];

/// A card with its spec under study.
pub(super) struct StudiedCard<'s> {
    /// The name or path in the request.
    pub(super) path: &'s str,
    /// Its name in rows.
    pub(super) nic: &'s str,
    pub(super) card: &'s Card,
    /// Whether its handlers are a program of XDP.
    pub(super) xdp: bool,
}

impl StudiedCard<'_> {
    /// The assumed values that affect the card's handlers. Values of another pipeline have no effect.
    fn assumed(&self) -> impl Iterator<Item = &Parameter> {
        let overlaps = self.card.spec.of::<SpinSpec>().is_ok_and(|spec| spec.hpu.core.overlap.is_some());
        let used = move |parameter: &&Parameter| overlaps || parameter.section != "hpu.overlap";
        self.card.listing.parameters.iter().filter(|parameter| parameter.kind == Kind::Assumed).filter(used)
    }

    /// The values to set: parameters with the direction of the change.
    fn moves(&self) -> impl Iterator<Item = (&Parameter, Variation, String)> {
        let both = |parameter| [(parameter, Variation::Halve), (parameter, Variation::Double)];
        let fits = move |(parameter, to): &(&Parameter, Variation)| {
            let key = key_of(parameter);
            !self.xdp || BUILT_FOR.iter().all(|(built, less)| *built != key || less != to)
        };
        self.assumed().flat_map(both).filter(fits).filter_map(|(p, to)| Some((p, to, p.varied(to)?)))
    }

    /// Returns the sustainable rate of the unchanged card in packets per second, by a search as rough as that of the others.
    fn rate(&self, row: &Row, request: &Request, environment: &Environment<'_>) -> Result<f64, Error> {
        let of = |row: &Row| row.capacity_fraction * row.line_rate_packets_per_s;
        if row.trials.is_empty() {
            return Ok(of(row));
        }
        let Environment { compiled, ref interrupt, .. } = *environment;
        let environment = &Environment { compiled, interrupt: interrupt.clone(), ..Environment::default() };
        let handlers = &handlers_of(request, environment, self.nic, self.card)?;
        let (packet_bytes, card, place) = (row.packet_bytes, self.card, self.nic);
        let rig =
            Rig { request, environment, card, handlers, packet_bytes, place, profiler: None, rough: true };
        Ok(of(&rig.measure(None)?.0))
    }

    fn not_varied(&self) -> Vec<String> {
        let still =
            |p: &&Parameter| p.varied(Variation::Halve).is_none() && p.varied(Variation::Double).is_none();
        self.assumed().filter(still).map(key_of).collect()
    }
}

fn key_of(parameter: &Parameter) -> String {
    format!("{}.{}", parameter.section, parameter.key)
}

/// One run: a value of a card set, at a packet size.
struct Run<'s> {
    studied: &'s StudiedCard<'s>,
    parameter: &'s Parameter,
    to: Variation,
    value: String,
    packet_bytes: u64,
    /// The kinds of failures of the unchanged card.
    kinds: Vec<FailureKind>,
}

/// Its outcome.
type Outcome = Result<VariedRow, Error>;

impl Run<'_> {
    fn run(&self, request: &Request, environment: &Environment<'_>) -> Outcome {
        let mut overrides = request.overrides.clone();
        overrides.push(format!("{}={}", key_of(self.parameter), self.value));
        let card = &load(self.studied.path, &overrides)?;
        match request.traffic.is_empty() {
            true => request.check_sizes(self.studied.nic, card, &[self.packet_bytes], request.messages())?,
            false => request.check_ports(self.studied.nic, &Tested::of(card)?)?,
        }
        let handlers = &handlers_of(request, environment, self.studied.nic, card)?;
        let (packet_bytes, place) = (self.packet_bytes, self.studied.nic);
        let rig =
            Rig { request, environment, card, handlers, packet_bytes, place, profiler: None, rough: true };
        let (row, failures) = rig.measure(None)?;
        // A failure of the unchanged card occurs here, too.
        let new: Vec<Failure> =
            failures.into_iter().filter(|failure| !self.kinds.contains(&failure.kind)).collect();
        if !new.is_empty() {
            let line = |failure: &Failure| format!("{} ({} times)", failure.text, failure.times);
            return Err(Error::Program(new.iter().map(line).collect::<Vec<_>>().join("; ")));
        }
        Ok(VariedRow {
            value: self.value.clone(),
            verdict: row.verdict,
            bottleneck: row.bottleneck,
            capacity_fraction: row.capacity_fraction,
            capacity_packets_per_s: row.capacity_fraction * row.line_rate_packets_per_s,
        })
    }
}

/// The number of runs for these cards.
pub(super) fn count(studied: &[StudiedCard<'_>], packet_sizes: usize) -> usize {
    studied.iter().map(|card| card.moves().count() * packet_sizes).sum()
}

/// Studies the rows, with one thread per CPU, and adds to each its sensitive values. `progress` gets the number of finished runs,
/// and of all runs.
///
/// # Errors
/// Only [`Error::Interrupted`]. A failed run is part of the result.
pub(super) fn study(
    rows: &mut [Row],
    failures: &[PointFailure],
    studied: &[StudiedCard<'_>],
    request: &Request,
    environment: &Environment<'_>,
    progress: &dyn Fn(usize, usize),
) -> Result<(), Error> {
    let runs: Vec<Run<'_>> = rows
        .iter()
        .filter_map(|row| Some((row, studied.iter().find(|card| card.nic == row.nic)?)))
        .flat_map(|(row, studied)| {
            let packet_bytes = row.packet_bytes;
            let point = point_name(request, packet_bytes);
            let own = failures.iter().filter(|failure| failure.nic == row.nic && failure.point == point);
            let kinds: Vec<FailureKind> = own.map(|failure| failure.failure.kind).collect();
            let of = move |(parameter, to, value)| {
                let kinds = kinds.clone();
                Run { studied, parameter, to, value, packet_bytes, kinds }
            };
            studied.moves().map(of)
        })
        .collect();
    let outcomes = in_threads(&runs, request, environment, progress)?;
    let mut outcomes = outcomes.into_iter();
    let mut runs = runs.iter().peekable();
    for row in rows {
        let Some(studied) = studied.iter().find(|card| card.nic == row.nic) else { continue };
        let rate = studied.rate(row, request, environment)?;
        let mut own = Vec::new();
        while let Some(run) =
            runs.next_if(|run| run.studied.nic == row.nic && run.packet_bytes == row.packet_bytes)
        {
            own.push((run, outcomes.next().expect("an outcome for each run")));
        }
        row.sensitivity = Some(summary(row, rate, studied, own));
    }
    Ok(())
}

/// Returns the outcomes of runs, in order.
fn in_threads(
    runs: &[Run<'_>],
    request: &Request,
    environment: &Environment<'_>,
    progress: &dyn Fn(usize, usize),
) -> Result<Vec<Outcome>, Error> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(runs.len());
    let next = AtomicUsize::new(0);
    let (tell, told) = mpsc::channel();
    let (compiled, interrupt) = (environment.compiled, &environment.interrupt);
    let mut outcomes: Vec<Option<Outcome>> = vec![None; runs.len()];
    thread::scope(|scope| {
        for _ in 0..threads {
            let (tell, next) = (tell.clone(), &next);
            scope.spawn(move || {
                // The unchanged card has already printed the handlers' lines.
                let quiet = Environment { interrupt: interrupt.clone(), compiled, ..Environment::default() };
                while let Some((number, run)) = next_of(runs, next) {
                    let outcome = run.run(request, &quiet);
                    let interrupted = outcome == Err(Error::Interrupted);
                    if tell.send((number, outcome)).is_err() || interrupted {
                        return;
                    }
                }
            });
        }
        drop(tell);
        for (done, (number, outcome)) in told.iter().enumerate() {
            outcomes[number] = Some(outcome);
            progress(done + 1, runs.len());
        }
    });
    let all: Option<Vec<Outcome>> = outcomes.into_iter().collect();
    all.filter(|all| !all.contains(&Err(Error::Interrupted))).ok_or(Error::Interrupted)
}

fn next_of<'r, 's>(runs: &'r [Run<'s>], next: &AtomicUsize) -> Option<(usize, &'r Run<'s>)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, runs.get(number)?))
}

/// Returns the most important values for a row, on a card with the sustainable rate `packets_per_s`.
fn summary(
    row: &Row,
    rate: f64,
    studied: &StudiedCard<'_>,
    outcomes: Vec<(&Run<'_>, Outcome)>,
) -> SensitivityRow {
    let mut values: Vec<SensitiveRow> = Vec::new();
    let (mut stopped, mut varied) = (Vec::new(), 0);
    for (run, outcome) in outcomes {
        let key = key_of(run.parameter);
        if values.last().is_none_or(|last| last.key != key) {
            varied += 1;
            let (value, source) = (run.parameter.value.clone(), run.parameter.source.clone());
            values.push(SensitiveRow { key: key.clone(), value, source, halved: None, doubled: None });
        }
        let last = values.last_mut().expect("it has just been seen to");
        match outcome {
            Ok(found) => {
                *if run.to == Variation::Halve { &mut last.halved } else { &mut last.doubled } = Some(found)
            }
            Err(error) => {
                stopped.push(StoppedRow { key, value: run.value.clone(), error: error.to_string() })
            }
        }
    }
    let varied_one_way =
        values.iter().filter(|value| value.halved.is_none() || value.doubled.is_none()).count() as u64;
    let weight = |value: &SensitiveRow| {
        let both = [&value.halved, &value.doubled];
        let changes = both.into_iter().flatten().any(|found| found.verdict != row.verdict);
        let change = |found: &VariedRow| (found.capacity_packets_per_s / rate).ln().abs();
        (changes, both.into_iter().flatten().map(change).fold(0.0, f64::max))
    };
    values.retain(|value| matches!(weight(value), (changes, change) if changes || change >= NONE));
    values.sort_by(|a, b| {
        let ((a_changes, a), (b_changes, b)) = (weight(a), weight(b));
        b_changes.cmp(&a_changes).then(b.total_cmp(&a))
    });
    values.truncate(SHOWN);
    SensitivityRow { values, varied, varied_one_way, not_varied: studied.not_varied(), stopped }
}

#[cfg(test)]
mod tests {
    use super::super::part::Part;
    use super::super::verdict::Verdict;
    use super::*;

    fn varied(verdict: Verdict, capacity_fraction: f64) -> VariedRow {
        VariedRow {
            value: "1".into(),
            verdict,
            bottleneck: Part::HandlerCores,
            capacity_fraction,
            capacity_packets_per_s: 1e6 * capacity_fraction,
        }
    }

    #[test]
    fn values_that_change_the_verdict_come_before_those_that_change_the_rate_more() {
        let card = load("spin-discrete", &[]).unwrap();
        let studied = StudiedCard { path: "spin-discrete", nic: "spin-discrete", card: &card, xdp: false };
        let parameters: Vec<&Parameter> =
            studied.assumed().filter(|p| p.varied(Variation::Double).is_some()).collect();
        let run = |at: usize, to| Run {
            studied: &studied,
            parameter: parameters[at],
            to,
            value: "1".into(),
            packet_bytes: 64,
            kinds: Vec::new(),
        };
        let row = Row {
            verdict: Verdict::Yes,
            capacity_fraction: 1.5,
            line_rate_packets_per_s: 1e6,
            ..Row::default()
        };
        let runs: Vec<Run<'_>> =
            (0..5).map(|at| run(at, Variation::Double)).chain([run(4, Variation::Halve)]).collect();
        // The wire's rate changes with one value: the fraction falls, and the rate rises.
        let wire = VariedRow { capacity_fraction: 0.75, ..varied(Verdict::Yes, 1.5) };
        let outcomes = [
            Ok(wire),
            Ok(varied(Verdict::Yes, 6.0)),
            Ok(varied(Verdict::No, 0.9)),
            Ok(varied(Verdict::Yes, 3.0)),
            Ok(varied(Verdict::Yes, 1.5 / 1.9)),
            Err(Error::HandlerTrap("it stops".into())),
        ];
        let found = summary(&row, 1.5e6, &studied, runs.iter().zip(outcomes).collect());
        let keys: Vec<String> = found.values.iter().map(|value| value.key.clone()).collect();
        let of = |at: usize| key_of(parameters[at]);
        assert_eq!(keys, [of(2), of(1), of(3)]);
        assert_eq!((found.varied, found.varied_one_way, found.stopped.len()), (5, 5, 1));
        assert_eq!(found.stopped[0].key, of(4));
        // A value that is not a number stays.
        assert!(
            found.not_varied.contains(&"hpu.isa".to_owned())
                && !found.not_varied.contains(&"hpu.stack".to_owned())
        );
    }
}
