//! A host as its programs see it: memory ([`Buffer`]), CPUs, the barrier, and messages between ranks in `send.rs` and
//! `receive.rs`. A program may have several threads (`thread.rs`), or many small tasks (`tasks.rs`).
//!
//! Features of one card design have their own handle:
//!
//! - [`Host::portals`] (`portals.rs`, `offload.rs`)
//! - [`Host::channels`] (`processes.rs`, `device.rs`)
//! - [`Host::vni`] (`vni.rs`)
//! - [`Host::rdma`] (`rdma.rs`)
//! - [`Host::socket`] (`socket.rs`)
//! - [`Host::frames`] (`frames.rs`)
//! - [`Host::xdp`] (`xdp.rs`)
//! - [`Host::gpu`] (`gpu.rs`), the memory of a graphics processor

mod buffer;
mod device;
mod frames;
mod gpu;
mod offload;
mod portals;
mod processes;
mod rdma;
mod receive;
mod send;
mod socket;
mod tasks;
mod thread;
mod vni;
mod work;
mod xdp;

pub use buffer::Buffer;
pub use device::{Alternative, Channel, Device, Job, Pending as PendingMessage};
pub use frames::FrameHandlers;
pub use gpu::Gpu;
pub use portals::Portals;
pub use processes::Channels;
pub use rdma::Rdma;
pub use receive::{PendingRecv, Received};
pub use socket::Sockets;
pub use tasks::{Later, Tasks};
pub(crate) use thread::Failed;
pub use thread::Thread;
pub use vni::{Vni, VniProcess};
pub use xdp::{LoadedXdp, Xdp};

use crate::Error;
use nicety_fabric::Barrier;
use nicety_host::{Cpus, Memory};
use nicety_kernel::{Pool, Rng, Signal, Sim, describe};
use nicety_nic_core::{Caller, Card};
use nicety_types::{Duration, Path, Recorder, Time};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A host, as one thread of its program sees it: its memory, its CPUs, its card. Cheap to clone; a clone belongs to the same
/// thread.
#[derive(Clone)]
pub struct Host {
    inner: Rc<Inner>,
    /// The number of the thread.
    thread: u32,
    /// The path of the thread since its last restart.
    path: Rc<RefCell<Path>>,
}

struct Inner {
    sim: Sim,
    ranks: u32,
    card: Rc<dyn Card>,
    memory: Rc<Memory>,
    gpu: Option<nicety_host::Gpu>,
    cpus: Rc<Cpus>,
    barrier: Barrier,
    /// Signals the end of the host's programs, if anything waits for it.
    over: RefCell<Option<Barrier>>,
    /// Serializes the barriers of threads.
    at_barrier: Pool,
    /// Threads that have been started.
    threads: Cell<u32>,
    /// Programs and threads of them that have not ended.
    running: Cell<u32>,
    /// Failed programs and threads without a join: rank, name if it differs, and reason.
    failed: Failed,
    recorder: Recorder,
    /// Whether paths account for their stages.
    breakdown: bool,
}

/// The parts of a host.
pub(crate) struct HostParts {
    pub(crate) sim: Sim,
    pub(crate) ranks: u32,
    pub(crate) card: Rc<dyn Card>,
    pub(crate) memory: Rc<Memory>,
    pub(crate) gpu: Option<nicety_host::Gpu>,
    pub(crate) cpus: Rc<Cpus>,
    pub(crate) barrier: Barrier,
    /// Signals the end of the host's programs, if anything waits for it.
    pub(crate) over: Option<Barrier>,
    /// Collects the failures of threads without a join.
    pub(crate) failed: Failed,
    pub(crate) recorder: Recorder,
    pub(crate) breakdown: bool,
}

impl Host {
    pub(crate) fn new(parts: HostParts) -> Host {
        let HostParts { sim, ranks, card, memory, gpu, cpus, barrier, over, failed, recorder, breakdown } =
            parts;
        let path = Rc::new(RefCell::new(path_from(sim.now(), breakdown)));
        let inner = Inner {
            at_barrier: Pool::new(&sim, 1),
            threads: Cell::default(),
            running: Cell::default(),
            sim,
            ranks,
            card,
            memory,
            gpu,
            cpus,
            barrier,
            over: RefCell::new(over),
            failed,
            recorder,
            breakdown,
        };
        Host { inner: Rc::new(inner), thread: 0, path }
    }

    /// This host's rank.
    pub fn rank(&self) -> u32 {
        self.inner.sim.node().0
    }

    /// The number of this thread on its host; 0 for the first.
    pub fn thread(&self) -> u32 {
        self.thread
    }

    /// The number of hosts.
    pub fn ranks(&self) -> u32 {
        self.inner.ranks
    }

    /// The current instant.
    pub fn now(&self) -> Time {
        self.inner.sim.now()
    }

    /// Records the end of a call that began at `start`.
    fn called(&self, what: &'static str, start: Time) {
        self.caller().called(what, start);
    }

    /// Allocates `len` zero bytes of host memory; set-up, takes no virtual time.
    ///
    /// # Errors
    /// When the host has no more memory.
    pub fn alloc(&self, len: u64) -> Result<Buffer, Error> {
        let buffer = self.alloc_unowned(len)?;
        self.inner.card.adopt(&buffer.allocation);
        Ok(buffer)
    }

    /// Allocates a length of host memory without bytes, for large timing runs; otherwise as [`Host::alloc`]. Messages from it
    /// have no bytes either, and the program cannot read it. It has bytes on a card with messages that [need
    /// bytes](nicety_nic_core::Design::needs_bytes).
    ///
    /// # Errors
    /// When the host has no more memory.
    pub fn alloc_phantom(&self, len: u64) -> Result<Buffer, Error> {
        if self.inner.card.design().needs_bytes {
            return self.alloc(len);
        }
        let buffer = Buffer { allocation: self.inner.memory.allocate_phantom(len)?, start: 0, len };
        self.inner.card.adopt(&buffer.allocation);
        Ok(buffer)
    }

    /// Memory that belongs to none of the host's processes yet.
    fn alloc_unowned(&self, len: u64) -> Result<Buffer, Error> {
        Ok(Buffer { allocation: self.inner.memory.allocate(len)?, start: 0, len })
    }

    /// Returns the random stream of this name on this host. The same seed gives the same numbers.
    pub fn rng(&self, name: &str) -> Rng {
        self.inner.sim.rng(name)
    }

    /// The thread, as its card sees it.
    fn caller(&self) -> Caller<'_> {
        let Inner { sim, cpus, recorder, .. } = &*self.inner;
        Caller { sim, cpus, recorder, thread: self.thread, path: &self.path }
    }

    /// Makes a call that takes virtual time, on the program's path.
    async fn timed<T>(&self, what: &'static str, call: impl AsyncFnOnce(&mut Path) -> T) -> T {
        self.caller().timed(what, call).await
    }

    /// Computes for `duration` on one of the host's CPUs.
    pub async fn compute(&self, duration: Duration) {
        self.timed("compute", async |path| self.inner.cpus.compute(duration, path).await).await;
    }

    /// The time of the next event in a cluster with one thread. A program may compute undisturbed until then. Now, if an event is
    /// due, no core of the host is free, or there is noise.
    pub fn quiet_until(&self) -> Time {
        match self.inner.cpus.are_ready() {
            true => self.inner.sim.next_event().unwrap_or(Time::MAX),
            false => self.now(),
        }
    }

    /// Whether `cores` cores are free, and work keeps its core because there is no noise.
    pub fn has_free_cores(&self, cores: usize) -> bool {
        self.inner.cpus.have_free(cores)
    }

    /// Whether background noise disturbs its cores.
    pub fn has_noise(&self) -> bool {
        self.inner.cpus.has_noise()
    }

    /// Pending events in a cluster with one thread.
    pub fn pending_events(&self) -> usize {
        self.inner.sim.pending_events()
    }

    /// Lets time pass without charging it to any message.
    pub async fn pause(&self, duration: Duration) {
        self.inner.sim.delay(duration).await;
        self.restart_path();
    }

    /// Lets others with work at this instant go first; takes no time.
    pub async fn yield_now(&self) {
        self.inner.sim.yield_now().await;
    }

    /// Waits until every program of the cluster has called it, over the job launcher's own network. Several threads of one host
    /// each take part in a barrier of their own, one after another.
    pub async fn barrier(&self) {
        let (rank, start) = (self.rank(), self.now());
        let waiting = move || format!("the other ranks to come to the barrier (rank {rank} is there)");
        let meet = async {
            let _turn = self.inner.at_barrier.acquire().await;
            self.inner.barrier.wait().await;
        };
        describe(waiting, meet).await;
        // The launcher's time belongs to no message.
        self.restart_path();
        self.called("barrier", start);
    }

    /// Returns a signal of this host's programs.
    pub fn signal(&self) -> Signal {
        Signal::new(&self.inner.sim)
    }

    /// Requests a check of the run's interrupt now.
    pub fn check_interrupt(&self) {
        self.inner.sim.check_interrupt();
    }

    /// Restarts the thread's path at this instant.
    pub fn restart_path(&self) {
        self.path.replace(self.path_from_now());
    }

    /// Returns a path that begins now.
    fn path_from_now(&self) -> Path {
        path_from(self.now(), self.inner.breakdown)
    }

    /// The thread's critical path since its last restart, through other nodes where it waited for them.
    pub fn path(&self) -> Path {
        self.path.borrow().clone()
    }
}

/// Returns a path from this instant on, by stage if `breakdown`.
fn path_from(now: Time, breakdown: bool) -> Path {
    if breakdown { Path::from(now) } else { Path::clock(now) }
}
