//! Ethernet cards, and the kernel path behind them: drivers, soft rings, TCP, sockets.
//!
//! | file | what is in it |
//! |---|---|
//! | `stages.rs`, `spec.rs`, `driver_spec.rs`, `wire.rs` | stages, the spec, addresses and the check sequence of frames |
//! | `interrupts.rs`, `joining.rs` | coalesced interrupts, joined frames (LRO) |
//! | `transmit.rs`, `receive.rs`, `card.rs` | the card: rings in host memory, DMA, the link |
//! | `rules/` | which frames handlers want |
//! | `handling.rs` | handlers on frames, and where frames go from them |
//! | `generate.rs`, `tester.rs` | generators of frames: a card, and a tester that has none |
//! | `judged.rs` | what becomes of a tester's frames |
//! | `loans.rs` | receive buffers whose frames the kernel has |
//! | `softrings.rs` | kernel threads that run the protocols for frames that have come |
//! | `waiters.rs`, `programs.rs` | threads that wait, and those of programs |
//! | `net.rs` | the host's network: the stack, timers, who waits for what |
//! | `holding.rs` | bytes that a reader is not told of yet |
//! | `driver.rs` | interrupt handlers, descriptors, doorbells |
//! | `work.rs` | what frames make each part of the host do |
//! | `sockets/` | sockets, and the calls of programs on them |
//! | `messages/` | `send` and `recv` over connections |
//! | `design.rs` | the card behind the design seam |
//!
//! # The steps of a byte
//! 1. A thread enters the kernel, and copies the bytes to its socket. TCP makes segments of them, each a frame; the driver puts
//!    it into a buffer with a descriptor, and writes to a register of the card (the doorbell).
//! 2. The card fetches descriptors, then the frame, and sends it with its check sequence.
//! 3. The other card verifies it, hashes addresses and ports to a receive channel, and writes the frame to the channel's next
//!    buffer, and a completion behind it. Without a free buffer it drops the frame.
//! 4. After so many frames, or so long after the first, the channel interrupts its CPU. The handler reads registers, takes all
//!    frames, and then hands them to the soft rings of their connections, whose threads it wakes.
//! 5. The thread of a soft ring runs TCP, sends acknowledgements, and wakes the thread that waits for the bytes.
//! 6. That thread copies them, and frees their frames, whose buffers go back to the card.
//!
//! The protocols are `crates/stack`; what each step costs, and where it queues, is here. Threads are `nicety_host::threads`.

mod card;
mod design;
mod driver;
mod driver_spec;
mod generate;
mod handling;
mod holding;
mod interrupts;
mod joining;
mod judged;
mod loans;
mod messages;
mod net;
mod programs;
mod receive;
mod rules;
mod sockets;
mod softrings;
mod spec;
pub mod stages;
mod tester;
mod transmit;
mod waiters;
mod wire;
mod work;

pub use card::Statistics;
pub(crate) use design::DESIGN;
pub use design::{GroupReport, Node, Report};
pub use handling::{Handling, InstallError, RuleReport, check_rule};
pub use judged::Judged;
pub use rules::{Rule, RuleError, Word};
pub use sockets::{Setting, SocketError, SocketKind, Sockets};
pub use spec::{
    DriverSpec, EthernetSpec, FramesSpec, HandlersSpec, InterruptsSpec, MessagesSpec, ReceiveSpec,
    RegistersSpec, SocketsSpec, StackCosts, TcpSpec, TransmitSpec,
};
pub use tester::Tester;
pub use wire::{ipv4, ipv6};
pub use work::{ForHost, HostWork};
