//! Programs written for PsPIN: their memory map, and the handlers that `init_handlers` names.

use crate::programs::program::{HandlerError, HandlerNames, Handlers, Placed, PspinProgram, map as code_map};
use crate::spec::{HpuSpec, pspin_map as map};
use nicety_hpu::{AddressSpace, Context, Exit, Image, Region, Reservations, Trap, TrapKind};
use std::sync::Arc;

/// The runtime function that calls a handler. It expects the arguments in a0, the handler's address in a1 and the
/// core's registers in s2.
const DISPATCH: &str = "pspin_dispatch";
/// The function of a program that names its handlers.
const INIT: &str = "init_handlers";
/// Most cycles of `init_handlers`.
const INIT_CYCLES: u64 = 1_000_000;
/// The stack of `init_handlers`, with room for the four words that it writes.
const INIT_STACK: usize = 4096;

impl Handlers {
    /// Loads a program from ELF, with the handlers of these names. A program written for PsPIN names them itself.
    ///
    /// # Errors
    /// When it is not an RV32 program for this card's cores, or lacks the handlers.
    pub fn load(elf: &[u8], names: &HandlerNames, hpu: &HpuSpec) -> Result<Handlers, HandlerError> {
        let image = Image::load(elf, &hpu.core)?;
        match hpu.pspin {
            Some(_) => load(image, names, hpu),
            None => Handlers::from_image(image, names),
        }
    }
}

/// Loads a program written for PsPIN, and runs its `init_handlers`.
fn load(image: Arc<Image>, names: &HandlerNames, hpu: &HpuSpec) -> Result<Handlers, HandlerError> {
    if *names != HandlerNames::default() {
        return Err(HandlerError::NamedByProgram);
    }
    let (Some(init), Some(dispatch)) = (image.symbol(INIT), image.symbol(DISPATCH)) else {
        return Err(HandlerError::NoInitHandlers);
    };
    let Placed { code, mut data } = Placed::at(&image, hpu, map::HANDLER_MEMORY)?;
    let named = initialise(&image, init, &code, &mut data);
    let [header, payload, completion, memory] =
        named.map_err(|trap| HandlerError::InitHandlers(trap.to_string()))?;
    let handler = |address: u32, parameter: &str| match address {
        0 => Ok(None),
        _ if image.is_code(address) => Ok(Some(address)),
        _ => Err(HandlerError::InitHandlers(format!(
            "it sets *{parameter} to {address:#x}, where there is no code; name a function, or NULL for none"
        ))),
    };
    let [header, payload, completion] =
        [handler(header, "hh")?, handler(payload, "ph")?, handler(completion, "th")?];
    let memory = match memory {
        0 => None,
        address => match address.checked_sub(map::HANDLER_MEMORY).filter(|&at| at < data.len() as u32) {
            Some(at) => Some((address, data.len() as u32 - at)),
            None => {
                return Err(HandlerError::InitHandlers(format!(
                    "it sets *handler_mem_ptr to {address:#x}, which is none of the program's variables; name one, or NULL"
                )));
            }
        },
    };
    let program = PspinProgram { dispatch, memory, data };
    if header.is_none() && payload.is_none() && completion.is_none() {
        return Err(HandlerError::InitHandlers(
            "it names no handler; set at least one of *hh, *ph and *th to a function".to_owned(),
        ));
    }
    Ok(Handlers { image, header, payload, completion, pspin: Some(Arc::new(program)), of_frames: false })
}

/// Runs `init_handlers`. Returns the four words that it has written.
fn initialise(image: &Image, entry: u32, code: &[u8], data: &mut [u8]) -> Result<[u32; 4], Box<Trap>> {
    let mut stack = [0; INIT_STACK];
    let top = map::L1 + INIT_STACK as u32 - 16;
    let mut space = AddressSpace::new()
        .with(Region::stack("the stack", map::L1, &mut stack, code_map::STACK_GUARD))
        .with(Region::read_only("program memory", code_map::CODE, code))
        .with(Region::memory("the program's data", map::HANDLER_MEMORY, data));
    let (mut context, mut reservations) = (Context::new(0), Reservations::new());
    context.call(image, entry, top, &[top, top + 4, top + 8, top + 12], INIT_CYCLES);
    loop {
        match context.run(image, &mut space, &mut reservations, u64::MAX) {
            Exit::Return(_) => break,
            Exit::Order(_) => context.perform(image, &mut space, &mut reservations)?,
            Exit::Trap(trap) => return Err(trap),
            Exit::Ecall => {
                let (number, served) =
                    (context.args()[7], "init_handlers runs before there is a card, and has none");
                return Err(image.trap(context.pc(), TrapKind::UnknownCall { number, served }));
            }
            Exit::Limit => {}
            Exit::Device(_) | Exit::Fetch { .. } => unreachable!("a space without devices and caches"),
        }
    }
    let word = |at: u32| {
        let bytes = space.read(top + at, 4).expect("the words are on the stack");
        u32::from_le_bytes(*bytes.first_chunk().expect("four bytes were asked for"))
    };
    Ok([word(0), word(4), word(8), word(12)])
}
