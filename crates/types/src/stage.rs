//! Stages: the parts of a message's time.
//!
//! Each part of the host, network or card declares the stages of the time that it takes. Two stages with the same name and place
//! are equal, also in different processes of a run. This module declares the stages of every host and link; a design of cards
//! [declares](crate::stages) its own.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// The declaration of a stage.
#[derive(Debug)]
pub struct DeclaredStage {
    /// The name in tables and JSON.
    pub name: &'static str,
    /// Its place among the stages. A message usually passes stages in ascending order of their places.
    pub place: u16,
}

/// A part of a message's latency: work or waiting.
#[derive(Clone, Copy)]
pub struct Stage(&'static DeclaredStage);

impl Stage {
    /// Returns the stage of a declaration. [`stages!`](crate::stages) makes the declaration and the stage.
    pub const fn new(declared: &'static DeclaredStage) -> Stage {
        Stage(declared)
    }

    /// The name in tables and JSON.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    fn order(self) -> (u16, &'static str) {
        (self.0.place, self.0.name)
    }
}

impl PartialEq for Stage {
    fn eq(&self, other: &Stage) -> bool {
        ptr::eq(self.0, other.0) || self.order() == other.order()
    }
}

impl Eq for Stage {}

impl Ord for Stage {
    fn cmp(&self, other: &Stage) -> Ordering {
        if self == other { Ordering::Equal } else { self.order().cmp(&other.order()) }
    }
}

impl PartialOrd for Stage {
    fn partial_cmp(&self, other: &Stage) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Serialize for Stage {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.order().serialize(to)
    }
}

/// Declarations of stages that other processes sent, one for each stage. They live as long as the process.
static CAME: Mutex<Vec<&'static DeclaredStage>> = Mutex::new(Vec::new());

impl<'de> Deserialize<'de> for Stage {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Stage, D::Error> {
        let (place, name) = <(u16, &str)>::deserialize(from)?;
        let mut came = CAME.lock().unwrap_or_else(PoisonError::into_inner);
        let known = came.iter().find(|known| known.place == place && known.name == name).copied();
        let declared = known.unwrap_or_else(|| {
            let new = Box::leak(Box::new(DeclaredStage { name: String::from(name).leak(), place }));
            came.push(new);
            new
        });
        Ok(Stage(declared))
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stage({})", self.name())
    }
}

/// Declares stages as constants, and a list of them. Each has a name and a place. The places of [`Stage::COMMON`] are multiples
/// of 10, and a design's stage goes between two of them.
///
/// ```
/// nicety_types::stages! {
///     /// The stages of the rings.
///     pub const RINGS;
///
///     /// The card fetches a descriptor.
///     pub const DESCRIPTOR = 175, "descriptor";
/// }
/// assert_eq!(RINGS, [DESCRIPTOR]);
/// ```
#[macro_export]
macro_rules! stages {
    (
        $(#[$list_doc:meta])* $list_vis:vis const $list:ident;
        $($(#[$doc:meta])* $vis:vis const $name:ident = $place:literal, $text:literal;)*
    ) => {
        $(
            $(#[$doc])*
            $vis const $name: $crate::Stage = $crate::stages!(@declared $place, $text);
        )*
        $(#[$list_doc])*
        $list_vis const $list: &'static [$crate::Stage] = &[$($name),*];
    };
    (@declared $place:literal, $text:literal) => {{
        static DECLARED: $crate::DeclaredStage = $crate::DeclaredStage { name: $text, place: $place };
        $crate::Stage::new(&DECLARED)
    }};
}

macro_rules! common {
    ($($(#[$doc:meta])* $name:ident = $place:literal, $text:literal;)*) => {
        impl Stage {
            /// The stages that every node with a host and a link may have.
            pub const COMMON: &'static [Stage] = &[$(Stage::$name),*];

            $($(#[$doc])* pub const $name: Stage = stages!(@declared $place, $text);)*
        }
    };
}

common! {
    /// The program computes.
    COMPUTE = 10, "compute";
    /// The program waits for a CPU of its host.
    CPU_QUEUED = 20, "cpu, queued";
    /// Background noise holds the program's CPU.
    NOISE = 30, "noise";
    /// A library's own work on the host's CPU: it finds a pointer, or looks for a process.
    LIBRARY = 40, "library";
    /// The host's CPU enters and leaves the operating system's kernel.
    SYSTEM_CALL = 50, "system call";
    /// The host's CPU copies between a program's memory and the card's buffers.
    COPY = 60, "copy";
    /// The kernel locks pages in memory and translates their addresses for the card.
    PIN = 70, "pin";
    /// The host's CPU posts a command.
    POST = 90, "post";
    /// A command and its payload cross the host bus to the card.
    BUS = 100, "bus";
    /// Waiting for the host bus.
    BUS_QUEUED = 110, "bus, queued";
    /// The card fetches from host memory: request and data.
    FETCH = 180, "fetch";
    /// Waiting for the bus to host memory.
    FETCH_QUEUED = 190, "fetch, queued";
    /// Waiting for the send engine: another message, or the gap between messages.
    SEND_QUEUED = 200, "send, queued";
    /// Serialisation and flight on a link.
    LINK = 210, "link";
    /// Waiting for the link, or for a credit of the receiver.
    LINK_QUEUED = 220, "link, queued";
    /// The link resends a damaged or lost packet: from its first transmission to its last.
    LINK_RESENT = 230, "link, resent";
    /// The packet crosses a switch.
    SWITCH = 260, "switch";
    /// Waiting inside a switch.
    SWITCH_QUEUED = 270, "switch, queued";
    /// The payload, and the event behind it, go to host memory.
    DEPOSIT = 370, "deposit";
    /// Waiting for the bus to host memory.
    DEPOSIT_QUEUED = 380, "deposit, queued";
    /// The kernel handles the card's interrupt.
    INTERRUPT = 410, "interrupt";
    /// Waiting for the handlers of earlier interrupts.
    INTERRUPT_QUEUED = 420, "interrupt, queued";
    /// The kernel unlocks pages.
    UNPIN = 430, "unpin";
    /// A thread moves from its wait queue onto a CPU.
    WAKE = 440, "wake";
    /// The host's CPU notices an event.
    NOTICE = 450, "notice";
}
