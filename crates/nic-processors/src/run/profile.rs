//! Profiles of the programs of a card: the cycles of handlers by instruction, cause and call path.
//!
//! They take no simulated time, and a card without them pays one check for each slice.

use crate::Processors;
use crate::commands::codes::number;
use crate::hpus::ThreadState;
use crate::memory::bank_waits::BankUse;
use crate::programs::attachments::{Attachment, Program};
use crate::pspin::hardware::register;
use nicety_hpu::profile::{Cause, Profile};
use nicety_hpu::{DeviceAccess, Image, Totals};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// The profile of a program on a card.
pub struct ProgramProfile {
    /// The program.
    pub image: Arc<Image>,
    /// The sums of its runs.
    pub totals: Totals,
}

/// The profiles of a card's programs, by number.
#[derive(Default)]
pub(crate) struct Profiles(RefCell<BTreeMap<u32, ProgramProfile>>);

impl Processors {
    /// Profiles the handlers that begin from now on.
    pub fn profile(&self) {
        self.profiles.get_or_init(Box::default);
        self.levels.count_bank_waits();
    }

    /// Returns the banks for which profiled handlers have waited, with the data in them, the longest waits first.
    pub fn bank_uses(&self) -> Vec<BankUse> {
        let programs = self.attachments.programs.borrow();
        self.levels.list_bank_waits(|number, address| {
            programs.iter().find(|program| program.number == number)?.handlers.variable_at(address)
        })
    }

    /// Returns the variable at a place of HPU memory.
    pub(crate) fn variable_at(&self, place: u32) -> Option<String> {
        let of = |program: &Rc<Program>| {
            let offset = place.checked_sub(program.data.start)?;
            let inside = (offset as usize) < program.data.bytes.borrow().len();
            inside.then(|| program.handlers.variable_at(program.handlers.data_address() + offset))?
        };
        self.attachments.programs.borrow().iter().find_map(of)
    }

    /// Returns the profiles so far, in the order in which programs were attached.
    pub fn take_profiles(&self) -> Vec<ProgramProfile> {
        let taken = self.profiles.get().map(|profiles| profiles.0.take());
        taken.into_iter().flat_map(BTreeMap::into_values).collect()
    }
}

impl Profiles {
    /// Begins a run on a thread. It has its core since cycle 0, and its first instruction begins at its context's cycle.
    pub(crate) fn begin(&self, attachment: &Attachment, entry: u32, state: &mut ThreadState) {
        let image = &attachment.program.handlers.image;
        let mut programs = self.0.borrow_mut();
        let program = programs
            .entry(attachment.program.number)
            .or_insert_with(|| ProgramProfile { image: image.clone(), totals: Totals::of(image) });
        let cycle = state.context.cycle();
        let overlaps = image.core().overlap.is_some();
        state.profile.get_or_insert_default().begin(overlaps, program.totals.paths(), entry, cycle);
    }

    /// Adds a run that has ended.
    pub(crate) fn add(&self, attachment: &Attachment, profile: &Profile) {
        if let Some(program) = self.0.borrow_mut().get_mut(&attachment.program.number) {
            program.totals.add(profile);
        }
    }
}

/// The causes of a command's cycles: its wait, and its use of the core.
pub(crate) struct CommandCauses {
    pub(crate) wait: Cause,
    pub(crate) busy: Cause,
}

/// Returns the causes of the cycles of a command of nicety.h.
pub(crate) const fn causes_of_command(registers: &[u32; 8]) -> CommandCauses {
    let [_, _, _, _, handle, _, _, number] = *registers;
    let wait = match number {
        number::DMA_WAIT => Cause::Transfer,
        // Without a handle, the command returns when the transfer is complete.
        number::DMA_TO_HOST | number::DMA_FROM_HOST | number::DMA_CAS | number::DMA_FETCH_ADD
            if handle == 0 =>
        {
            Cause::Transfer
        }
        _ => Cause::Queue,
    };
    let busy = match number {
        number::PRINTF => Cause::Printf,
        number::CAS | number::FADD => Cause::Atomic,
        _ => Cause::Command,
    };
    CommandCauses { wait, busy }
}

/// Returns the cause of the wait for a register of a core.
pub(crate) const fn cause_of_register(access: &DeviceAccess, registers: u32) -> Cause {
    match (access.address.wrapping_sub(registers), access.write) {
        (register::ISSUE, None) => Cause::Queue,
        _ => Cause::Transfer,
    }
}
