//! A host and its card, the processes at the card's ends of channels, and the check of their bytes.

use super::request::{DIRECT, Direction, Mode, STORED};
use nicety::{Buffer, CardMemory, Channel, Device, Error, Host, MemoryKind, Process, Processes, Start};

/// Number of bytes compared at a time.
const COMPARED: usize = 1 << 16;
/// The number of the first target.
const TARGETS: u32 = 1;

/// The kind of messages, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) mode: Mode,
    pub(super) direction: Direction,
    /// Bytes of each message.
    pub(super) bytes: u32,
    /// Number of messages of each process.
    pub(super) messages: u32,
    pub(super) processes: u32,
    /// The card's memory that holds the messages.
    pub(super) memory: MemoryKind,
}

impl Load {
    /// Returns the name of the process's function in `channel_bench.c`.
    const fn function(&self) -> &'static str {
        match (self.mode, self.direction) {
            (Mode::Direct, Direction::HostToCard) => "bench_read",
            (Mode::Direct, Direction::CardToHost) => "bench_write",
            (Mode::Indirect, Direction::HostToCard) => "bench_read_ind",
            (Mode::Indirect, Direction::CardToHost) => "bench_write_ind",
        }
    }

    /// Returns the bytes of card memory that a process needs.
    fn memory_bytes(&self) -> u32 {
        match (self.mode, self.direction) {
            (Mode::Direct, Direction::HostToCard) => STORED * self.messages,
            (Mode::Direct, Direction::CardToHost) => STORED,
            (Mode::Indirect, _) => self.bytes.next_multiple_of(STORED),
        }
    }
}

/// A process, and the memory that it reads or writes.
#[derive(Clone, Copy)]
pub(super) struct Far {
    process: Process,
    target: u32,
    memory: CardMemory,
}

impl Far {
    /// Starts the processes. Every microengine gets one process before any gets a second one. Each process has a part of the
    /// memory of its own, and of its own island if each island has such a memory.
    pub(super) fn start_all(host: &Host, program: &Processes, load: &Load) -> Result<Vec<Far>, Error> {
        let channels = host.channels()?;
        let microengines = channels.spec().cores;
        let bytes = load.memory_bytes();
        let mut taken = vec![0; channels.spec().islands()];
        let contexts = (load.processes as usize).div_ceil(microengines);
        let start = |number: u32| {
            let microengine = number as usize % microengines;
            let island = if load.memory.of_island() { microengine / channels.spec().island } else { 0 };
            let memory = CardMemory { kind: load.memory, island, offset: taken[island], bytes };
            taken[island] += bytes;
            let target = TARGETS + number;
            if (load.mode, load.direction) == (Mode::Direct, Direction::CardToHost) {
                channels.write(&memory, &pattern(host, load, target)[..DIRECT as usize])?;
            }
            let process = channels.start(
                program,
                &Start {
                    name: load.function(),
                    microengine,
                    context: number as usize / microengines,
                    contexts: Some(contexts),
                    arguments: &[target, load.bytes, load.messages, memory.address()],
                },
            )?;
            Ok(Far { process, target, memory })
        };
        (0..load.processes).map(start).collect()
    }

    pub(super) fn target(&self) -> u32 {
        self.target
    }
}

/// A thread's end of a channel, and the messages on it.
pub(super) struct Near {
    host: Host,
    device: Device,
    channel: Channel,
    load: Load,
    far: Far,
    buffer: Buffer,
    /// The bytes of messages with even numbers, and the bytes of messages with odd numbers. Each byte of one is the
    /// complement of the same byte of the other, so two consecutive messages differ in every byte.
    patterns: [Vec<u8>; 2],
}

impl Near {
    pub(super) fn new(host: Host, channel: Channel, load: Load, far: Far) -> Result<Near, Error> {
        let device = host.channels()?.open();
        let buffer = host.alloc(load.bytes.into())?;
        let first = pattern(&host, &load, far.target);
        let second = first.iter().map(|byte| !byte).collect();
        Ok(Near { host, device, channel, load, far, buffer, patterns: [first, second] })
    }

    /// Returns the bytes of a direct message. Its first word is the message's number added to the first word of the pattern.
    fn direct(&self, message: u32) -> Vec<u8> {
        let pattern = &self.patterns[0];
        let mut bytes = pattern[..DIRECT as usize].to_vec();
        let first = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).wrapping_add(message);
        bytes[..4].copy_from_slice(&first.to_le_bytes());
        bytes.truncate(self.load.bytes as usize);
        bytes
    }

    /// Fills the buffer of a message. This takes no virtual time.
    pub(super) fn prepare(&self, message: u32) -> Result<(), Error> {
        if self.load.mode == Mode::Direct {
            return Ok(());
        }
        let pattern = &self.patterns[message as usize % 2][..self.load.bytes as usize];
        match self.load.direction {
            Direction::HostToCard => self.buffer.write(0, pattern),
            Direction::CardToHost => self.host.channels()?.write(&self.far.memory, pattern)?,
        }
        Ok(())
    }

    /// Transfers a message. The measured time lasts from the call of this function to its return.
    pub(super) async fn transfer(&self, message: u32) -> Result<(), Error> {
        let Near { device, channel, load, .. } = self;
        match (load.mode, load.direction) {
            (Mode::Direct, Direction::HostToCard) => device.send(*channel, &self.direct(message), None).await,
            (Mode::Direct, Direction::CardToHost) => {
                let found = device.receive(*channel, load.bytes, None).await?;
                compare(&found, &self.direct(message), message, 0)
            }
            (Mode::Indirect, Direction::HostToCard) => device.send_ind(*channel, &self.buffer, None).await,
            (Mode::Indirect, Direction::CardToHost) => device.receive_ind(*channel, &self.buffer, None).await,
        }
    }

    /// Checks the bytes of an indirect message at its destination. This takes no virtual time.
    pub(super) fn check(&self, message: u32) -> Result<(), Error> {
        if self.load.mode == Mode::Direct {
            return Ok(());
        }
        let pattern = &self.patterns[message as usize % 2][..self.load.bytes as usize];
        for (at, expected) in (0u32..).step_by(COMPARED).zip(pattern.chunks(COMPARED)) {
            let bytes = expected.len() as u32;
            let found = match self.load.direction {
                Direction::HostToCard => {
                    let memory = CardMemory { offset: self.far.memory.offset + at, bytes, ..self.far.memory };
                    self.host.channels()?.read(&memory)?
                }
                Direction::CardToHost => self.buffer.read(at.into(), bytes.into()),
            };
            compare(&found, expected, message, at)?;
        }
        Ok(())
    }

    /// Waits until the process has ended, and checks the direct messages that it has stored.
    pub(super) async fn finish(&self) -> Result<(), Error> {
        let result = self.host.channels()?.finished(&self.far.process).await?;
        if result != 0 {
            return Err(Error::Program(format!(
                "the process of target {} ended with {} (see nfp.h)",
                self.far.target, result as i32
            )));
        }
        if (self.load.mode, self.load.direction) == (Mode::Direct, Direction::HostToCard) {
            for message in 0..self.load.messages {
                let offset = self.far.memory.offset + STORED * message;
                let memory = CardMemory { offset, bytes: self.load.bytes, ..self.far.memory };
                compare(&self.host.channels()?.read(&memory)?, &self.direct(message), message, 0)?;
            }
        }
        Ok(())
    }
}

/// Returns the bytes of the first message on a channel.
fn pattern(host: &Host, load: &Load, target: u32) -> Vec<u8> {
    let mut bytes = vec![0; load.bytes.max(DIRECT as u32) as usize];
    host.rng(&format!("channel payload {target}")).fill(&mut bytes);
    bytes
}

fn compare(found: &[u8], expected: &[u8], message: u32, from: u32) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    let differs = found.iter().zip(expected).position(|(a, b)| a != b);
    Err(Error::Program(format!(
        "message {message} came with wrong bytes from byte {} on",
        differs.unwrap_or(found.len().min(expected.len())) as u64 + u64::from(from)
    )))
}
