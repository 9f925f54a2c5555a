//! Who answers a message, or where it goes: the modes that a card's benchmarks have.

use super::Benchmark;
use crate::{Design, Error};

/// A mode of the cards of one design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The host's CPU answers: it notices the message and posts the reply.
    Rdma,
    /// The card answers by a triggered put, once the message has been deposited and counted.
    Portals4,
    /// Handlers answer from the card where the message is one packet, from host memory once it is complete otherwise.
    SpinStore,
    /// Handlers answer packet by packet.
    SpinStream,
    /// The host's CPU answers, with `recv` and `send`: by way of channels to the processes that forward messages.
    Channels,
}

impl Mode {
    /// All modes, in the order of tables.
    pub const ALL: [Mode; 5] =
        [Mode::Rdma, Mode::Portals4, Mode::SpinStore, Mode::SpinStream, Mode::Channels];

    /// Those that cards of a design have.
    pub const fn of(design: Design) -> &'static [Mode] {
        match design {
            Design::Portals => &[Mode::Rdma, Mode::Portals4, Mode::SpinStore, Mode::SpinStream],
            Design::Nfp => &[Mode::Channels],
        }
    }

    /// Whether it is `send` and `recv` of the host, and nothing that only some cards have.
    pub(super) const fn is_of_the_library(self) -> bool {
        matches!(self, Mode::Channels)
    }

    /// The name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Rdma => "rdma",
            Mode::Portals4 => "portals4",
            Mode::SpinStore => "spin-store",
            Mode::SpinStream => "spin-stream",
            Mode::Channels => "channels",
        }
    }

    /// The mode of this name.
    ///
    /// # Errors
    /// [`Error::Input`] with the names there are.
    pub fn parse(name: &str) -> Result<Mode, Error> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
            let names = Mode::ALL.map(Mode::name).join(", ");
            Error::Input(format!("no mode '{name}'; the modes are {names}"))
        })
    }

    /// The file of the library's handlers that this mode runs, where it runs any.
    pub(super) const fn handlers(self, benchmark: Benchmark) -> Option<&'static str> {
        match (self, benchmark) {
            (Mode::Rdma | Mode::Portals4 | Mode::Channels, _) => None,
            (Mode::SpinStore, Benchmark::Latency) => Some("pingpong_store.c"),
            (Mode::SpinStream, Benchmark::Latency) => Some("pingpong_stream.c"),
            (Mode::SpinStore, _) => Some("sink_store.c"),
            (Mode::SpinStream, _) => Some("sink_stream.c"),
        }
    }
}
