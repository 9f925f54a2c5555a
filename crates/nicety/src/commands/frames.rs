//! Commands for handlers on frames.

use super::calls::setups;
use super::{OnCards, numbered};
use crate::Error;

/// A compiled program, and the name of its frame handler. `None` is the default handler.
pub(super) type Compiled = (Vec<u8>, Option<String>);

setups! {
    /// The functions of [`FrameHandlers`](crate::FrameHandlers), under the same names.
    enum FrameSetup by set_up_frames(program) frames = program.0.host.frames()?;

    /// Loads a compiled program with a frame handler. `name` is the handler, or `None` for the default handler. The outcome is
    /// the program's number, which is valid on every host.
    Load { elf: Vec<u8>, name: Option<String> } => {
        let handlers = frames.load(&elf, name.as_deref())?;
        numbered(&program.0.loaded.frames, OnCards::new((elf, name), frames.spec_address(), handlers))
    };
    Install {
        rule: String,
        /// The program's number, from the outcome of `Load`.
        handlers: u64,
        state: Vec<u8>,
    } => {
        let loaded = program.0.loaded.frames.borrow();
        let unknown = || Error::Program(format!("there are no handlers {handlers}"));
        let compiled = loaded.get(handlers as usize).ok_or_else(unknown)?;
        let load = |(elf, name): &Compiled| frames.load(elf, name.as_deref());
        let handlers = &compiled.on(frames.spec_address(), load)?;
        frames.install(&rule, handlers, &state)? as u64
    };
    State {
        /// The handler's number, from the outcome of `Install`.
        number: usize,
    } => frames.state(number)?;
    /// The data of a handler's program.
    Data { number: usize } => frames.data(number)?;
    /// The values that an XDP program for this card is built for: JSON, as bytes.
    ForXdp => serde_json::to_vec(&frames.for_xdp()).expect("numbers are JSON");
}
