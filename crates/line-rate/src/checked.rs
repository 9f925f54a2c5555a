//! Handlers under the checker: packets of a line-rate check, each instruction observed, without measurement.

use super::check::{equal_frames, handlers_of, point_name};
use super::request::{Messages, Request};
use super::rig::Rig;
use super::tested::{OnHost, Tested};
use nicety::{Buffer, Cluster, Environment, Error, Failure, Handlers, Run, VERSION};
use nicety_bench::PointFailure;
use nicety_check::{Begin, Checker, Defect, Ending, Finding, Frame, Handler, Interface, Limits};
use nicety_hpu::{Image, TrapError};
use nicety_nic_processors::observe::{Instruction, Observe};
use nicety_nic_processors::programs::program::Kind;
use nicety_nic_processors::running::{Ended, Running};
use nicety_types::MessageId;
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Frames sent to a card, where the request has no traffic.
const FRAMES: u64 = 256;
/// Messages sent, where the request has no number.
const MESSAGES: u64 = 4;
/// Most cycles that an interleaving adds before a run or an instruction that may wait.
const LONGEST_DELAY: u64 = 200;

/// The result of a check.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CheckReport {
    /// The version of nicety.
    pub version: &'static str,
    /// The card, or the cards of a program of hosts.
    pub nic: String,
    /// The program of hosts, for processes. Python runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The seed of packets and interleavings.
    pub seed: u64,
    /// Interleavings tried.
    pub schedules: u64,
    /// Runs of handlers, or processes, in all interleavings.
    pub runs: u64,
    /// Their instructions.
    pub instructions: u64,
    /// Different instructions among these.
    pub covered: u64,
    /// Findings, each once.
    pub findings: Vec<Finding>,
    /// Failures of handlers, and commands that the card refused to them. Without findings, they fail the check.
    pub failures: Vec<PointFailure>,
    /// Shortcomings of the program's file, and their effects on findings.
    pub missing: Vec<String>,
    /// The search with mutated packets, if there was one. Python makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuzz: Option<SearchReport>,
}

/// A search for findings with mutated packets.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SearchReport {
    /// Runs of the simulation.
    pub runs: u64,
    /// Packets in all runs.
    pub packets: u64,
    /// Captures that replay findings.
    pub captures: Vec<FindingCapture>,
}

/// A capture with the fewest packets that replay a finding.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FindingCapture {
    /// The kind of the finding.
    pub kind: Defect,
    /// The place of the finding.
    pub place: Frame,
    /// The file.
    pub file: String,
    /// Number of packets.
    pub packets: u64,
}

/// Checks the handlers of a request, in this number of interleavings. The first one is that of the card without delays.
///
/// # Errors
/// Invalid input before anything runs, and a run that fails without a finding.
pub fn check(request: &Request, schedules: u64, environment: &Environment<'_>) -> Result<CheckReport, Error> {
    let (cards, packet_sizes) = request.resolve()?.with_processors()?;
    let [(nic, card)] = &cards[..] else {
        return Err(Error::Input("--nic: a check covers one card; name one card".to_owned()));
    };
    let handlers = handlers_of(request, environment, nic, card)?;
    let mut report = CheckReport {
        version: VERSION,
        nic: nic.clone(),
        program: None,
        seed: request.seed,
        schedules,
        runs: 0,
        instructions: 0,
        covered: 0,
        findings: Vec::new(),
        failures: Vec::new(),
        missing: Vec::new(),
        fuzz: None,
    };
    let mut covered = BTreeSet::new();
    let total = schedules as usize * packet_sizes.len();
    for schedule in 0..schedules {
        for (at, &packet_bytes) in packet_sizes.iter().enumerate() {
            let rig = Rig {
                request,
                environment,
                card,
                handlers: &handlers,
                packet_bytes,
                place: nic,
                profiler: None,
                rough: false,
            };
            let (watcher, findings, failures) = rig.checked(schedule)?;
            report.runs += watcher.runs;
            report.instructions += watcher.instructions;
            covered.extend(watcher.checker.covered());
            add(&mut report.findings, findings);
            let point = point_name(request, packet_bytes);
            failures.into_iter().for_each(|failure| add_failure(&mut report.failures, nic, &point, failure));
            (environment.progress)(schedule as usize * packet_sizes.len() + at + 1, total);
        }
    }
    report.covered = covered.len() as u64;
    report.missing = missing(&handlers.image, covered);
    Ok(report)
}

/// Returns the shortcomings of a program's file, where all executed instructions have them.
pub(super) fn missing(image: &Image, covered: BTreeSet<u32>) -> Vec<String> {
    let sources = image.sources(&covered.into_iter().collect::<Vec<_>>());
    let mut missing = Vec::new();
    if !sources.is_empty() && sources.iter().all(|source| source.frames.is_empty()) {
        missing.push(
            "no line tables: findings have addresses instead of lines, and no inlined functions; compile with -g"
                .to_owned(),
        );
    }
    if !sources.is_empty() && sources.iter().all(|source| source.function.is_none()) {
        missing.push("no symbols: functions have no names; keep the symbols".to_owned());
    }
    missing
}

/// Adds findings to those of earlier interleavings.
pub(super) fn add(all: &mut Vec<Finding>, more: Vec<Finding>) {
    for finding in more {
        match all.iter_mut().find(|known| known.key() == finding.key()) {
            Some(known) => known.times += finding.times,
            None => all.push(finding),
        }
    }
}

/// Adds a failure to those of earlier interleavings.
fn add_failure(all: &mut Vec<PointFailure>, nic: &str, point: &str, failure: Failure) {
    let key = |failure: &Failure| (failure.rank, failure.kind, failure.text.clone());
    match all.iter_mut().find(|known| known.point == point && key(&known.failure) == key(&failure)) {
        Some(known) => known.failure.times += failure.times,
        None => all.push(PointFailure { nic: nic.to_owned(), point: point.to_owned(), failure }),
    }
}

impl Rig<'_> {
    /// Returns a cluster that sends the packets of a check, and the memory that it needs.
    pub(super) fn packets_once(&self, tested: &Tested<'_>) -> Result<(Cluster, Option<[Buffer; 2]>), Error> {
        let (_, interrupt) = self.stop();
        match &self.request.traffic[..] {
            [] if self.request.has_frames(tested) => {
                let expression = equal_frames(self.request, self.packet_bytes, FRAMES);
                self.unmeasured(tested, &[expression], interrupt)
            }
            [] => {
                let packets_each = self.request.message_packets.unwrap_or(8);
                let measured = self.request.messages.unwrap_or(MESSAGES);
                let messages = Messages { packets_each, before: 0, measured, after: 0 };
                let (cluster, memory) = self.unmeasured_equal(tested, messages, interrupt)?;
                Ok((cluster, Some(memory)))
            }
            expressions => self.unmeasured(tested, expressions, interrupt),
        }
    }

    /// Runs the packets once under the checker.
    ///
    /// # Errors
    /// A run that fails without a finding, so that no check passes that was not made.
    fn checked(&self, schedule: u64) -> Result<(Observed, Vec<Finding>, Vec<Failure>), Error> {
        let tested = Tested::of(self.card)?;
        let observer = Rc::new(Watcher::new(self.handlers, &tested, self.request, schedule));
        let (mut cluster, _memory) = self.packets_once(&tested)?;
        OnHost::of(cluster.host(1), &tested)?.processors().observed_by(observer.clone());
        let run = cluster.run();
        drop(cluster);
        let mut observed = Rc::into_inner(observer).expect("the run is over").observed.into_inner();
        let findings = observed.checker.finish();
        // A handler that is stopped may leave the run without its end. Its finding is the reason then.
        match run {
            Err(error) if findings.is_empty() || matches!(error, Error::Input(_) | Error::Interrupted) => {
                Err(error)
            }
            run => Ok((observed, findings, run.as_ref().map_or_else(|_| Vec::new(), Run::failures))),
        }
    }
}

/// The results of a run under the checker.
struct Observed {
    checker: Checker,
    runs: u64,
    instructions: u64,
    delays: Delays,
    is_frame: bool,
}

/// Reports the instructions of a card's cores to the checker.
struct Watcher {
    observed: RefCell<Observed>,
}

impl Watcher {
    fn new(handlers: &Handlers, tested: &Tested<'_>, request: &Request, schedule: u64) -> Watcher {
        let interface = match handlers.pspin {
            Some(_) => Interface::Pspin,
            None => Interface::Nicety,
        };
        let limits = Limits {
            interface,
            packet_bytes: tested.sizes(request.xdp.is_some()).1 as u32,
            channels: tested.channels(),
        };
        let observed = Observed {
            checker: Checker::new(handlers.image.clone(), limits),
            runs: 0,
            instructions: 0,
            delays: Delays::new(request.seed, schedule),
            is_frame: tested.has_frames(),
        };
        Watcher { observed: RefCell::new(observed) }
    }
}

/// The delays of an interleaving: none in the first one.
pub(super) struct Delays(Option<u64>);

impl Delays {
    pub(super) fn new(seed: u64, schedule: u64) -> Delays {
        Delays((schedule > 0).then(|| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ schedule))
    }

    /// The cycles of the next delay.
    pub(super) fn draw(&mut self) -> u64 {
        let Some(state) = &mut self.0 else { return 0 };
        // xorshift64*: no stream of the simulation is touched.
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) % LONGEST_DELAY
    }
}

impl Observe for Watcher {
    fn begins(&self, running: &mut Running) {
        let mut observed = self.observed.borrow_mut();
        let handler = match running.kind {
            _ if observed.is_frame => Handler::Frame,
            Kind::Header => Handler::Header,
            Kind::Payload => Handler::Payload,
            Kind::Completion => Handler::Completion,
        };
        let MessageId { source, sequence } = running.message;
        let message = u64::from(source.0) << 48 | sequence;
        let delay = observed.delays.draw();
        running.thread.state.borrow_mut().context.stall(delay);
        observed.runs += 1;
        observed.checker.begin(
            running.number,
            Begin { handler, message, offset: running.packet, core: running.thread.core as u32 },
        );
    }

    fn instruction(&self, at: &mut Instruction<'_, '_>) {
        let observed = &mut *self.observed.borrow_mut();
        observed.instructions += 1;
        observed.checker.step(at.run.number, at.context, at.space);
    }

    fn stops(&self, running: &mut Running, error: TrapError) {
        self.observed.borrow_mut().checker.stops(running.number, error);
    }

    fn ends(&self, running: &mut Running, ended: &Ended) {
        let ending = match ended {
            Ended::Returned(value) => Ending::Returned(*value),
            Ended::Stopped(why) | Ended::OutOfBudget(why) => Ending::Stopped(why),
        };
        self.observed.borrow_mut().checker.end(running.number, ending);
    }
}
