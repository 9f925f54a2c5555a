//! One run: frames at a rate, through the core.

use super::Given;
use crate::request::{refused, traffic_of};
use crate::tested::SHORTEST_FRAME;
use nicety::Error;
use nicety_ebpf::report::maps::Dumped;
use nicety_ebpf::verdict;
use nicety_nic_hxdp::{Disposition, HxdpError, Pipeline, Program};
use nicety_traffic::{DueTime, Stream};
use nicety_types::{Duration, Histogram};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// A program on a card, to be run at rates.
pub(super) struct Place<'p> {
    pub(super) given: &'p Given<'p>,
}

/// Sums over frames with a verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) rows: u64,
    pub(super) operations: u64,
    /// Instructions of eBPF, one after another.
    pub(super) instructions: u64,
    pub(super) cycles: u64,
    pub(super) waiting: u64,
    pub(super) helpers: u64,
}

/// The figures of a run.
#[derive(Default)]
pub(super) struct Trial {
    /// The rate, relative to the traffic's.
    pub(super) times: f64,
    pub(super) offered: u64,
    pub(super) offered_bytes: u64,
    /// The time of the frames at their rate.
    pub(super) lasts: Duration,
    /// Their time on the wire.
    pub(super) wire: Duration,
    /// Frames that found the input queue full.
    pub(super) lost: u64,
    pub(super) verdicts: BTreeMap<&'static str, u64>,
    pub(super) sums: Sums,
    pub(super) latency: Histogram,
    pub(super) core_busy: Duration,
    pub(super) emission_busy: Duration,
    /// The end of the last frame.
    pub(super) end: Duration,
    /// Frames without an end when the last one comes.
    behind: usize,
    /// Places of the input queue.
    queue: usize,
    pub(super) maps: BTreeMap<String, Vec<Dumped>>,
}

fn failed(error: &HxdpError) -> Error {
    match error {
        HxdpError::Trap(_) => Error::HandlerTrap(error.to_string()),
        _ => Error::Input(error.to_string()),
    }
}

impl Trial {
    pub(super) fn taken(&self) -> u64 {
        self.offered - self.lost
    }

    /// Frames a second of the wire.
    pub(super) fn offered_pps(&self) -> f64 {
        self.offered as f64 * 1e12 / self.lasts.ps().max(1) as f64
    }

    /// Frames a second with a verdict.
    pub(super) fn taken_pps(&self) -> f64 {
        self.taken() as f64 * 1e12 / self.end.max(self.lasts).ps().max(1) as f64
    }

    /// Whether no frame was lost, the work of the core and of the emission takes no longer than the frames, and no backlog grew. At
    /// the end, at most half of the input queue is in use, and at most a two-hundredth of the frames are there.
    pub(super) fn keeps_up(&self) -> bool {
        let most = (self.queue / 2).min(self.offered as usize / 200);
        let work = self.core_busy.max(self.emission_busy);
        self.lost == 0 && work <= self.lasts && self.behind <= most + 2
    }
}

impl Place<'_> {
    pub(super) fn program(&self) -> Result<Program, Error> {
        self.given.load()
    }

    pub(super) fn stream(&self) -> Result<Stream, Error> {
        let traffic = traffic_of(self.given.traffic)?;
        traffic.open(self.given.seed, self.given.spec.longest).map_err(|error| refused(&error))
    }

    /// Sends the traffic at `times` its rate.
    ///
    /// # Errors
    /// A trap of the program, wrong traffic, or an interrupt.
    pub(super) fn run(&self, times: f64) -> Result<Trial, Error> {
        let (mut program, mut stream) = (self.program()?, self.stream()?);
        // The same program without rows, for the number of its instructions.
        let mut twin = if times == 1.0 { Some(self.program()?) } else { None };
        let spec = self.given.spec;
        let mut pipeline = Pipeline::new(spec);
        let mut trial = Trial { times, queue: spec.node.link.buffer as usize, ..Trial::default() };
        let (mut frame, mut wire_free, mut ends) = (Vec::new(), 0, Vec::new());
        let slower = |ps: u64| if times == 1.0 { ps } else { (ps as f64 / times).round() as u64 };
        while let Some(due) = stream.next_frame(&mut frame).map_err(|error| refused(&error))? {
            // As a sender pads it.
            frame.resize(frame.len().max(SHORTEST_FRAME as usize), 0);
            let interval = spec.node.link.gap.cover(frame.len() as u64 + spec.node.link.header).ps();
            // A frame is there with its last byte.
            let (begins, lasts) = match due {
                DueTime::Wire => {
                    let at = slower(trial.wire.ps());
                    (at.max(wire_free), slower(trial.wire.ps() + interval))
                }
                DueTime::At { at, lasts } => (slower(at).max(wire_free), slower(lasts)),
            };
            wire_free = begins + interval;
            trial.offered += 1;
            trial.offered_bytes += frame.len() as u64;
            trial.wire += Duration::from_ps(interval);
            trial.lasts = Duration::from_ps(lasts.max(wire_free));
            if !pipeline.takes(wire_free) {
                trial.lost += 1;
                continue;
            }
            ends.push(self.one(&mut program, &frame, wire_free, (&mut pipeline, &mut trial))?);
            if let Some(twin) = &mut twin {
                let ran = twin.run_in_sequence(&frame, wire_free / 1000);
                trial.sums.instructions += ran.map_err(|error| failed(&error))?;
            }
            let interrupt = self.given.environment.interrupt.as_deref();
            if interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                return Err(Error::Interrupted);
            }
        }
        let rate = traffic_of(self.given.traffic)?.rate;
        if let Some(why) = rate.above_the_wire(trial.offered, trial.offered_bytes, trial.wire.ns() / 1e9) {
            return Err(Error::Input(format!("--traffic: {why}")));
        }
        trial.behind = ends.iter().filter(|&&end| end > wire_free).count();
        (trial.core_busy, trial.emission_busy) = (pipeline.core_busy, pipeline.emission_busy);
        for name in &self.given.program.dumps {
            let entries = program.entries(name).map_err(|error| Error::Input(error.to_string()))?;
            trial.maps.insert(name.clone(), entries);
        }
        Ok(trial)
    }

    /// Runs the program on a frame that is there at a time, and returns the time of its end.
    fn one(
        &self,
        program: &mut Program,
        frame: &[u8],
        at: u64,
        (pipeline, trial): (&mut Pipeline, &mut Trial),
    ) -> Result<u64, Error> {
        let ran = program.run(frame, at / 1000).map_err(|error| failed(&error))?;
        let name = verdict(ran.outcome.value).unwrap_or("XDP_ABORTED");
        *trial.verdicts.entry(name).or_default() += 1;
        let disposition = match name {
            "XDP_DROP" | "XDP_ABORTED" => Disposition::Dropped,
            _ => Disposition::Emitted(program.frame().len() as u64),
        };
        let through = pipeline.pass(at, &ran.cycles, disposition);
        trial.latency.add(through.done - at);
        trial.end = trial.end.max(Duration::from_ps(through.done));
        trial.sums.rows += ran.trace.rows;
        trial.sums.operations += ran.trace.operations;
        trial.sums.cycles += ran.cycles.core;
        trial.sums.waiting += ran.cycles.waiting;
        trial.sums.helpers += ran.cycles.helpers;
        Ok(through.done)
    }
}
