//! The commands that every card has: those on a handler's own memory, and calls of `printf`.

use crate::Processors;
use crate::commands::codes::{Stop, code, number};
use crate::contention::exclusive::Act;
use crate::running::Running;
use nicety_hpu::{Access, TrapKind};
use nicety_types::Payload;

impl Processors {
    /// Carries out the commands that every card has: those on a handler's own memory, and calls of `printf`.
    ///
    /// # Errors
    /// The reason to stop the handler. For other numbers: that the card serves only these.
    pub fn common_command(
        &self,
        running: &mut Running,
        registers: [u32; 8],
        served: &'static str,
    ) -> Result<u32, Stop> {
        let [a0, a1, a2, a3, a4, _, _, number] = registers;
        let long = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        match number {
            number::CAS => {
                aligned(a0)?;
                let (expected, new) = (long(a1, a2), long(a3, a4));
                running.busy += self.command_in_turn(running, a0);
                Ok(self.atomically(running, a0, Act::Take, |running| {
                    let swap = self.read_u64(running, a0)? == expected;
                    if swap {
                        self.write_u64(running, a0, new)?;
                    }
                    Ok((u32::from(swap), swap && new != expected))
                })?)
            }
            number::FADD => {
                aligned(a0)?;
                let increment = long(a2, a3);
                running.busy += self.command_in_turn(running, a0);
                Ok(self.atomically(running, a0, Act::Add, |running| {
                    let found = self.read_u64(running, a0)?;
                    self.write_u64(running, a0, found.wrapping_add(increment))?;
                    self.write_u64(running, a1, found)?;
                    Ok((code::OK, increment != 0))
                })?)
            }
            number::PRINTF => Ok(self.print(running, a0, a1)?),
            number => Err(TrapKind::UnknownCall { number, served }.into()),
        }
    }

    /// Reads 8 bytes of a handler's memory.
    ///
    /// # Errors
    /// When the address is no memory of the handler.
    pub fn read_u64(&self, running: &mut Running, address: u32) -> Result<u64, TrapKind> {
        running.with_space(|space| {
            let bytes = space.read(address, 8)?;
            Ok(u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes were asked for")))
        })
    }

    /// Writes 8 bytes of a handler's memory.
    ///
    /// # Errors
    /// When the address is no memory of the handler.
    pub fn write_u64(&self, running: &mut Running, address: u32, value: u64) -> Result<(), TrapKind> {
        self.write_local(running, address, &value.to_le_bytes())
    }

    /// Writes memory of a handler, and breaks the reservations of other cores on it.
    pub fn write_local(&self, running: &mut Running, address: u32, bytes: &[u8]) -> Result<(), TrapKind> {
        running.with_space(|space| {
            space.write(address, bytes.len() as u32)?.copy_from_slice(bytes);
            Ok(())
        })?;
        running.application().reservations.borrow_mut().invalidate(address, bytes.len() as u32);
        Ok(())
    }

    /// Reads bytes of a handler's memory for a command. From a phantom packet, the card uses only the length.
    pub fn take_local(&self, running: &mut Running, local: u32, length: u32) -> Result<Payload, TrapKind> {
        match length {
            0 => Ok(Payload::empty()),
            _ if running.memory.is_phantom(local, length) => Ok(Payload::phantom(length.into())),
            _ => running.with_space(|space| space.read(local, length).map(Payload::copy_of)),
        }
    }
}

/// Checks that the address of an atomic operation on HPU memory is aligned to its size.
fn aligned(address: u32) -> Result<(), TrapKind> {
    match address.is_multiple_of(8) {
        true => Ok(()),
        false => Err(TrapKind::Misaligned { access: Access::Write, address, size: 8 }),
    }
}
