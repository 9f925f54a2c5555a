//! A linked program with its data, and calls of its runtime's functions for the host.

use crate::error::XdpError;
use nicety_ebpf::card::Layout;
use nicety_ebpf::translate::ABORTED_NAME;
use nicety_ebpf::{Errno, Item};
use nicety_hpu::{
    AddressSpace, Context, Core, Exit, Image, Misaligned, Region, Reservations, Segment, with_segment,
};
use serde::Serialize;
use std::sync::Arc;

/// Where the functions find keys and values, and leave entries.
pub const EXCHANGE: u32 = 0x3000_0000;
const STACK: u32 = 0x2000_0000;
const STACK_BYTES: usize = 1 << 20;
/// The most cycles of a call. The largest map of a card has some million entries.
const CYCLES: u64 = 100_000_000_000;

/// Verdicts that the destination of a frame does not tell, as `struct nicety_xdp_counts` has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// `XDP_ABORTED`.
    pub aborted: u32,
    /// Values that are no verdict.
    pub invalid: u32,
    /// `XDP_REDIRECT` to a device.
    pub to_wire: u32,
    /// `XDP_REDIRECT` to a CPU or a socket.
    pub to_queue: u32,
    /// `XDP_REDIRECT` without a destination.
    pub failed: u32,
    /// Frames that became longer than the card sends.
    pub too_long: u32,
    /// `XDP_PASS`, where handlers have no destinations.
    pub passed: u32,
    /// `XDP_TX` there.
    pub sent: u32,
}

/// A linked program and its data.
pub struct Loaded {
    image: Arc<Image>,
    /// Code and constants, and variables.
    code: (u32, Vec<u8>),
    data: (u32, Vec<u8>),
    exchange: Vec<u8>,
    stack: Vec<u8>,
    /// The core that runs the functions.
    pub hart: u32,
}

fn contents(segments: &[Segment], writable: bool) -> Result<(u32, Vec<u8>), XdpError> {
    let found: Vec<&Segment> = segments.iter().filter(|s| s.writable() == writable).collect();
    match found[..] {
        [segment] => {
            let mut bytes = vec![0; segment.size() as usize];
            segment.write_to(&mut bytes);
            Ok((segment.address(), bytes))
        }
        [] => Ok((0, Vec::new())),
        _ => Err(XdpError::Program(
            "the program has several segments of one kind; link it with nicety cc".to_owned(),
        )),
    }
}

/// The numbers of `nfp_read` and `nfp_write`.
const NFP_MOVES: [u32; 2] = [0x200, 0x201];

/// Serves a move of bytes between memories, as a network flow processor has it. Returns false for other calls, and for bytes that
/// are in no memory.
fn moves(context: &mut Context, space: &mut AddressSpace<'_>) -> bool {
    let [to, from, length, .., number] = context.args();
    if !NFP_MOVES.contains(&number) {
        return false;
    }
    let Ok(bytes) = space.read(from, length).map(<[u8]>::to_vec) else { return false };
    let Ok(room) = space.write(to, length) else { return false };
    room.copy_from_slice(&bytes);
    context.finish_ecall(0, 0);
    true
}

impl Loaded {
    /// Loads a linked program for cores of this kind.
    ///
    /// # Errors
    /// It is no program for them.
    pub fn new(elf: &[u8], core: &Core) -> Result<Loaded, XdpError> {
        // The host reads misaligned keys as its own.
        let core = Core { misaligned: Misaligned::Costs, ..*core };
        let image = Image::load(elf, &core).map_err(|error| XdpError::Program(error.to_string()))?;
        let (code, data) = (contents(image.segments(), false)?, contents(image.segments(), true)?);
        Ok(Loaded { image, code, data, exchange: Vec::new(), stack: vec![0; STACK_BYTES], hart: 0 })
    }

    /// Whether the program is one of XDP.
    pub fn is_xdp(image: &Image) -> bool {
        image.variable("nicety_xdp_counts").is_some()
    }

    /// Replaces the data by those of a card after a run.
    ///
    /// # Errors
    /// They have another size.
    pub fn set_data(&mut self, data: Vec<u8>) -> Result<(), XdpError> {
        if data.len() != self.data.1.len() {
            return Err(XdpError::Program("the data of another program".to_owned()));
        }
        self.data.1 = data;
        Ok(())
    }

    /// The program's file with the present data.
    ///
    /// # Errors
    /// The file is another one.
    pub fn written_to(&self, elf: &[u8]) -> Result<Vec<u8>, XdpError> {
        if self.data.1.is_empty() {
            return Ok(elf.to_vec());
        }
        with_segment(elf, self.data.0, &self.data.1).map_err(|error| XdpError::Program(error.to_string()))
    }

    /// Bytes of code and constants.
    pub fn code_bytes(&self) -> u64 {
        self.code.1.len() as u64
    }

    /// The address of a symbol.
    ///
    /// # Errors
    /// There is none.
    pub fn address(&self, symbol: &str) -> Result<u32, XdpError> {
        let missing = || XdpError::Program(format!("the program has no {symbol}; build it with nicety cc"));
        self.image.symbol(symbol).ok_or_else(missing)
    }

    /// The bytes of a variable.
    ///
    /// # Errors
    /// There is none.
    pub fn variable(&self, symbol: &str) -> Result<&[u8], XdpError> {
        let missing = || XdpError::Program(format!("the program has no {symbol}; build it with nicety cc"));
        let (address, size) = self.image.variable(symbol).ok_or_else(missing)?;
        let part = [&self.data, &self.code].into_iter().find_map(|(base, bytes)| {
            let at = address.checked_sub(*base)? as usize;
            bytes.get(at..at + size as usize)
        });
        part.ok_or_else(missing)
    }

    /// Replaces the bytes of a variable.
    ///
    /// # Errors
    /// There is none, or it has another size.
    pub fn set_variable(&mut self, symbol: &str, bytes: &[u8]) -> Result<(), XdpError> {
        let at = self.address(symbol)?.wrapping_sub(self.data.0) as usize;
        match self.data.1.get_mut(at..at.saturating_add(bytes.len())) {
            Some(own) => own.copy_from_slice(bytes),
            None => {
                return Err(XdpError::Program(format!(
                    "{symbol} has another size than expected; build the program again"
                )));
            }
        }
        Ok(())
    }

    /// Calls a function with arguments. The exchange is at [`EXCHANGE`].
    ///
    /// # Errors
    /// There is no such function, or it traps.
    pub fn call(&mut self, function: &str, arguments: &[u32]) -> Result<u32, XdpError> {
        let entry = self.address(function)?;
        let mut space = AddressSpace::new()
            .with(Region::memory("the stack", STACK, &mut self.stack))
            .with(Region::read_only("the program's code and constants", self.code.0, &self.code.1))
            .with(Region::memory("the program's data", self.data.0, &mut self.data.1))
            .with(Region::memory("keys and values", EXCHANGE, &mut self.exchange));
        let (mut context, mut reservations) = (Context::new(self.hart), Reservations::new());
        context.call(&self.image, entry, STACK + STACK_BYTES as u32 - 16, arguments, CYCLES);
        loop {
            match context.run(&self.image, &mut space, &mut reservations, u64::MAX) {
                Exit::Return(value) => return Ok(value),
                Exit::Order(_) => context
                    .perform(&self.image, &mut space, &mut reservations)
                    .map_err(|trap| XdpError::Program(format!("{function}: {trap}")))?,
                Exit::Trap(trap) => return Err(XdpError::Program(format!("{function}: {trap}"))),
                Exit::Limit => {}
                Exit::Ecall if moves(&mut context, &mut space) => {}
                Exit::Ecall => {
                    return Err(XdpError::Program(format!(
                        "{function} calls the card, but there is no card here"
                    )));
                }
                Exit::Device(_) | Exit::Fetch { .. } => {
                    unreachable!("a space without devices and caches")
                }
            }
        }
    }

    /// Calls a function with these bytes at [`EXCHANGE`]. Returns its result, and the bytes behind it.
    ///
    /// # Errors
    /// There is no such function, or it traps.
    pub fn call_with(
        &mut self,
        function: &str,
        arguments: &[u32],
        exchange: Vec<u8>,
    ) -> Result<(u32, Vec<u8>), XdpError> {
        self.exchange = exchange;
        let result = self.call(function, arguments)?;
        Ok((result, std::mem::take(&mut self.exchange)))
    }

    /// The byte at an address of the program's data.
    pub fn byte(&self, address: u32) -> Option<u8> {
        self.data.1.get(address.checked_sub(self.data.0)? as usize).copied()
    }

    /// Makes the lists of a map, if it has any.
    ///
    /// # Errors
    /// The program is no such program.
    pub fn prepare(&mut self, map: &str) -> Result<(), XdpError> {
        let address = self.address(map)?;
        self.call("nicety_xdp_prepare", &[address]).map(drop)
    }

    /// Sets an entry of a map as user space does.
    ///
    /// # Errors
    /// The program is no such program. The inner error is Linux's.
    pub fn set(
        &mut self,
        map: &str,
        layout: &Layout,
        item: &Item,
        flags: u32,
    ) -> Result<Result<(), Errno>, XdpError> {
        let (address, stride) = (self.address(map)?, layout.stride as usize);
        let values_at = item.key.len().next_multiple_of(8);
        self.exchange = vec![0; values_at + stride * item.values.len()];
        self.exchange[..item.key.len()].copy_from_slice(&item.key);
        for (at, value) in item.values.iter().enumerate() {
            let begin = values_at + at * stride;
            self.exchange[begin..begin + value.len()].copy_from_slice(value);
        }
        let arguments = [address, EXCHANGE, EXCHANGE + values_at as u32, flags];
        let code = self.call("nicety_xdp_set", &arguments)? as i32;
        Ok(if code == 0 { Ok(()) } else { Err(Errno(-i64::from(code))) })
    }

    /// All entries of a map.
    ///
    /// # Errors
    /// The program is no such program.
    pub fn entries(&mut self, map: &str, layout: &Layout) -> Result<Vec<Item>, XdpError> {
        let address = self.address(map)?;
        let definition = &layout.definition;
        let keys = definition.key_size as usize;
        let (values_at, stride) = (keys.next_multiple_of(8), layout.stride as usize);
        let copies = if layout.kind.is_per_cpu() { layout.cpus as usize } else { 1 };
        let each = values_at + copies * stride;
        self.exchange = vec![0; each * definition.max_entries as usize];
        let bytes = self.exchange.len() as u32;
        let count = self.call("nicety_xdp_entries", &[address, EXCHANGE, bytes])? as usize;
        let item = |bytes: &[u8]| {
            let values = bytes[values_at..].chunks_exact(stride.max(1));
            Item {
                key: bytes[..keys].to_vec(),
                values: values.map(|value| value[..definition.value_size as usize].to_vec()).collect(),
            }
        };
        Ok(self.exchange.chunks_exact(each.max(1)).take(count).map(item).collect())
    }

    /// Updates that found a map full.
    ///
    /// # Errors
    /// The program is no such program.
    pub fn full(&self, map: &str, layout: &Layout) -> Result<u32, XdpError> {
        use nicety_ebpf::MapKind;
        let at = match layout.kind {
            MapKind::Ring => 4,
            MapKind::Queue | MapKind::Stack | MapKind::Lpm => 12,
            kind if layout.mask > 0 && kind != MapKind::Bloom => 12,
            MapKind::Hash | MapKind::PerCpuHash | MapKind::LruHash | MapKind::LruPerCpuHash => 12,
            _ => return Ok(0),
        };
        let memory = self.variable(&nicety_ebpf::card::Symbols::memory(map))?;
        Ok(memory[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word)))
    }

    /// Frames with `XDP_ABORTED` by place. A program that never ends with it has no counters.
    pub fn aborted(&self) -> Vec<u32> {
        let bytes = self.variable(ABORTED_NAME).unwrap_or_default();
        bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    /// The counters of verdicts.
    ///
    /// # Errors
    /// The program is no such program.
    pub fn counts(&self) -> Result<Counts, XdpError> {
        let words = self.variable("nicety_xdp_counts")?.as_chunks::<4>().0;
        let word = |at: usize| words.get(at).map_or(0, |word| u32::from_le_bytes(*word));
        Ok(Counts {
            aborted: word(0),
            invalid: word(1),
            to_wire: word(2),
            to_queue: word(3),
            failed: word(4),
            too_long: word(5),
            passed: word(6),
            sent: word(7),
        })
    }
}
