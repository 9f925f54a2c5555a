//! Commands of nicety.h and frame.h: their arguments, the bytes that they read and write, and transfers in flight.

use crate::area::Area;
use crate::calls::Site;
use crate::checker::Checker;
use crate::execute::{Reference, value_at};
use crate::finding::Defect;
use crate::raw::Place;
use crate::run::{A0, Pending, Running, Transfer, Unit};
use nicety_hpu::calls::handler as number;
use nicety_hpu::{AddressSpace, Context};

/// Bytes of the arguments of a put.
const PUT_BYTES: u32 = 32;
/// The result of a command that was carried out.
const OK: u32 = 0;

/// The bytes that a command uses: address and length.
#[derive(Clone, Copy, Default)]
struct Use {
    arguments: usize,
    reads: [(u32, u32); 2],
    writes: (u32, u32),
}

impl Use {
    fn of(registers: &[u32; 8]) -> Use {
        let [a0, a1, a2, .., command] = *registers;
        let none = (0, 0);
        let (arguments, reads, writes) = match command {
            number::PUT_FROM_DEVICE => (3, [(a0, a1), (a2, PUT_BYTES)], none),
            number::PUT_FROM_HOST => (3, [(a2, PUT_BYTES), none], none),
            number::GET_TO_HOST => (4, [(a2, PUT_BYTES), none], none),
            number::DMA_TO_HOST => (4, [(a0, a2), none], none),
            number::DMA_FROM_HOST => (4, [none; 2], (a1, a2)),
            number::DMA_CAS => (4, [(a1, 8), (a2, 8)], (a1, 8)),
            number::DMA_FETCH_ADD => (4, [(a2, 8), none], (a1, 8)),
            number::DMA_TEST | number::DMA_WAIT => (1, [none; 2], none),
            number::CT_GET => (1, [none; 2], (a0, 8)),
            number::CAS => (5, [none; 2], none),
            number::FADD => (4, [none; 2], (a1, 8)),
            number::CT_INC | number::CT_SET => (2, [none; 2], none),
            number::FRAME_PUSH | number::FRAME_PULL | number::FRAME_RESIZE => (1, [none; 2], none),
            number::PRINTF => (2, [none; 2], none),
            // A yield has no arguments.
            _ => (0, [none; 2], none),
        };
        Use { arguments, reads, writes }
    }
}

impl Checker {
    /// A command, before the card carries it out.
    pub(crate) fn command(&mut self, run: &mut Running, context: &Context, space: &AddressSpace<'_>) {
        let registers = context.args();
        let used = Use::of(&registers);
        if (A0..A0 + used.arguments).any(|register| run.undefined[register] != 0) {
            let text = "passes a command an argument that depends on memory without a value".to_owned();
            self.report(Defect::Uninitialised, run, run.site, text, None);
        }
        for (address, bytes) in used.reads {
            self.read_by_command(run, space, address, bytes);
        }
        let (address, bytes) = used.writes;
        if bytes > 0 {
            self.write_by_command(run, space, address, bytes);
        }
        match registers[7] {
            number::PUT_FROM_DEVICE if registers[1] > self.limits.packet_bytes => {
                let (bytes, most) = (registers[1], self.limits.packet_bytes);
                let text = format!("sends {bytes} bytes, but a packet carries {most}");
                self.report(Defect::LongSend, run, run.site, text, None);
            }
            number::PUT_FROM_HOST => {
                let action = "sends bytes of host memory".to_owned();
                let place = Place { run: run.number, site: run.site, action };
                self.sent_from_host(run).push((registers[0], registers[1], place));
            }
            number::DMA_TO_HOST if registers[3] == 0 => self.check_host(run, registers[1], registers[2]),
            number::CAS => self.exchange(run, space, &registers),
            number::FADD => {
                let reference = reference_of(space, registers[0], 8);
                if reference.area.is_shared() {
                    self.acquire(run, registers[0]);
                    self.shared_access(run, &reference, true, true);
                    self.release(run, registers[0]);
                }
            }
            _ => {}
        }
        run.pending = Pending::Command { registers, at: run.site };
    }

    /// The bytes that a command reads at once.
    pub(crate) fn read_by_command(
        &mut self,
        run: &mut Running,
        space: &AddressSpace<'_>,
        address: u32,
        bytes: u32,
    ) {
        let reference = reference_of(space, address, bytes);
        if bytes == 0 || reference.area == Area::Nowhere {
            return;
        }
        self.check_transfers(run, &reference, false);
        if reference.area.is_shared() {
            self.shared_access(run, &reference, false, false);
        }
        let shadow = if reference.area.is_shared() { &self.shared } else { &run.own };
        if let Some(at) = shadow.first_undefined(address, bytes) {
            let text = format!("gives a command {bytes} bytes, but byte {} has no value", at - address);
            self.report(Defect::Uninitialised, run, run.site, text, None);
            let shadow = if reference.area.is_shared() { &mut self.shared } else { &mut run.own };
            shadow.fill(address, bytes, true);
        }
    }

    /// The bytes that a command writes. They have values from then on: a wait is checked separately.
    pub(crate) fn write_by_command(
        &mut self,
        run: &mut Running,
        space: &AddressSpace<'_>,
        address: u32,
        bytes: u32,
    ) {
        let reference = reference_of(space, address, bytes);
        if bytes == 0 || reference.area == Area::Nowhere {
            return;
        }
        self.check_transfers(run, &reference, true);
        if reference.area.is_shared() {
            self.shared_access(run, &reference, true, false);
            self.shared.fill(address, bytes, true);
        } else {
            run.own.fill(address, bytes, true);
        }
    }

    /// A store to host memory, against the sends of the same message that read it.
    fn check_host(&mut self, run: &mut Running, offset: u32, bytes: u32) {
        let (start, end) = (u64::from(offset), u64::from(offset) + u64::from(bytes));
        let overlaps = |sent: &&(u32, u32, Place)| {
            let (from, len) = (u64::from(sent.0), u64::from(sent.1));
            start < from + len && from < end
        };
        let sent = self.sent_from_host(run).iter().find(overlaps).map(|sent| sent.2.clone());
        if let Some(sent) = sent {
            let text = "stores to host memory that a put still reads".to_owned();
            self.report(Defect::WriteWhileSending, run, run.site, text, Some(sent));
        }
    }

    /// PtlHandlerCAS, before it is carried out. A release counts now, so that it precedes the acquire of another run.
    fn exchange(&mut self, run: &mut Running, space: &AddressSpace<'_>, registers: &[u32; 8]) {
        let address = registers[0];
        let reference = reference_of(space, address, 8);
        if !reference.area.is_shared() {
            return;
        }
        self.shared_access(run, &reference, true, true);
        let (expected, new) = exchanged(registers);
        if new == 0 && value_at(space, address, 8) == expected {
            self.changed(run, (address, expected, new), run.site);
        }
        self.release(run, address);
    }

    /// A command that was carried out.
    pub(crate) fn commanded(
        &mut self,
        run: &mut Running,
        registers: [u32; 8],
        at: Site,
        context: &Context,
        space: &AddressSpace<'_>,
    ) {
        let result = context.reg(A0) as u32;
        run.set(A0 as u8, 0, 0);
        let (handle_at, used) = (registers[4], Use::of(&registers));
        match registers[7] {
            number::DMA_FROM_HOST | number::DMA_CAS | number::DMA_FETCH_ADD | number::DMA_TO_HOST
                if result == OK && handle_at != 0 =>
            {
                let in_own = !reference_of(space, handle_at, 4).area.is_shared();
                let shadow = if in_own { &mut run.own } else { &mut self.shared };
                shadow.fill(handle_at, 4, true);
                let (address, bytes) = used.writes;
                if bytes > 0 {
                    let area = reference_of(space, address, bytes).area;
                    let transfer = Transfer {
                        unit: Unit::Commands,
                        number: value_at(space, handle_at, 4) as u32,
                        address,
                        bytes,
                        writes: true,
                        area,
                        run: run.number,
                        at,
                    };
                    self.begin_transfer(run, transfer);
                }
            }
            number::DMA_WAIT => self.end_transfers(run, Unit::Commands, |number| number == registers[0]),
            number::DMA_TEST if result == 1 => {
                self.end_transfers(run, Unit::Commands, |number| number == registers[0]);
            }
            number::YIELD => run.section += 1,
            number::CAS if reference_of(space, registers[0], 8).area.is_shared() => {
                self.acquire(run, registers[0]);
                let (expected, new) = exchanged(&registers);
                match result {
                    1 if new != 0 => self.changed(run, (registers[0], expected, new), at),
                    0 => {
                        let now = value_at(space, registers[0], 8).max(1);
                        self.changed(run, (registers[0], now, now), at);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// The expected and the new value of PtlHandlerCAS.
fn exchanged(registers: &[u32; 8]) -> (u64, u64) {
    let wide = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    (wide(registers[1], registers[2]), wide(registers[3], registers[4]))
}

pub(crate) fn reference_of(space: &AddressSpace<'_>, address: u32, bytes: u32) -> Reference {
    let (area, memory, ..) = Area::of(space, address, bytes);
    Reference { address, key: address, bytes, area, memory, base: 0 }
}
