//! Determines the results or the error of a run that has ended.

use super::undelivered::Lost;
use super::{Cluster, NodeReport, Run, refusals, undelivered, verdict};
use crate::Error;
use crate::capture::CapturedRun;
use crate::error::{END_OF_TIME, failure_lines};
use crate::record::Recording;
use nicety_host::Memory;
use nicety_kernel::{RunError, Summary};
use nicety_nic_core::{Card, Design, FailureKind, Logged, ProgramFailure};
use nicety_types::NodeId;
use std::rc::Rc;
use std::sync::Arc;

impl Cluster {
    pub(super) fn end(&mut self, outcome: Result<Summary, RunError>) -> Result<Run, Error> {
        let captured = self.write_capture();
        self.conclude(outcome).and_then(|run| captured.map(|()| run))
    }

    fn write_capture(&self) -> Result<(), Error> {
        let Some((capture, description)) = &self.capture else { return Ok(()) };
        capture.append(&CapturedRun {
            description: description.clone(),
            layer: self.mix.card(0).spec.link_layer(),
            end: self.world.now(),
            links: &self.network.captured(),
        })
    }

    fn conclude(&mut self, outcome: Result<Summary, RunError>) -> Result<Run, Error> {
        for (card, rank) in self.cards.iter().zip(0..) {
            let lines = card.lines_left_out();
            if lines > 0 {
                (self.log)(&Logged::LeftOut { node: NodeId(rank), lines });
            }
        }
        let failures: Vec<ProgramFailure> = self.cards.iter().flat_map(|card| card.failures()).collect();
        if let Err(RunError::Interrupted { .. } | RunError::Left { .. }) = outcome {
            return Err(Error::Interrupted);
        }
        let undelivered = match self.drops_allowed {
            true => None,
            false => undelivered::undelivered(&self.network, &self.cards),
        };
        if let Some((rank, name, error)) = self.failed.borrow_mut().drain(..).next() {
            let who = name.unwrap_or_else(|| self.mix.label(rank));
            return Err(self.explain_failure(&who, error, &failures, undelivered));
        }
        if let Some(error) = self.testers.error() {
            return Err(error);
        }
        let lost = undelivered::lost(&self.network, &self.cards, !self.drops_allowed);
        match outcome {
            Ok(_) if undelivered.is_some() && (lost.is_none() || !self.allowed.has(FailureKind::Lost)) => {
                Err(Error::Undelivered(undelivered.unwrap_or_default() + &self.ring_note()))
            }
            // A circle of pauses may include ports of other parts, so a paused port in this part is a deadlock, too.
            Ok(_)
                if self.network.paused_ring().is_some() || !self.is_whole() && self.network.has_paused() =>
            {
                Err(Error::Deadlock(format!(
                    "the programs ended, but packets never arrived{}",
                    self.ring_note()
                )))
            }
            Ok(summary) => self.run_of(&summary, lost),
            Err(error) => Err(self.explain_end(&error, &failures, undelivered)),
        }
    }

    /// Returns the results of a completed run.
    fn run_of(&self, summary: &Summary, lost: Option<Lost>) -> Result<Run, Error> {
        let found = self.cards.iter().zip(&self.memories).zip(0..);
        let report = |(node, rank)| node_report(node, self.mix.name(rank));
        let mut nodes: Vec<NodeReport> = found.map(report).collect();
        verdict::check(&nodes, self.allowed, |rank| self.mix.label(rank))?;
        if let Some(Lost { text, failure }) = lost {
            if !self.allowed.has(FailureKind::Lost) {
                return Err(Error::Undelivered(text));
            }
            nodes[failure.node.0 as usize].failures.push(failure);
        }
        let records = self.recorders.iter().map(|(node, recorder)| (*node, recorder.take())).collect();
        let stages = nicety_nic_core::stages(self.cards.iter().map(|card| card.design()));
        Ok(Run {
            end: summary.end,
            events: summary.events,
            nodes,
            traffic: self.testers.reports(&self.cards, &self.network),
            network: self.network.statistics(),
            recording: Recording::of(self.recording, stages, records),
        })
    }

    /// Returns the error of a run that stopped before all programs ended, with its cause.
    fn explain_end(
        &self,
        error: &RunError,
        failures: &[ProgramFailure],
        undelivered: Option<String>,
    ) -> Error {
        match undelivered {
            None if failures.is_empty() && matches!(error, RunError::TimeLimit { .. }) => {
                Error::Program(END_OF_TIME.to_owned())
            }
            _ if !failures.is_empty() => {
                Error::HandlerTrap(format!("{}\nso that there was a {error}", failure_lines(failures)))
            }
            Some(text) => {
                Error::Undelivered(format!("{text}\nso that there was a {error}{}", self.ring_note()))
            }
            None => Error::Deadlock(format!(
                "{error}{}{}{}{}",
                self.ring_note(),
                hints(&self.cards),
                refusals::notes(&self.cards),
                self.fault_notes()
            )),
        }
    }

    /// Describes ports that pause each other in a circle; empty if there is no such circle.
    fn ring_note(&self) -> String {
        self.network.paused_ring().map_or_else(String::new, |ring| {
            format!(
                "\n  note: ports pause one another in a cycle: {ring}; write a topology without a cycle, \
                 such as star or fat-tree, or flow control none"
            )
        })
    }

    /// Describes the effects of faults and full buffers on packets so far; empty if there are none. If cards retransmit packets,
    /// only failed links and nodes are described.
    pub fn fault_notes(&self) -> String {
        undelivered::notes(&self.network, &self.cards)
    }

    fn explain_failure(
        &self,
        who: &str,
        error: Error,
        failures: &[ProgramFailure],
        undelivered: Option<String>,
    ) -> Error {
        let because = |text: &str| match failures {
            [] => format!("{who}: {text}"),
            failures => format!("{}\nso that {who} failed: {text}", failure_lines(failures)),
        };
        match error {
            Error::Program(text) if failures.is_empty() => match undelivered {
                Some(cause) => Error::Undelivered(format!("{cause}\nso that {who} failed: {text}")),
                None => Error::Program(because(&text) + &self.fault_notes()),
            },
            Error::Program(text) => Error::HandlerTrap(because(&text)),
            Error::Input(text) => Error::Input(because(&text)),
            Error::System { name, text } => Error::System { name, text: text + &self.fault_notes() },
            Error::TimedOut(text) if failures.is_empty() => Error::TimedOut(because(&text)),
            Error::TimedOut(text) => Error::HandlerTrap(because(&text)),
            other => other,
        }
    }
}

fn node_report((card, memory): (&Rc<dyn Card>, &Rc<Memory>), nic: Arc<str>) -> NodeReport {
    NodeReport {
        nic,
        memory: memory.traffic(),
        failures: card.failures(),
        refused_commands: card.refused_commands(),
        unserved: card.unserved(),
        card: card.report(),
    }
}

/// Returns deadlock hints from the cards of each design.
fn hints(cards: &[Rc<dyn Card>]) -> String {
    let mut designs: Vec<&'static Design> = Vec::new();
    for card in cards {
        if !designs.contains(&card.design()) {
            designs.push(card.design());
        }
    }
    let of_design = |design: &&'static Design| {
        let same = (0..).zip(cards).filter(|(_, card)| card.design() == *design);
        (design.hints)(&same.map(|(rank, card)| (rank, card.clone())).collect::<Vec<_>>())
    };
    designs.iter().map(of_design).collect()
}
