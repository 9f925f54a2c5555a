//! Commands for processes on the card.

use super::{OnCards, Outcome, Program, nothing, numbered};
use crate::{CardMemory, Error, Host, Start};

/// [`Channels`](crate::Channels)'s functions, under the same names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the functions and arguments of `Channels`, under the same names")]
pub enum ProcessSetup {
    /// Loads a compiled program. Its number is valid on every host.
    Load {
        elf: Vec<u8>,
    },
    Start {
        /// The number in the outcome of `Load`.
        processes: u64,
        name: String,
        microengine: u32,
        context: u32,
        contexts: Option<u32>,
        arguments: Vec<u32>,
    },
    OpenQueue {
        queue: u32,
    },
    /// Checks a part of the card's memory. The outcome is its address for processes.
    CardMemory {
        part: CardMemory,
    },
    ReadCard {
        part: CardMemory,
    },
    WriteCard {
        part: CardMemory,
        contents: Vec<u8>,
    },
}

/// [`Channels`](crate::Channels)'s calls, under the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the calls and arguments of `Channels`, under the same names")]
pub enum ProcessCall {
    /// Waits for the end of a process, by the number in the outcome of `Start`.
    Finished { process: u64 },
}

impl Program {
    pub(super) fn set_up_processes(&self, setup: ProcessSetup) -> Result<Outcome, Error> {
        let channels = self.0.host.channels()?;
        match setup {
            ProcessSetup::Load { elf } => {
                let processes = channels.load(&elf)?;
                let program = OnCards::new(elf, channels.spec_address(), processes);
                Ok(numbered(&self.0.loaded.processes, program))
            }
            ProcessSetup::Start { processes, name, microengine, context, contexts, arguments } => {
                let loaded = self.0.loaded.processes.borrow();
                let unknown = || Error::Program(format!("there are no processes {processes}"));
                let program = loaded.get(processes as usize).ok_or_else(unknown)?;
                let processes = &program.on(channels.spec_address(), |elf| channels.load(elf))?;
                let start = Start {
                    name: &name,
                    microengine: microengine as usize,
                    context: context as usize,
                    contexts: contexts.map(|contexts| contexts as usize),
                    arguments: &arguments,
                };
                Ok(numbered(&self.0.started, channels.start(processes, &start)?))
            }
            ProcessSetup::OpenQueue { queue } => channels.open_queue(queue).map(nothing),
            ProcessSetup::CardMemory { part } => {
                channels.check(&part)?;
                Ok(Outcome::Word(part.address().into()))
            }
            ProcessSetup::ReadCard { part } => channels.read(&part).map(Outcome::Bytes),
            ProcessSetup::WriteCard { part, contents } => channels.write(&part, &contents).map(nothing),
        }
    }

    pub(super) async fn processes(&self, host: &Host, call: ProcessCall) -> Result<Outcome, Error> {
        let ProcessCall::Finished { process } = call;
        let unknown = || Error::Program(format!("this host has started no process {process}"));
        let process = self.0.started.borrow().get(process as usize).copied().ok_or_else(unknown)?;
        Ok(Outcome::Word(host.channels()?.finished(&process).await?.into()))
    }
}
