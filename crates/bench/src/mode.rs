//! The modes of a card's benchmarks. Depending on the card, a mode says who answers, where messages go, or by which method they
//! are transferred.

use super::Benchmark;
use nicety::{Design, Error};
use nicety_nic_qnix::TransferMethod;

/// A mode of the cards of some design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The host's CPU answers: it notices the message and posts the reply.
    Rdma,
    /// The card answers by a triggered put, when the message has been deposited and counted.
    Portals4,
    /// Handlers answer. If the message is a single packet, the answer comes from the card; otherwise from host memory, when the
    /// message is complete.
    SpinStore,
    /// Handlers answer each packet by itself.
    SpinStream,
    /// The host's CPU answers, with `recv` and `send` over channels to the forwarding processes.
    Channels,
    /// The natural mode of the card: [`Mode::Rdma`], [`Mode::Channels`], or `send` and `recv` by the fastest of the following
    /// methods.
    Auto,
    /// `send` by programmed I/O, and `recv` into a buffer in a Buffer Pool.
    Pio,
    /// `send` and `recv` by DMA. Both buffers are in Buffer Pools.
    Dma,
    /// `send` and `recv` by DMA, with copies into and from a Buffer Pool.
    Copy,
    /// Puts between registered memories, on a card with RDMA.
    Put,
    /// `send` and `recv` by DMA from and to buffers that are locked and translated for each message.
    Translate,
}

impl Mode {
    /// All modes, in the order of tables.
    pub const ALL: [Mode; 11] = [
        Mode::Rdma,
        Mode::Portals4,
        Mode::SpinStore,
        Mode::SpinStream,
        Mode::Channels,
        Mode::Put,
        Mode::Auto,
        Mode::Pio,
        Mode::Dma,
        Mode::Copy,
        Mode::Translate,
    ];

    /// Returns the modes of a design's cards, without [`Mode::Auto`], which all cards have.
    pub fn of(design: &Design) -> Vec<Mode> {
        let names = design.modes;
        Mode::ALL.into_iter().filter(|mode| names.contains(&mode.name())).collect()
    }

    /// Returns the mode itself; for [`Mode::Auto`], returns the natural mode of the design's cards.
    pub(super) fn on(self, design: &Design) -> Mode {
        let natural = || Mode::ALL.into_iter().find(|mode| design.natural_mode == Some(mode.name()));
        if self == Mode::Auto { natural().unwrap_or(self) } else { self }
    }

    /// The transfer method of `send` and `recv` on a card with virtual network interfaces; `None` if the mode does not prescribe
    /// one.
    pub(super) const fn how(self) -> Option<TransferMethod> {
        match self {
            Mode::Pio => Some(TransferMethod::Pio),
            Mode::Dma => Some(TransferMethod::Pool),
            Mode::Copy => Some(TransferMethod::Copy),
            Mode::Translate => Some(TransferMethod::Translate),
            _ => None,
        }
    }

    /// Whether the mode is `send` and `recv`, and receives are posted ahead of their messages.
    pub(super) const fn posts_ahead(self) -> bool {
        matches!(self, Mode::Auto | Mode::Pio | Mode::Dma | Mode::Copy | Mode::Translate)
    }

    /// Whether the mode is `send` and `recv` of the host, which need no feature of a single design.
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
            Mode::Put => "put",
            Mode::Auto => "auto",
            Mode::Pio => "pio",
            Mode::Dma => "dma",
            Mode::Copy => "copy",
            Mode::Translate => "translate",
        }
    }

    /// Returns the mode of this name.
    ///
    /// # Errors
    /// [`Error::Input`] with the valid names.
    pub fn parse(name: &str) -> Result<Mode, Error> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
            let names = Mode::ALL.map(Mode::name).join(", ");
            Error::Input(format!("no mode '{name}'; the modes are {names}"))
        })
    }

    /// Returns the source file of the handlers that this mode runs, if any, in the library of handlers.
    pub(super) const fn handlers(self, benchmark: Benchmark) -> Option<&'static str> {
        match (self, benchmark) {
            (Mode::SpinStore, Benchmark::Latency) => Some("pingpong_store.c"),
            (Mode::SpinStream, Benchmark::Latency) => Some("pingpong_stream.c"),
            (Mode::SpinStore, _) => Some("sink_store.c"),
            (Mode::SpinStream, _) => Some("sink_stream.c"),
            _ => None,
        }
    }
}
