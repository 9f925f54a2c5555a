//! The interface of a host for its programs: memory ([`Buffer`]), CPUs, the barrier, and messages between ranks (`send.rs`,
//! `receive.rs`). A program may have several threads (`thread.rs`), or many small tasks (`tasks.rs`).
//!
//! Features of a single card design have separate handles:
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
pub use frames::{CardForXdp, FrameHandlers};
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
use nicety_nic_ethernet::XskReader;
use nicety_types::{Duration, Path, Recorder, Time};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A host, as used by one thread of its program: its memory, CPUs and card. Cheap to clone; a clone belongs to the same thread.
#[derive(Clone)]
pub struct Host {
    inner: Rc<Inner>,
    /// The number of the thread.
    thread: u32,
    /// The critical path of the thread since its last restart.
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
    /// Signals that all programs of the host have ended, if a tester waits for this.
    over: RefCell<Option<Barrier>>,
    /// Ensures that only one thread of this host is in a barrier at a time.
    at_barrier: Pool,
    /// The number of threads that have been started.
    threads: Cell<u32>,
    /// The number of programs, and of their threads, that have not ended.
    running: Cell<u32>,
    /// Buffers of AF_XDP sockets that threads have, by the number of the thread.
    xsk_readers: RefCell<BTreeMap<u32, Rc<XskReader>>>,
    /// Failed programs, and failed threads that no thread joins. Each item has the rank, the error, and the name if it
    /// is not that of the rank.
    failed: Failed,
    recorder: Recorder,
    /// Whether paths divide their time into stages.
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
    /// Signals that all programs of the host have ended, if a tester waits for this.
    pub(crate) over: Option<Barrier>,
    /// Collects failed programs, and failed threads that no thread joins.
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
            xsk_readers: RefCell::default(),
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

    /// The number of this thread on its host. The first thread has number 0.
    pub fn thread(&self) -> u32 {
        self.thread
    }

    /// The number of hosts.
    pub fn ranks(&self) -> u32 {
        self.inner.ranks
    }

    /// The current virtual time.
    pub fn now(&self) -> Time {
        self.inner.sim.now()
    }

    /// Records that call `what`, which began at `start`, has ended.
    fn called(&self, what: &'static str, start: Time) {
        self.caller().called(what, start);
    }

    /// Allocates `len` zero bytes of host memory. This is set-up: it takes no virtual time.
    ///
    /// # Errors
    /// When the host has no more memory.
    pub fn alloc(&self, len: u64) -> Result<Buffer, Error> {
        let buffer = self.alloc_unowned(len)?;
        self.inner.card.adopt(&buffer.allocation);
        Ok(buffer)
    }

    /// Allocates a phantom buffer: a range of host memory without contents, for large timing runs. The program cannot
    /// read such a buffer, and messages from it have no contents. If the card [needs the
    /// bytes](nicety_nic_core::Design::needs_bytes) of messages, this call is the same as [`Host::alloc`].
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

    /// Allocates memory that belongs to no process of the host yet.
    fn alloc_unowned(&self, len: u64) -> Result<Buffer, Error> {
        Ok(Buffer { allocation: self.inner.memory.allocate(len)?, start: 0, len })
    }

    /// Returns this host's random stream with this name. The same seed of the run gives the same numbers.
    pub fn rng(&self, name: &str) -> Rng {
        self.inner.sim.rng(name)
    }

    /// Returns this thread in the form that the card's calls take.
    fn caller(&self) -> Caller<'_> {
        let Inner { sim, cpus, recorder, .. } = &*self.inner;
        Caller { sim, cpus, recorder, thread: self.thread, path: &self.path }
    }

    /// Makes a call that takes virtual time, and adds that time to the thread's path.
    async fn timed<T>(&self, what: &'static str, call: impl AsyncFnOnce(&mut Path) -> T) -> T {
        self.caller().timed(what, call).await
    }

    /// Computes on one of the host's CPUs for `duration` of virtual time.
    pub async fn compute(&self, duration: Duration) {
        self.timed("compute", async |path| self.inner.cpus.compute(duration, path).await).await;
    }

    /// Returns the time until which a program may compute without interference by other events, in a cluster with one
    /// thread. It is the time of the next event. If an event is due now, no core of the host is free, or the host has
    /// noise, it is the current time.
    pub fn quiet_until(&self) -> Time {
        match self.inner.cpus.are_ready() {
            true => self.inner.sim.next_event().unwrap_or(Time::MAX),
            false => self.now(),
        }
    }

    /// Whether `cores` cores are free, and the host has no noise that could take a core away.
    pub fn has_free_cores(&self, cores: usize) -> bool {
        self.inner.cpus.have_free(cores)
    }

    /// Whether the host has background noise on its CPUs.
    pub fn has_noise(&self) -> bool {
        self.inner.cpus.has_noise()
    }

    /// The number of pending events in a cluster with one thread.
    pub fn pending_events(&self) -> usize {
        self.inner.sim.pending_events()
    }

    /// Waits for `duration` without adding this time to the path of a message: the thread's path restarts.
    pub async fn pause(&self, duration: Duration) {
        self.inner.sim.delay(duration).await;
        self.restart_path();
    }

    /// Lets all other tasks with work at this instant run first. This takes no virtual time.
    pub async fn yield_now(&self) {
        self.inner.sim.yield_now().await;
    }

    /// Waits until every program of the cluster has entered this barrier. The barrier uses the job launcher's own
    /// network. If several threads of a host enter barriers, they take part in separate barriers, one after another.
    pub async fn barrier(&self) {
        let (rank, start) = (self.rank(), self.now());
        let waiting = move || format!("the other ranks to reach the barrier (rank {rank} is there)");
        let meet = async {
            let _turn = self.inner.at_barrier.acquire().await;
            self.inner.barrier.wait().await;
        };
        describe(waiting, meet).await;
        // The time of the barrier in the launcher's network belongs to no message, so the path restarts.
        self.restart_path();
        self.called("barrier", start);
    }

    /// Returns a new signal for programs of this host.
    pub fn signal(&self) -> Signal {
        Signal::new(&self.inner.sim)
    }

    /// Makes the simulation check the run's interrupt directly after this event.
    pub fn check_interrupt(&self) {
        self.inner.sim.check_interrupt();
    }

    /// Restarts the thread's path at this instant.
    pub fn restart_path(&self) {
        self.path.replace(self.path_from_now());
    }

    /// Returns a path that starts now.
    fn path_from_now(&self) -> Path {
        path_from(self.now(), self.inner.breakdown)
    }

    /// The critical path of this thread from its last restart to now. If the thread waited for other nodes, the path
    /// goes through these nodes.
    pub fn path(&self) -> Path {
        self.path.borrow().clone()
    }
}

/// Returns a path that starts at `now`. It records stages if `breakdown` is set.
fn path_from(now: Time, breakdown: bool) -> Path {
    if breakdown { Path::from(now) } else { Path::clock(now) }
}
