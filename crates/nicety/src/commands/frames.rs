//! Commands for handlers on frames.

use super::{OnCards, Outcome, Program, numbered};
use crate::Error;

/// A compiled program, and the name of its frame handler if it is not the default.
pub(super) type Compiled = (Vec<u8>, Option<String>);

/// [`FrameHandlers`](crate::FrameHandlers)'s functions, under the same names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the functions and arguments of `FrameHandlers`, under the same names")]
pub enum FrameSetup {
    /// Loads a compiled program with a frame handler of this name or the default one. Its number is valid on every host.
    Load { elf: Vec<u8>, name: Option<String> },
    Install {
        rule: String,
        /// The number in the outcome of `Load`.
        handlers: u64,
        state: Vec<u8>,
    },
    State {
        /// The number in the outcome of `Install`.
        number: usize,
    },
}

impl Program {
    pub(super) fn set_up_frames(&self, setup: FrameSetup) -> Result<Outcome, Error> {
        let frames = self.0.host.frames()?;
        match setup {
            FrameSetup::Load { elf, name } => {
                let handlers = frames.load(&elf, name.as_deref())?;
                let program = OnCards::new((elf, name), frames.spec_address(), handlers);
                Ok(numbered(&self.0.loaded.frames, program))
            }
            FrameSetup::Install { rule, handlers, state } => {
                let loaded = self.0.loaded.frames.borrow();
                let unknown = || Error::Program(format!("there are no handlers {handlers}"));
                let program = loaded.get(handlers as usize).ok_or_else(unknown)?;
                let load = |(elf, name): &Compiled| frames.load(elf, name.as_deref());
                let handlers = &program.on(frames.spec_address(), load)?;
                Ok(Outcome::Word(frames.install(&rule, handlers, &state)? as u64))
            }
            FrameSetup::State { number } => frames.state(number).map(Outcome::Bytes),
        }
    }
}
