//! Virtual time: a deterministic discrete-event kernel with Rust futures as processes.
//!
//! ```
//! use nicety_kernel::{Config, Server, World};
//! use nicety_types::{Duration, Time};
//!
//! let mut world: World<()> = World::new(Config { seed: 1, ..Config::default() });
//! let node = world.add_node();
//! let sim = world.sim(node);
//! let wash = Server::new(&sim);
//! for car in 0..3 {
//!     let (sim, wash) = (sim.clone(), wash.clone());
//!     sim.clone().spawn_program(format!("car {car}"), async move {
//!         sim.delay(Duration::from_ns(2 * car)).await; // drive there
//!         wash.serve(Duration::from_ns(5)).await; // wait in line, be washed
//!     });
//! }
//! assert_eq!(world.run()?.end, Time::from_ps(15_000));
//! # Ok::<(), nicety_kernel::RunError>(())
//! ```
//!
//! # The layers, from the top
//! - [`World`]: all nodes of a run, spread over shards. A model creates the world, lays [wires](World::wire) between
//!   nodes and starts the run. A run ends with a [`Summary`] or a [`RunError`]. The error of a deadlock lists the
//!   waiting programs and the descriptions of their waits.
//! - [`Sim`]: the handle of one node: its clock, [`Delay`]s, tasks, named random streams ([`Rng`]).
//! - Primitives, for the tasks of one node: [`Server`] and [`Pool`], [`Credits`], [`Channel`], [`Signal`]. All are fair
//!   (first come, first served) and cancellation-safe: a dropped future releases everything it held.
//! - Combinators: [`join`], [`race`] and [`timeout`] combine futures. [`describe`] describes the wait of a program.
//! - Private lower layers: shards (tasks, wakes), the event queue, the memory of tasks.
//!
//! # Invariants
//! - **Order.** Events are ordered by time, node, class (arrivals from wires before the node's own), source and
//!   sequence number at the source. No counter is shared by all nodes. So the same model gives the same run to the last
//!   bit, in any number of shards.
//! - **Nodes share nothing.** Tasks of different nodes interact through wires only, after at least the wire's latency.
//!   A task that uses the primitive of another node panics.
//! - **No allocation in steady state.** Tasks, events, messages on wires and places in line reuse the memory of their
//!   predecessors.
//! - **Wakers do nothing.** The kernel knows which task is polled, and primitives remember it. A foreign future works
//!   if it only forwards polls. A foreign future that waits for a call of its waker waits for ever.
//!
//! The kernel is not a real-time executor: it never waits for the outside world. If shards run in threads, each thread
//! builds its own world ([`World::part`]). The threads share only the [`Interrupt`] in [`Config`], and the messages
//! that they exchange between windows ([`Threads`]).

mod channel;
mod combine;
mod describe;
mod error;
mod interrupt;
mod memory;
mod messages;
mod parts;
mod prefetch;
mod queue;
mod receiver;
mod rng;
mod semaphore;
mod server;
mod shard;
mod signal;
mod sim;
mod sorted_queue;
mod tasks;
mod units;
mod waiters;
mod wire;
mod world;

pub use channel::{Channel, Receiving, SendError, Sending, TrySendError};
pub use combine::{Either, Elapsed, Join, Race, Timeout, join, join_all, race, timeout};
pub use describe::{Describe, describe};
pub use error::{RunError, Waiting};
pub use interrupt::Interrupt;
pub use parts::{Parts, Threads};
pub use prefetch::{Needed, prefetch};
pub use queue::QueueKind;
pub use receiver::{Arrived, Handler, Preparation};
pub use rng::Rng;
pub use semaphore::Serve;
pub use server::{Acquire, Credits, Guard, Permit, Pool, Server};
pub use signal::{GoFirst, Signal, Wait, WaitUntil};
pub use sim::{Delay, Pass, Repeat, Sim, YieldNow};
pub use sorted_queue::SortedQueue;
pub use wire::{Envelope, Next, Recv, Units, WireRx, WireTx};
pub use world::{Config, Summary, World};
