//! Processes of flow processors under the checker, while a program of hosts runs.

use super::checked::{Delays, add, missing};
use nicety::nfp::Outcome;
use nicety::nfp::observe::{Instruction, Observe, ObservedProcess};
use nicety::{Cluster, Error};
use nicety_check::{BeginProcess, Checker, Ending, Finding, Interface, Limits};
use nicety_hpu::{Context, Trap};
use serde::Serialize;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The contexts of a microengine in the numbers of `nfp_hart`.
const CONTEXTS: usize = 8;

/// The processes of a run under the checker.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CheckedProcesses {
    /// Processes that were started.
    pub runs: u64,
    /// Their instructions.
    pub instructions: u64,
    /// The different instructions among these: those of each program in the order of their addresses.
    pub covered: Vec<(String, Vec<u32>)>,
    /// Findings, each once.
    pub findings: Vec<Finding>,
    /// Shortcomings of the programs' files, and their effects on findings.
    pub missing: Vec<String>,
    /// Whether the processes of a card have reached their number of instructions, so that the run was ended.
    pub cut_off: bool,
}

/// Most instructions of the processes of a card, and the flag that ends the run there.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The number of instructions.
    pub instructions: u64,
    /// The interrupt of the run.
    pub stop: Arc<AtomicBool>,
}

/// The cards of a cluster under the checker.
pub struct CheckedCards(Vec<Rc<Watcher>>);

/// Checks the processes of all cards of a cluster that start from now on. Interleaving 0 is that of the cards; others
/// delay contexts by random cycles. `cut` ends a run that goes on for too long.
///
/// # Errors
/// When a card has no processes.
pub fn check(
    cluster: &Cluster,
    ranks: u32,
    seed: u64,
    schedule: u64,
    cut: Option<&Cut>,
) -> Result<CheckedCards, Error> {
    let mut watchers = Vec::new();
    for rank in 0..ranks {
        let channels = cluster.host(rank).channels()?;
        let of_host = channels.cards()?;
        for number in 0..of_host {
            let place = match (ranks, of_host) {
                (1, 1) => String::new(),
                (_, 1) => format!("rank {rank}, "),
                _ => format!("rank {rank}, card {number}, "),
            };
            let seed = seed.wrapping_add(u64::from(rank) << 8 | u64::from(number));
            let watcher = Rc::new(Watcher {
                observed: RefCell::default(),
                place,
                delays: RefCell::new(Delays::new(seed, schedule)),
                cut: cut.cloned(),
            });
            channels.card(number)?.observed_by(watcher.clone());
            watchers.push(watcher);
        }
    }
    Ok(CheckedCards(watchers))
}

impl CheckedCards {
    /// Ends the check. The cluster may exist still.
    pub fn finish(self) -> CheckedProcesses {
        let mut found = CheckedProcesses::default();
        for watcher in self.0 {
            let Some(observed) = &mut *watcher.observed.borrow_mut() else { continue };
            found.runs += observed.runs;
            found.instructions += observed.instructions;
            found.cut_off |=
                watcher.cut.as_ref().is_some_and(|cut| observed.instructions >= cut.instructions);
            add(&mut found.findings, observed.checker.finish());
            for (image, covered) in observed.checker.covered_by_program() {
                for text in missing(image, covered.iter().copied().collect()) {
                    if !found.missing.contains(&text) {
                        found.missing.push(text);
                    }
                }
                let mut functions: Vec<&str> = image.functions().collect();
                functions.sort_unstable();
                found.covered.push((functions.join(" "), covered));
            }
        }
        found
    }
}

/// The state of a card under the checker.
struct Observed {
    checker: Checker,
    runs: u64,
    instructions: u64,
}

/// Reports the instructions of a card's processes to the checker, from the first process on.
struct Watcher {
    observed: RefCell<Option<Observed>>,
    /// The host and the card in names of processes.
    place: String,
    delays: RefCell<Delays>,
    cut: Option<Cut>,
}

impl Observe for Watcher {
    fn begins(&self, process: &Rc<ObservedProcess>) {
        let limits = Limits { interface: Interface::Processes, packet_bytes: 0, channels: 0 };
        let mut observed = self.observed.borrow_mut();
        let observed = observed.get_or_insert_with(|| Observed {
            checker: Checker::new(process.image.clone(), limits),
            runs: 0,
            instructions: 0,
        });
        let source = process.image.sources(&[process.entry]).pop();
        let function = source.and_then(|source| source.function);
        let function = function.unwrap_or_else(|| format!("at {:#010x}", process.entry));
        let (microengine, context) = (process.place.core, process.place.context);
        observed.runs += 1;
        observed.checker.begin_process(
            process.number,
            &BeginProcess {
                image: &process.image,
                name: format!("{function} on {}microengine {microengine}, context {context}", self.place),
                context: (CONTEXTS * microengine + context) as u32,
                island: process.island as u32,
            },
        );
    }

    fn resumes(&self, _: &ObservedProcess, context: &mut Context) {
        context.stall(self.delays.borrow_mut().draw());
    }

    fn instruction(&self, at: &mut Instruction<'_, '_>) {
        if let Some(observed) = &mut *self.observed.borrow_mut() {
            observed.instructions += 1;
            if let Some(cut) = self.cut.as_ref().filter(|cut| observed.instructions == cut.instructions) {
                cut.stop.store(true, Ordering::Relaxed);
            }
            observed.checker.step(at.process.number, at.context, at.space);
        }
    }

    fn traps(&self, at: &mut Instruction<'_, '_>, trap: &Trap) {
        if let Some(observed) = &mut *self.observed.borrow_mut() {
            observed.checker.stops(at.process.number, trap.error());
        }
    }

    fn ends(&self, process: &ObservedProcess, outcome: &Outcome) {
        let Some(observed) = &mut *self.observed.borrow_mut() else { return };
        match outcome {
            Outcome::Returned(value) => observed.checker.end(process.number, Ending::Returned(*value)),
            Outcome::Trapped(trap) => {
                observed.checker.end(process.number, Ending::Stopped(&trap.to_string()));
            }
        }
    }
}
