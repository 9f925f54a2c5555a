//! Both ends of a pause: the receiver of packets, which requests the pause, and the sender of packets, which stops.
//!
//! A pause lasts for a number of quanta, unless a frame ends it sooner. While a pause goes on, it is repeated after
//! half of its duration. After many repeats without progress, the last frame pauses the sender until a frame resumes
//! it, and is not repeated. So a deadlocked run has no further events, and the deadlock is detected.

use crate::faults::Place;
use nicety_types::{Duration, Gap, Time};
use serde::{Deserialize, Serialize};

/// Size of a quantum in bytes: 512 bits.
const QUANTUM: u64 = 64;
/// Maximum number of repeats of a pause without progress.
const REPEATS: u32 = 16;

/// The contents of a pause frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pause {
    /// The sender stops for this number of quanta.
    For(u16),
    /// The sender stops until a frame resumes it.
    UntilResumed,
    /// The sender resumes.
    Resume,
}

/// Size of a pause frame in bytes, without its checksum but with the padding at its end.
const FRAME: usize = 60;

impl Pause {
    /// Returns the frame of IEEE 802.1Qbb for priority 0, sent by node `from`. A pause without an end has the longest
    /// time that a frame can hold.
    pub(crate) fn frame(self, from: Place) -> [u8; FRAME] {
        let (kind, number) = match from {
            Place::Host(rank) => (0, rank),
            Place::Switch(number) => (1, number),
        };
        let quanta: u16 = match self {
            Pause::For(quanta) => quanta,
            Pause::UntilResumed => u16::MAX,
            Pause::Resume => 0,
        };
        let mut frame = [0; FRAME];
        frame[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0x00, 0x00, 0x01]);
        frame[6..8].copy_from_slice(&[0x02, kind]);
        frame[8..12].copy_from_slice(&number.to_be_bytes());
        // The EtherType of MAC control, the opcode of priority flow control, the priority mask, and the time for
        // priority 0.
        frame[12..18].copy_from_slice(&[0x88, 0x08, 0x01, 0x01, 0x00, 0x01]);
        frame[18..20].copy_from_slice(&quanta.to_be_bytes());
        frame
    }
}

/// The state of a sender of packets that may be paused.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Paused {
    until: Time,
    /// The instant up to which `total` counts the paused time.
    since: Time,
    total: Duration,
    pub(super) frames: u64,
}

impl Paused {
    /// Handles a pause frame from a link with this gap per byte.
    pub(super) fn hear(&mut self, pause: Pause, now: Time, gap: Gap) {
        self.total = self.total(now);
        self.since = now;
        self.frames += 1;
        self.until = match pause {
            Pause::For(quanta) => now + gap.cover(QUANTUM * u64::from(quanta)),
            Pause::UntilResumed => Time::MAX,
            Pause::Resume => now,
        };
    }

    /// The end of the pause, or [`Time::MAX`] if only a frame ends it.
    pub(super) fn until(&self) -> Time {
        self.until
    }

    /// The total paused time up to now.
    pub(super) fn total(&self, now: Time) -> Duration {
        let end = self.until.min(now);
        if end > self.since { self.total + end.since(self.since) } else { self.total }
    }
}

/// The state of a receiver of packets that may pause its sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pauser {
    quanta: u16,
    /// Half of the duration of a pause.
    half: Duration,
    on: bool,
    /// The time of the next repeat.
    next: Option<Time>,
    repeats: u32,
    /// Whether a packet has arrived or left since the last frame.
    moved: bool,
}

impl Pauser {
    /// Returns the state without a pause. Pauses last for this number of quanta, on a link with this gap per byte.
    pub(super) fn new(quanta: u16, gap: Gap) -> Pauser {
        let half = gap.cover(QUANTUM * u64::from(quanta) / 2);
        Pauser { quanta, half, on: false, next: None, repeats: 0, moved: false }
    }

    /// Whether a pause has begun and not ended.
    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    /// The time of the next repeat, if any.
    pub(super) fn next(&self) -> Option<Time> {
        self.next
    }

    /// Begins a pause, and returns the frame to send.
    pub(super) fn begin(&mut self, now: Time) -> Pause {
        (self.on, self.repeats, self.moved) = (true, 0, false);
        self.next = Some(now + self.half);
        Pause::For(self.quanta)
    }

    /// Records a packet that has arrived (`comes` is true) or left. If a packet arrives after the last frame of a
    /// pause, the far end has missed this frame. The pause then begins again, and the frame to send is returned.
    pub(super) fn moves(&mut self, comes: bool, now: Time) -> Option<Pause> {
        self.moved = true;
        (comes && self.on && self.next.is_none()).then(|| self.begin(now))
    }

    /// Repeats the pause when the repeat is due, and returns the frame to send.
    pub(super) fn repeat(&mut self, now: Time) -> Pause {
        self.repeats = if self.moved { 1 } else { self.repeats + 1 };
        self.moved = false;
        if self.repeats > REPEATS {
            self.next = None;
            return Pause::UntilResumed;
        }
        self.next = Some(now + self.half);
        Pause::For(self.quanta)
    }

    /// Ends the pause, and returns the frame to send.
    pub(super) fn end(&mut self) -> Pause {
        (self.on, self.next) = (false, None);
        Pause::Resume
    }
}
