//! Programs of hosts as Python coroutines.
//!
//! A program calls its host. The modules [`messages`], [`portals`], [`handlers`], [`frames`], [`processes`], [`channels`],
//! [`interfaces`], [`rdma`] and [`sockets`] read the arguments ([`arguments`], [`order`]), and make a command of them. A command is plain
//! data of [`nicety::commands`]. A set-up command takes no virtual time and returns at once ([`running`]). Any other is a
//! [`call`], which the coroutine yields in its await. Its [`thread`] gives the command to the simulation, and resumes the
//! coroutine with the [`outcome`]. All of this happens in the thread that called [`simulation`]: a run has no thread of its own.
//!
//! Any thread may use and drop Python objects, so they hold plain data and a [`handle`]. State of the run's thread, above all the
//! simulated world, is on that thread's stack, and found through [`running`]. Nothing is borrowed while Python runs: a program
//! may make a run of its own.

mod arguments;
mod call;
mod calls;
mod channels;
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

pub use call::Call;
pub use calls::Calls;
pub use channels::ChannelCalls;
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
