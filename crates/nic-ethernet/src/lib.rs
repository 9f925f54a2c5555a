//! Ethernet cards, and the kernel path behind them: drivers, soft rings, TCP, and sockets.
//!
//! | file | contents |
//! |---|---|
//! | `stages.rs`, `spec.rs`, `driver_spec.rs`, `receive_spec.rs`, `wire.rs` | stages, the spec, addresses and the check sequence of frames |
//! | `flows.rs` | hashes that distribute connections to channels and soft rings |
//! | `interrupts.rs`, `card/joining.rs` | coalesced interrupts, joined frames (LRO) |
//! | `card/transmit.rs`, `card/receive.rs`, `card/` | the card: rings in host memory, DMA, the link |
//! | `rules/` | rules that select frames for handlers |
//! | `card/handling.rs` | handlers on frames, and the destinations of frames after them |
//! | `generate.rs`, `tester.rs` | generators of frames: a card, and a tester without a card |
//! | `card/disposition.rs` | disposition of a tester's frames |
//! | `net/loans.rs` | receive buffers lent to the kernel |
//! | `net/softrings.rs` | kernel threads that run the protocols for received frames |
//! | `waiters.rs`, `programs.rs` | waiting threads, and threads of programs |
//! | `net/` | the host's network: the stack, timers, waiting threads |
//! | `net/holding.rs` | bytes held back from a reader |
//! | `driver.rs` | interrupt handlers, descriptors, doorbells |
//! | `xdp_spec.rs`, `xdp/` | XDP programs in the driver |
//! | `serialiser.rs` | the one thread at a time that sends by a transmit ring |
//! | `work.rs` | work of each part of the host for frames |
//! | `sockets/` | sockets, and the calls of programs on them |
//! | `messages/` | `send` and `recv` over connections |
//! | `design.rs` | the card behind the design seam |
//!
//! # The steps of a byte
//! 1. A thread enters the kernel, and copies the bytes to its socket. TCP makes segments of them, each a frame. The
//!    driver puts each frame into a buffer with a descriptor, and writes a register of the card (the doorbell).
//! 2. The card fetches descriptors and then the frame. It sends the frame with its check sequence.
//! 3. The other card verifies the check sequence, and selects a receive channel by a hash of addresses and ports. It
//!    writes the frame to the channel's next buffer, and then a completion. Without a free buffer, it drops the frame.
//! 4. After a number of frames, or a time after the first, the channel interrupts its CPU. The handler reads registers
//!    and takes all frames. It then hands them to the soft rings of their connections, and wakes their threads.
//! 5. The thread of a soft ring runs TCP, sends acknowledgements, and wakes the program's thread that waits for the
//!    bytes.
//! 6. The program's thread copies the bytes and frees their frames. The buffers return to the card.
//!
//! The protocols are in `crates/stack`. The costs and queues of each step are here. Threads are `nicety_host::threads`.

mod blocks;
mod card;
mod design;
mod driver;
mod driver_spec;
mod flows;
mod generate;
mod interrupts;
mod messages;
mod net;
mod programs;
mod receive_spec;
mod rules;
mod serialiser;
mod sockets;
mod spec;
pub mod stages;
mod tester;
mod waiters;
mod wire;
mod work;
mod xdp;
mod xdp_spec;

pub use card::Statistics;
pub use card::disposition::FrameDispositions;
pub use card::handling::{Handling, InstallError, RuleReport, check_rule};
pub use design::DESIGN;
pub use design::{GroupReport, Node, Report};
pub use flows::FlowHash;
pub use rules::{Rule, RuleError, Word};
pub use sockets::{Setting, SocketError, SocketKind, Sockets};
pub use spec::{
    DriverSpec, EthernetSpec, FramesSpec, HandlersSpec, InterruptsSpec, MessagesSpec, ReceiveSpec,
    RegistersSpec, SocketsSpec, StackCosts, TcpSpec, TransmitSpec, XdpSpec,
};
pub use tester::Tester;
pub use wire::{ipv4, ipv6, station};
pub use work::{ForHost, HostWork};
pub use xdp::{
    MARK, Mode as XdpMode, Xdp, XdpError, XdpProgram, XdpProgress, XdpReport, XskOptions, XskReader,
};
