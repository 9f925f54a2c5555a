//! Commands for processes on the card.

use super::calls::{calls, setups};
use super::{OnCards, Outcome, numbered};
use crate::{CardMemory, Error, Start};

setups! {
    /// The set-up functions of [`Channels`](crate::Channels), under the same names.
    enum ProcessSetup by set_up_processes(program, card: u32) channels = program.0.host.channels()?.card(card)?;

    /// Loads a compiled program. The outcome is its number, which is valid on every card of every host.
    Load { elf: Vec<u8> } => {
        let processes = channels.load(&elf)?;
        numbered(&program.0.loaded.processes, OnCards::new(elf, channels.spec_address(), processes))
    };
    Start {
        /// The program's number, from the outcome of `Load`.
        processes: u64,
        name: String,
        microengine: u32,
        context: u32,
        contexts: Option<u32>,
        arguments: Vec<u32>,
    } => {
        let loaded = program.0.loaded.processes.borrow();
        let unknown = || Error::Program(format!("there are no processes {processes}"));
        let compiled = loaded.get(processes as usize).ok_or_else(unknown)?;
        let processes = &compiled.on(channels.spec_address(), |elf| channels.load(elf))?;
        let start = Start {
            name: &name,
            microengine: microengine as usize,
            context: context as usize,
            contexts: contexts.map(|contexts| contexts as usize),
            arguments: &arguments,
        };
        numbered(&program.0.started, channels.start(processes, &start)?)
    };
    /// Checks that the host has the card.
    Check => ();
    OpenQueue { queue: u32 } => channels.open_queue(queue)?;
    /// Checks that a part of the card's memory exists. The outcome is the part's address, as processes use it.
    CardMemory { part: CardMemory } => {
        channels.check(&part)?;
        Outcome::Word(part.address().into())
    };
    ReadCard { part: CardMemory } => channels.read(&part)?;
    WriteCard { part: CardMemory, contents: Vec<u8> } => channels.write(&part, &contents)?;
}

calls! {
    /// The calls of [`Channels`](crate::Channels), under the same names.
    enum ProcessCall by processes(program, host, card: u32) channels = host.channels()?.card(card)?;

    /// Waits for the end of a process. `process` is its number, from the outcome of `Start`.
    Finished { process: u64 } => {
        let unknown = || Error::Program(format!("this host has started no process {process}"));
        let process = program.0.started.borrow().get(process as usize).copied().ok_or_else(unknown)?;
        channels.finished(&process).await?
    };
}
