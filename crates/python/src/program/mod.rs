//! Programs of hosts that are Python coroutines.
//!
//! A program calls its host: [`messages`], [`portals`], [`handlers`], [`processes`], [`channels`] and [`interfaces`] read
//! the arguments ([`arguments`]) and make a command of them, which is plain data of [`nicety::commands`]. What takes no
//! virtual time is answered at once ([`running`]). What does is a [`call`], which the coroutine yields when it awaits it;
//! its [`thread`] hands the command to the simulation, and steps the coroutine again when that has an [`outcome`]. All of
//! it happens in the thread that called [`simulation`]: a run has none of its own.
//!
//! Python objects may be used and dropped in any thread, so they hold plain data and a [`handle`]. What only the run's
//! thread may touch, the simulated world above all, is on that thread's stack, and found by way of [`running`]. Nothing is
//! borrowed while Python runs: a program may make a run of its own.

mod arguments;
mod call;
mod channels;
mod handle;
mod handlers;
mod interfaces;
mod memory;
mod messages;
mod outcome;
mod portals;
mod processes;
mod running;
mod simulation;
mod thread;

pub use call::Call;
pub use channels::ChannelCalls;
pub use handle::Calls;
pub use handlers::HandlerCalls;
pub use interfaces::InterfaceCalls;
pub use memory::HostMemory;
pub use messages::MessageCalls;
pub use portals::PortalsCalls;
pub use processes::ProcessCalls;
pub use simulation::Simulation;
