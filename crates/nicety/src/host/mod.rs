//! A host as its programs see it: memory ([`Buffer`]), CPUs, `send`, in `receive.rs` `recv`, and in `portals.rs` the Portals calls.

mod buffer;
mod offload;
mod portals;
mod receive;
mod work;

pub use buffer::Buffer;
pub use receive::{PendingRecv, Received};

use crate::Error;
use nicety_fabric::Barrier;
use nicety_host::Cpus;
use nicety_kernel::{Rng, Sim, describe};
use nicety_nic::spin::Card;
use nicety_portals::{EqHandle, Event, EventKind, Md, MdOptions, PutRequest};
use nicety_types::{Duration, NodeId, Path, Recorder, Resource, Time};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The portal table entry that `send` and `recv` use.
pub(crate) const MESSAGES: u32 = 0;

/// A host: its memory, its CPUs, its card. Cheap to clone.
#[derive(Clone)]
pub struct Host(Rc<Inner>);

struct Inner {
    sim: Sim,
    ranks: u32,
    card: Rc<Card>,
    cpus: Cpus,
    barrier: Barrier,
    /// Where the time of this host's program went since it was last asked to begin anew.
    path: RefCell<Path>,
    /// Events of `send` and `recv`.
    messages: EqHandle,
    /// Names of sends and receives, to tell their events apart.
    requests: Cell<u64>,
    recorder: Recorder,
}

impl Host {
    pub(crate) fn new(
        sim: Sim,
        ranks: u32,
        card: Rc<Card>,
        cpus: Cpus,
        barrier: Barrier,
        recorder: Recorder,
    ) -> Result<Host, Error> {
        let depth = card.spec().limits.event_queue_depth;
        let messages = card.eq_alloc(depth)?;
        card.pt_alloc(Some(MESSAGES), Some(messages))?;
        let path = RefCell::new(Path::from(sim.now()));
        let requests = Cell::new(0);
        Ok(Host(Rc::new(Inner { sim, ranks, card, cpus, barrier, path, messages, requests, recorder })))
    }

    /// This host's rank.
    pub fn rank(&self) -> u32 {
        self.0.sim.node().0
    }

    /// On behalf of which user its operations are (`PtlGetUid`).
    pub fn uid(&self) -> u32 {
        self.0.card.uid()
    }

    /// How many hosts there are.
    pub fn ranks(&self) -> u32 {
        self.0.ranks
    }

    /// The current instant.
    pub fn now(&self) -> Time {
        self.0.sim.now()
    }

    /// A call of the program's that began at `start` is over.
    fn called(&self, what: &'static str, start: Time) {
        self.0.recorder.slice(Resource::Program, start, self.now(), None, what);
    }

    /// Allocates `len` zero bytes of host memory; set-up, takes no virtual time.
    ///
    /// # Errors
    /// When the host has no more memory.
    pub fn alloc(&self, len: u64) -> Result<Buffer, Error> {
        Ok(Buffer { allocation: self.0.card.memory().allocate(len)?, start: 0, len })
    }

    /// The random stream of this name on this host: the same seed gives the same numbers.
    pub fn rng(&self, name: &str) -> Rng {
        self.0.sim.rng(name)
    }

    /// A call of the program's that takes virtual time, on the program's path.
    async fn timed<T>(&self, what: &'static str, call: impl AsyncFnOnce(&mut Path) -> T) -> T {
        let (start, mut path) = (self.now(), self.path());
        let result = call(&mut path).await;
        self.0.path.replace(path);
        self.called(what, start);
        result
    }

    /// Computes for `duration` on one of the host's CPUs.
    pub async fn compute(&self, duration: Duration) {
        self.timed("compute", async |path| self.0.cpus.compute(duration, path).await).await;
    }

    /// Waits until every program of the cluster has come here, over the job launcher's own network.
    pub async fn barrier(&self) {
        let (rank, start) = (self.rank(), self.now());
        describe(
            move || format!("the other ranks to come to the barrier (rank {rank} is there)"),
            self.0.barrier.wait(),
        )
        .await;
        // The launcher's time belongs to nobody's message.
        self.restart_path();
        self.called("barrier", start);
    }

    /// Begins to account for the program's time anew, at this instant.
    pub fn restart_path(&self) {
        self.0.path.replace(Path::from(self.now()));
    }

    /// Where the program's time went since it began to be accounted for: its critical path, through other nodes where it
    /// waited for them.
    pub fn path(&self) -> Path {
        *self.0.path.borrow()
    }

    fn next_request(&self) -> u64 {
        let request = self.0.requests.get();
        self.0.requests.set(request + 1);
        request
    }

    /// Sends a buffer to another rank's `recv` of the same tag. Returns when the buffer may be used again.
    ///
    /// On a Portals card: a put, and the wait for its SEND event. The receive has to be posted when the message comes:
    /// [`Host::post_recv`].
    ///
    /// # Errors
    /// When there is no such rank.
    pub async fn send(&self, buffer: &Buffer, to: u32, tag: u32) -> Result<(), Error> {
        let start = self.now();
        let user_ptr = self.next_request();
        let md = self.md_bind(Md {
            start: buffer.address(),
            length: buffer.len(),
            options: MdOptions::default(),
            eq: Some(self.0.messages),
            ct: None,
        })?;
        let request =
            PutRequest { user_ptr, ..PutRequest::new(md, buffer.len(), NodeId(to), MESSAGES, tag.into()) };
        self.put(&request).await?;
        let sent = |event: &Event| event.kind == EventKind::Send && event.user_ptr == user_ptr;
        let what = move || format!("its send to rank {to}, tag {tag}, to leave");
        self.eq_wait(self.0.messages, sent, what).await?;
        self.called("send", start);
        Ok(self.0.card.md_release(md)?)
    }

    /// This host's card.
    pub(crate) fn card(&self) -> &Rc<Card> {
        &self.0.card
    }

    /// Most payload that a packet of this host's card carries, in bytes.
    pub fn packet_payload(&self) -> u64 {
        self.0.card.spec().packet_payload
    }
}
