//! PsPIN's command unit and DMA engine, behind registers of the core.

use crate::calls::Site;
use crate::checker::Checker;
use crate::commands::reference_of;
use crate::finding::Defect;
use crate::run::{Pending, Running, Transfer, Unit};
use nicety_hpu::AddressSpace;

/// Addresses of registers (hwsched.h), and of the DMA engine's (spin_dma.h).
mod register {
    pub const ISSUE: u32 = 0x1b20_5080;
    pub const WAIT: u32 = 0x1b20_5084;
    pub const TEST: u32 = 0x1b20_5088;
    pub const INFO: u32 = 0x1b20_508c;
    pub const SOURCE: u32 = 0x1b20_4400;
    pub const DESTINATION: u32 = 0x1b20_4408;
    pub const BYTES: u32 = 0x1b20_4410;
    pub const START: u32 = 0x1b20_4418;
    pub const DONE: u32 = 0x1b20_4420;
}

/// Kinds of commands, without the bit for an event.
const HOST_DMA: u32 = 0;
const SEND: u32 = 1;

impl Checker {
    /// A load of a register of the core.
    pub(crate) fn load_register(
        &mut self,
        run: &mut Running,
        address: u32,
        rd: u8,
        space: &AddressSpace<'_>,
    ) {
        run.set(rd, 0, 0);
        if address != register::ISSUE {
            if matches!(address, register::TEST | register::START | register::DONE) {
                run.pending = Pending::Register { address, rd, at: run.site };
            }
            if address == register::START {
                let [source, destination, bytes] = run.engine;
                self.read_by_command(run, space, source, bytes);
                self.write_by_command(run, space, destination, bytes);
            }
            return;
        }
        let mut words = [0; 8];
        if let Ok(bytes) = space.read(register::INFO, 32) {
            for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
                *word = u32::from_le_bytes(*bytes.first_chunk().expect("four bytes"));
            }
        }
        let [info, _, _, data, length, last, ..] = words;
        match info >> 1 {
            SEND => {
                self.read_by_command(run, space, data, last);
                self.check_length(run, space, data, last);
            }
            HOST_DMA if last == 1 => self.read_by_command(run, space, data, length),
            HOST_DMA => self.write_by_command(run, space, data, length),
            _ => {}
        }
        run.pending = Pending::Issued { words, rd, at: run.site };
    }

    /// A send of more bytes than its packet has, or than any packet carries.
    fn check_length(&mut self, run: &mut Running, space: &AddressSpace<'_>, data: u32, bytes: u32) {
        let most = self.limits.packet_bytes;
        let packet = space.regions().iter().find(|region| {
            region.name() == "the packet" && u64::from(data.wrapping_sub(region.base())) < region.size()
        });
        let room = packet.map(|region| region.size() - u64::from(data - region.base()));
        let text = match room {
            Some(room) if u64::from(bytes) > room => {
                format!("sends {bytes} bytes of a packet with only {room}")
            }
            _ if bytes > most => format!("sends {bytes} bytes, but a packet carries {most}"),
            _ => return,
        };
        self.report(Defect::LongSend, run, run.site, text, None);
        run.explained = true;
    }

    /// A store to a register of the core.
    pub(crate) fn store_register(&mut self, run: &mut Running, address: u32, value: u32) {
        match address {
            register::WAIT => run.pending = Pending::Waited { handle: value },
            register::TEST => run.tested = value,
            register::SOURCE => run.engine[0] = value,
            register::DESTINATION => run.engine[1] = value,
            register::BYTES => run.engine[2] = value,
            _ => {}
        }
    }

    /// A register that was loaded.
    pub(crate) fn register_loaded(
        &mut self,
        run: &mut Running,
        address: u32,
        at: Site,
        value: u32,
        space: &AddressSpace<'_>,
    ) {
        match address {
            register::TEST if value == 1 => {
                let tested = run.tested;
                self.end_transfers(run, Unit::Commands, |number| number == tested);
            }
            register::DONE => {
                self.end_transfers(run, Unit::Engine, |number| number <= value);
            }
            register::START => {
                let [source, destination, bytes] = run.engine;
                for (address, writes) in [(source, false), (destination, true)] {
                    let transfer = Transfer {
                        unit: Unit::Engine,
                        number: value,
                        address,
                        bytes,
                        writes,
                        area: reference_of(space, address, bytes).area,
                        run: run.number,
                        at,
                    };
                    self.begin_transfer(run, transfer);
                }
            }
            _ => {}
        }
    }

    /// A command that was issued, with its handle.
    pub(crate) fn issued(
        &mut self,
        run: &mut Running,
        words: [u32; 8],
        at: Site,
        handle: u32,
        space: &AddressSpace<'_>,
    ) {
        let [info, _, _, data, length, last, ..] = words;
        let (bytes, writes) = match info >> 1 {
            SEND => (last, false),
            HOST_DMA => (length, last != 1),
            _ => return,
        };
        let transfer = Transfer {
            unit: Unit::Commands,
            number: handle,
            address: data,
            bytes,
            writes,
            area: reference_of(space, data, bytes).area,
            run: run.number,
            at,
        };
        self.begin_transfer(run, transfer);
    }
}
