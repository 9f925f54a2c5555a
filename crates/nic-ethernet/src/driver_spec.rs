//! The spec of interrupts and of the driver that handles them.

use nicety_spec::Section;
use nicety_types::Duration;

/// The greatest value of a key in instructions.
const MOST_INSTRUCTIONS: u64 = 10_000_000;
/// The length of the longest IP packet in bytes, rounded up by a byte.
pub(super) const MOST_PACKET: u64 = 64 << 10;

/// The coalescing of a channel's interrupts.
#[derive(Clone, Copy, Debug)]
pub struct InterruptsSpec {
    /// Number of frames per interrupt.
    pub packets: u64,
    /// Time from the first unreported frame to the interrupt. If the timer runs from the driver's arming on, this is
    /// the timer's period.
    pub time: Duration,
    /// Whether the timer runs from the driver's arming on, and not from a frame on.
    pub from_arming: bool,
    /// Number of CPUs for the channels.
    pub cpus: usize,
    /// The first of these CPUs.
    pub first: usize,
    /// The distance from one of these CPUs to the next.
    pub step: usize,
    /// Number of vectors for the card's channels. The receive channels come first. The last vector serves all remaining
    /// channels. 0 stands for a vector per channel.
    pub vectors: usize,
    /// Number of CPUs that the operating system uses. The CPUs of interrupts are counted modulo this number.
    pub all: usize,
    /// Instructions of the host per interrupt, before the handler begins and after it ends.
    pub taken: u64,
    /// Time for which this work waits for registers of the bus bridge.
    pub taken_time: Duration,
}

impl InterruptsSpec {
    /// Returns the CPU of a channel's interrupts. `channel` is the channel's number among all channels of the card.
    pub(super) const fn cpu(&self, channel: usize) -> usize {
        let vector = match self.vectors.checked_sub(1) {
            Some(last) if last < channel => last,
            _ => channel,
        };
        (self.first + vector % self.cpus * self.step) % self.all
    }

    /// Whether a channel shares its vector with others. The card has `channels` channels.
    pub(super) const fn shares(&self, channel: usize, channels: usize) -> bool {
        self.vectors > 0 && channels > self.vectors && channel + 1 >= self.vectors
    }
}

/// The driver's work, in instructions unless stated otherwise.
#[derive(Clone, Copy, Debug)]
pub struct DriverSpec {
    /// The work of an interrupt, without that of its frames.
    pub interrupt: u64,
    /// Number of the card's registers that an interrupt's handler reads, one after another.
    pub interrupt_reads: u64,
    /// Number of registers that the handler reads before, if several channels share the vector.
    pub shared_reads: u64,
    /// Number of registers that the handler writes. It writes the first after it took the frames, and the others after
    /// it handed them over.
    pub interrupt_writes: u64,
    /// The work of a received frame.
    pub receive: u64,
    /// The work to return an entry of a receive ring, besides a register write. An entry is returned when the last
    /// frame in its buffers is freed. With 0, the handler returns all entries at once.
    pub post: u64,
    /// The work to free a frame, besides the return of an entry.
    pub free: u64,
    /// Limit for frames in the kernel, in percent of a ring's buffers. From this limit on, the driver copies frames.
    pub loan: u64,
    /// The same limit for frames in the smallest of several sizes of buffers, if entries are blocks.
    pub loan_small: u64,
    /// The work of a frame to send.
    pub transmit: u64,
    /// Number of frames that the owner of a transmit ring sends, including its own. After these, it leaves the frames
    /// of others to a thread of the kernel. 0 if each thread sends its own frames.
    pub serial: u64,
    /// Length in bytes of the longest frame to send that the driver copies to its own buffer. 0 if the driver copies
    /// none.
    pub copy: u64,
    /// Number of used descriptors of a ring from which on a sender reads a register, to learn the free descriptors. 0
    /// if the card reports them.
    pub reclaim: u64,
    /// The maximum number of frames per interrupt.
    pub budget: u64,
    /// Whether a handler goes on without another interrupt after it took the maximum number of frames and sees more.
    pub polls: bool,
}

/// Reads the spec of a driver.
pub(super) fn read_driver(s: &Section<'_>) -> DriverSpec {
    DriverSpec {
        interrupt: instructions(s, "interrupt", "an interrupt, without its frames"),
        interrupt_reads: s.count("interrupt_reads", 0..=1000, "registers that an interrupt's handler reads"),
        shared_reads: s.count_or(
            "shared_reads",
            0..=1000,
            0,
            "registers that the handler reads first, to find the channels that raised a shared vector",
        ),
        interrupt_writes: s.count_or("interrupt_writes", 1..=1000, 2, "registers that it writes"),
        receive: instructions(s, "receive", "a received frame"),
        post: s.count_or(
            "post",
            0..=MOST_INSTRUCTIONS,
            0,
            "posting a receive buffer when its frame is freed, with a register write; with 0 the handler \
             posts all buffers together",
        ),
        free: s.count_or("free", 0..=MOST_INSTRUCTIONS, 0, "freeing a frame, without posting its buffer"),
        loan: s.count_or(
            "loan",
            1..=100,
            100,
            "share of a ring's buffers that the kernel may hold, in percent; beyond, the driver copies frames",
        ),
        loan_small: s.count_or(
            "loan_small",
            1..=100,
            100,
            "the same share for frames in buffers of receive.small bytes",
        ),
        transmit: instructions(s, "transmit", "a frame to send"),
        serial: s.count_or(
            "serial",
            0..=1 << 16,
            0,
            "frames that a ring's first sender sends for itself and others, before a kernel thread does; with 0 each sends its own",
        ),
        copy: s.size_or("copy", 0..=MOST_PACKET, "0 B", "longest frame to send that the driver copies; 0 B if none"),
        reclaim: s.count_or(
            "reclaim",
            0..=1 << 16,
            0,
            "used descriptors of a ring at which the driver reads a register to find free ones; with 0 the \
             card reports them",
        ),
        budget: s.count("budget", 1..=1 << 16, "frames that a handler takes before others of its CPU run"),
        polls: s.flag_or(
            "polls",
            false,
            "whether a handler that took its budget continues with further frames without an interrupt",
        ),
    }
}

/// Reads the spec of interrupts, including the keys in the bus's section.
pub(super) fn read_interrupts(s: &Section<'_>, bus: &Section<'_>, cpus: u64) -> InterruptsSpec {
    InterruptsSpec {
        packets: s.count("packets", 1..=1 << 16, "frames after which a channel interrupts"),
        time: s.time("time", "time after which a channel interrupts"),
        from_arming: s.choice_or(
            "timer",
            &["frame", "arming"],
            "frame",
            "start of this time: the first unreported frame, or the driver's arming and then each end of the time",
        ) == "arming",
        cpus: s.count("cpus", 1..=1024, "CPUs that take interrupts").min(cpus) as usize,
        first: s.count_or("first", 0..=1023, 0, "the first of these CPUs") as usize,
        step: s.count_or("step", 1..=1023, 1, "the distance between two of them, over all CPUs in turn")
            as usize,
        vectors: s.count_or(
            "vectors",
            0..=2048,
            0,
            "vectors of all channels, receiving first; those beyond share the last; with 0 each has its own",
        ) as usize,
        all: cpus as usize,
        taken: bus.count_or(
            "interrupt",
            0..=MOST_INSTRUCTIONS,
            0,
            "instructions with which the host takes an interrupt from the bus, without those of the handler",
        ),
        taken_time: bus.time_or(
            "interrupt_time",
            "0 s",
            "time that the host waits for registers of the bridge during these instructions",
        ),
    }
}

/// Reads a number of instructions.
pub(super) fn instructions(s: &Section<'_>, key: &'static str, doc: &'static str) -> u64 {
    s.count(key, 0..=MOST_INSTRUCTIONS, doc)
}
