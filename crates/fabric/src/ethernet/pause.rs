//! Both ends of a pause: who asks for it, and who stops.
//!
//! A pause lasts for a number of quanta, unless a frame ends it sooner. As long as it is meant it is repeated, each time when half
//! of it has passed. Where it has been repeated often and nothing has moved meanwhile, the last frame says that it holds until
//! it is ended, and is not repeated: so a run in which nothing can move comes to its end, and can be told.

use crate::faults::Place;
use nicety_types::{Duration, Gap, Time};
use serde::{Deserialize, Serialize};

/// Bytes whose time on the wire is a quantum: 512 bits.
const QUANTUM: u64 = 64;
/// How often a pause is repeated while nothing moves.
const REPEATS: u32 = 16;

/// What a pause frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pause {
    /// Send nothing for so many quanta.
    For(u16),
    /// Send nothing until a frame says to go on.
    UntilResumed,
    /// Go on.
    Resume,
}

/// Bytes of a pause frame without its checksum, of which the last are padding.
const FRAME: usize = 60;

impl Pause {
    /// The frame of IEEE 802.1Qbb that says it for priority 0, from this node. One without an end says the longest time.
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
        // MAC control, priority flow control, the priorities that it is for, and the time of the first.
        frame[12..18].copy_from_slice(&[0x88, 0x08, 0x01, 0x01, 0x00, 0x01]);
        frame[18..20].copy_from_slice(&quanta.to_be_bytes());
        frame
    }
}

/// The end that is asked to stop.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Paused {
    until: Time,
    /// Up to which instant `total` has what was paused.
    since: Time,
    total: Duration,
    pub(super) frames: u64,
}

impl Paused {
    /// A frame comes, by a link with this gap.
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

    /// When it may send again; the end of time where that is not known.
    pub(super) fn until(&self) -> Time {
        self.until
    }

    /// How long it was paused up to now.
    pub(super) fn total(&self, now: Time) -> Duration {
        let end = self.until.min(now);
        if end > self.since { self.total + end.since(self.since) } else { self.total }
    }
}

/// The end that asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pauser {
    quanta: u16,
    /// Half of a pause.
    half: Duration,
    on: bool,
    /// When the pause is to be repeated.
    next: Option<Time>,
    repeats: u32,
    /// Whether something has come or left since it was said last.
    moved: bool,
}

impl Pauser {
    /// Pauses of so many quanta on a link with this gap.
    pub(super) fn new(quanta: u16, gap: Gap) -> Pauser {
        let half = gap.cover(QUANTUM * u64::from(quanta) / 2);
        Pauser { quanta, half, on: false, next: None, repeats: 0, moved: false }
    }

    /// Whether a pause is on.
    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    /// When the pause is to be repeated, if it is.
    pub(super) fn next(&self) -> Option<Time> {
        self.next
    }

    /// Begins a pause, and says what is to be sent.
    pub(super) fn begin(&mut self, now: Time) -> Pause {
        (self.on, self.repeats, self.moved) = (true, 0, false);
        self.next = Some(now + self.half);
        Pause::For(self.quanta)
    }

    /// A packet has come or left. Returns what is to be sent where the far end does not know of the pause.
    pub(super) fn moves(&mut self, comes: bool, now: Time) -> Option<Pause> {
        self.moved = true;
        (comes && self.on && self.next.is_none()).then(|| self.begin(now))
    }

    /// Repeats the pause, whose time it is.
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

    /// Ends the pause.
    pub(super) fn end(&mut self) -> Pause {
        (self.on, self.next) = (false, None);
        Pause::Resume
    }
}
