//! A card's core with a translated program, its maps and the runtime.

use crate::toolchain::{Cores, linked};
use nicety_hpu::{AddressSpace, Context, Exit, Image, Region, Reservations, Trap};
use nicety_xdp::{Request, build, finish};
use std::sync::Arc;

pub(crate) const CPUS: u32 = 2;
/// As Linux's, less the record of a frame.
const HEADROOM: u32 = 216;
const LONGEST: u32 = 2000;
pub(crate) const QUEUES: u32 = 8;
/// Places in a handler's memory.
const PLACE: u32 = 0x1c40_0000;
const ARGUMENTS: u32 = 0x1b00_0000;
const STACK: u32 = 0x2000_0000;
const STACK_BYTES: usize = 4096;
/// The place of a program's context.
const PROGRAM_CONTEXT: u32 = 0x1b10_0000;

pub(crate) fn request(program: &str, cores: Cores, maps: &[(&str, String)]) -> Request {
    Request {
        program: Some(program.to_owned()),
        isa: cores.isa().to_owned(),
        misaligned: true,
        cluster: None,
        cpus: CPUS,
        headroom: HEADROOM,
        longest: LONGEST,
        queues: QUEUES,
        cycle_ps: 1000,
        memory: 4 << 20,
        frames: false,
        offload: None,
        unverified: false,
        lenient: false,
        maps: maps.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect(),
    }
}

/// A card's core with a program.
pub(crate) struct Card {
    image: Arc<Image>,
    code: (u32, Vec<u8>),
    pub(crate) data: (u32, Vec<u8>),
    pub(crate) elf: Vec<u8>,
    cores: Cores,
    pub(crate) core: u32,
}

impl Card {
    pub(crate) fn new(name: &str, file: &[u8], cores: Cores, request: &Request) -> Card {
        let assembly = build(file, request).unwrap().assembly;
        let elf = finish(file, &linked(name, &assembly, cores), request).unwrap();
        let image = Image::load(&elf, &cores.core()).unwrap();
        let bytes = |writable| {
            let segment = image.segments().iter().find(|s| s.writable() == writable).unwrap();
            let mut bytes = vec![0; segment.size() as usize];
            segment.write_to(&mut bytes);
            (segment.address(), bytes)
        };
        let (code, data) = (bytes(false), bytes(true));
        Card { image, code, data, elf, cores, core: 0 }
    }

    /// Runs the frame handler, and returns its result and the frame.
    pub(crate) fn handle(&mut self, frame: &[u8], channel: u32) -> (u32, Vec<u8>) {
        self.checked(frame, channel).unwrap_or_else(|trap| panic!("{trap}"))
    }

    /// The same of a program that may trap.
    pub(crate) fn checked(&mut self, frame: &[u8], channel: u32) -> Result<(u32, Vec<u8>), Box<Trap>> {
        let (value, frame, _) = self.run("frame_handler", &[ARGUMENTS, 0], (frame, channel))?;
        Ok((value, frame))
    }

    /// Runs the program alone, and returns its result and the instructions with those of helpers.
    pub(crate) fn program(&mut self, frame: &[u8], channel: u32) -> (u32, u64) {
        let ran = self.run("nicety_xdp_program", &[PROGRAM_CONTEXT], (frame, channel));
        let (value, _, instructions) = ran.unwrap_or_else(|trap| panic!("{trap}"));
        (value, instructions)
    }

    /// The context of a program: `struct nicety_xdp_context` of the runtime.
    fn context(&self, start: u32, end: u32, channel: u32) -> Vec<u8> {
        let words = [PLACE + start, PLACE + end, PLACE + start, 1, channel, 0, ARGUMENTS];
        let upper: &[u32] = if self.cores == Cores::Rv64 { &[0] } else { &[] };
        let all = [&words, upper, &[PLACE + start, 0]].concat();
        all.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn run(
        &mut self,
        entry: &str,
        arguments: &[u32],
        (frame, channel): (&[u8], u32),
    ) -> Result<(u32, Vec<u8>, u64), Box<Trap>> {
        let mut place = vec![0; (HEADROOM + LONGEST) as usize];
        let (mut start, mut end) = (HEADROOM, HEADROOM + frame.len() as u32);
        place[start as usize..end as usize].copy_from_slice(frame);
        let entry = self.image.symbol(entry).unwrap();
        let mut own = self.context(start, end, channel);
        let mut stack = vec![0; STACK_BYTES];
        let (mut context, mut reservations) = (Context::new(self.core), Reservations::new());
        context.call(&self.image, entry, STACK + STACK_BYTES as u32, arguments, 1_000_000);
        loop {
            // A pointer, and three words.
            let upper: &[u32] = if self.cores == Cores::Rv64 { &[0] } else { &[] };
            let words = [&[PLACE + start], upper, &[end - start, 0, channel]].concat();
            let arguments: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let mut space = AddressSpace::new()
                .with(Region::read_only("arguments", ARGUMENTS, &arguments))
                .with(Region::memory("context", PROGRAM_CONTEXT, &mut own))
                .with(Region::memory("packet", PLACE + start, &mut place[start as usize..end as usize]))
                .with(Region::stack("stack", STACK, &mut stack, 0))
                .with(Region::read_only("code", self.code.0, &self.code.1))
                .with(Region::memory("data", self.data.0, &mut self.data.1));
            let exit = context.run(&self.image, &mut space, &mut reservations, u64::MAX);
            if let Exit::Return(value) = exit {
                drop(space);
                return Ok((value, place[start as usize..end as usize].to_vec(), context.instret()));
            }
            match exit {
                Exit::Return(_) => unreachable!("it was looked at"),
                Exit::Order(_) => context.perform(&self.image, &mut space, &mut reservations).unwrap(),
                Exit::Trap(trap) => return Err(trap),
                Exit::Ecall => {
                    let [bytes, .., number] = context.args();
                    match number {
                        0x170 => start -= bytes,
                        0x171 => start += bytes,
                        0x172 => end = start + bytes,
                        // The log of trace_printk.
                        0x150 => {}
                        _ => panic!("command {number:#x}"),
                    }
                    context.finish_ecall(0, 0);
                }
                Exit::Limit => panic!("the program does not end"),
                Exit::Device(_) | Exit::Fetch { .. } => unreachable!("a space without devices and caches"),
            }
        }
    }
}
