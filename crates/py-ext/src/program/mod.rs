//! Programs of hosts as Python coroutines.
//!
//! Programs of hosts call functions of their host. The modules [`messages`], [`portals`], [`handlers`], [`frames`],
//! [`processes`], [`channels`], [`interfaces`], [`rdma`], [`sockets`] and [`xdp`] contain these functions. A function
//! reads its arguments ([`arguments`], [`order`]) and makes a command from them. A command is plain data of
//! [`nicety::commands`]. A set-up command takes no virtual time and returns at once ([`running`]). Any other command is
//! a [`call`], which the coroutine yields when it awaits the call. The coroutine's [`thread`] passes the command to the
//! simulation, and later resumes the coroutine with the [`outcome`]. All of this happens in the OS thread that called
//! [`simulation`]: a run has no OS thread of its own.
//!
//! Any OS thread may use and drop Python objects, so these objects contain only plain data and a [`handle`]. The state
//! of a run, such as the simulated cluster, is on the stack of the run's OS thread. Functions access it through
//! [`running`]. Nothing of this state is borrowed while Python code runs, because a program may start another run.

mod arguments;
mod call;
mod calls;
mod channels;
mod debugging;
mod frames;
mod handle;
mod handlers;
mod interfaces;
mod memory;
mod messages;
mod order;
mod outcome;
mod portals;
mod processes;
mod rdma;
mod running;
mod simulation;
mod sockets;
mod thread;
mod xdp;

pub use call::Call;
pub use calls::Calls;
pub use channels::ChannelCalls;
pub use debugging::DebugSession;
pub use frames::FrameCalls;
pub use handlers::HandlerCalls;
pub use interfaces::InterfaceCalls;
pub use memory::HostMemory;
pub use messages::MessageCalls;
pub use portals::PortalsCalls;
pub use processes::ProcessCalls;
pub use rdma::RdmaCalls;
pub use simulation::Simulation;
pub use sockets::SocketCalls;
pub use xdp::XdpCalls;
