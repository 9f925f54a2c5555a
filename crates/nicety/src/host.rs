//! A host as its programs see it.

use crate::Error;
use crate::error::fault_lines;
use nicety_fabric::Barrier;
use nicety_host::{Allocation, Cpus, HostBytes};
use nicety_kernel::{Rng, Sim, describe};
use nicety_nic::spin::{Appending, CallError, Card, HandlerNames, Handlers};
use nicety_portals::{
    CtEvent, CtHandle, EqHandle, Event, EventKind, List, Md, MdHandle, MdOptions, Me, MeHandle, MeOptions,
    PutRequest, Source,
};
use nicety_types::{Duration, NodeId, Path, Recorder, Resource, Time};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// The portal table entry that `send` and `recv` use.
const MESSAGES: u32 = 0;

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

/// A buffer in host memory, or a part of one. Cheap to clone; a clone is the same memory.
#[derive(Clone, Debug)]
pub struct Buffer {
    allocation: Allocation,
    start: u64,
    len: u64,
}

/// What a receive brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The rank that sent it.
    pub source: u32,
    /// Its tag.
    pub tag: u32,
    /// Its length in bytes.
    pub length: u64,
}

impl Buffer {
    /// Address in host memory.
    pub fn address(&self) -> u64 {
        self.allocation.address() + self.start
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A part of the buffer: the same memory.
    ///
    /// # Errors
    /// When it reaches over the end.
    pub fn slice(&self, offset: u64, len: u64) -> Result<Buffer, Error> {
        match offset.checked_add(len).is_some_and(|end| end <= self.len) {
            true => Ok(Buffer { allocation: self.allocation.clone(), start: self.start + offset, len }),
            false => Err(Error::Program(format!(
                "{len} bytes from offset {offset} on reach over the end of a buffer of {} bytes",
                self.len
            ))),
        }
    }

    /// The memory of the whole allocation, for those who share it; none where it is phantom.
    pub fn shared(&self) -> Option<&Arc<HostBytes>> {
        self.allocation.bytes()
    }

    /// A copy of `len` bytes from `offset` on; takes no virtual time.
    ///
    /// # Panics
    /// When the range is outside the buffer.
    pub fn read(&self, offset: u64, len: u64) -> Vec<u8> {
        let mut copy = vec![0; len as usize];
        self.bytes(offset, len).read((self.start + offset) as usize, &mut copy);
        copy
    }

    /// Writes bytes from `offset` on; takes no virtual time.
    ///
    /// # Panics
    /// When the range is outside the buffer.
    pub fn write(&self, offset: u64, bytes: &[u8]) {
        self.bytes(offset, bytes.len() as u64).write((self.start + offset) as usize, bytes);
    }

    fn bytes(&self, offset: u64, len: u64) -> &HostBytes {
        assert!(offset + len <= self.len, "{len} bytes at {offset} of a buffer of {} bytes", self.len);
        self.allocation.bytes().expect("only a phantom buffer has no bytes, and nobody reads that")
    }
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

    /// Computes for `duration` on one of the host's CPUs.
    pub async fn compute(&self, duration: Duration) {
        let (start, mut path) = (self.now(), self.path());
        self.0.cpus.compute(duration, &mut path).await;
        self.0.path.replace(path);
        self.called("compute", start);
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
    /// On a Portals card: a put, and the wait for its SEND event.
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

    /// Receives one message into a buffer: from one rank or any, with one tag or any.
    ///
    /// On a Portals card: a use-once match entry, and the wait for its PUT event. A message that comes before its `recv`
    /// is dropped and counted; programs that may run apart that far meet at a [`Host::barrier`] first.
    ///
    /// # Errors
    /// When there is no such rank, the card has no more match entries, or the message is longer than the buffer.
    pub async fn recv(
        &self,
        buffer: &Buffer,
        source: Option<u32>,
        tag: Option<u32>,
    ) -> Result<Received, Error> {
        let start = self.now();
        if let Some(rank) = source.filter(|&rank| rank >= self.0.ranks) {
            return Err(CallError::Rank { rank, ranks: self.0.ranks }.into());
        }
        let user_ptr = self.next_request();
        let me = Me {
            start: buffer.address(),
            length: buffer.len(),
            match_bits: tag.unwrap_or(0).into(),
            ignore_bits: if tag.is_some() { 0 } else { !0 },
            source: source.map_or(Source::Any, |rank| Source::Rank(NodeId(rank))),
            options: MeOptions::OP_PUT
                | MeOptions::USE_ONCE
                | MeOptions::EVENT_LINK_DISABLE
                | MeOptions::EVENT_UNLINK_DISABLE,
            user_ptr,
            ..Me::default()
        };
        let appending = self.me_append(MESSAGES, me, List::Priority).await?;
        let wanted = |event: &Event| event.kind == EventKind::Put && event.user_ptr == user_ptr;
        let what = move || {
            let from = source.map_or("any rank".to_string(), |rank| format!("rank {rank}"));
            let tagged = tag.map_or("any tag".to_string(), |tag| format!("tag {tag}"));
            format!("a message from {from}, {tagged}")
        };
        let event = {
            let (waits, mut path) = (self.now(), self.path());
            let event = self
                .0
                .card
                .eq_wait_of(&self.0.cpus, &mut path, self.0.messages, &appending, wanted, what)
                .await;
            self.0.path.replace(path);
            self.called("wait for an event", waits);
            event?
        };
        self.called("recv", start);
        if event.rlength > event.mlength {
            return Err(Error::Program(format!(
                "a message of {} bytes from rank {} came into a recv of {} bytes: {} bytes were cut; give recv a \
                 buffer of {} bytes",
                event.rlength,
                event.initiator.0,
                event.mlength,
                event.rlength - event.mlength,
                event.rlength
            )));
        }
        Ok(Received { source: event.initiator.0, tag: event.match_bits as u32, length: event.mlength })
    }

    /// A counter, at zero; set-up, takes no virtual time.
    ///
    /// # Errors
    /// When the card has no more.
    pub fn ct_alloc(&self) -> Result<CtHandle, Error> {
        Ok(self.0.card.ct_alloc()?)
    }

    /// An event queue; set-up, takes no virtual time.
    ///
    /// # Errors
    /// When the card has no more, or none so deep.
    pub fn eq_alloc(&self, depth: u32) -> Result<EqHandle, Error> {
        Ok(self.0.card.eq_alloc(depth)?)
    }

    /// A memory descriptor; set-up, takes no virtual time.
    ///
    /// # Errors
    /// When the card has no more, or the memory is not this host's.
    pub fn md_bind(&self, md: Md) -> Result<MdHandle, Error> {
        Ok(self.0.card.md_bind(md)?)
    }

    /// A portal table entry, of this index or any free one; set-up, takes no virtual time. Entry 0 belongs to `send` and
    /// `recv`.
    ///
    /// # Errors
    /// When the index is taken or past the table.
    pub fn pt_alloc(&self, index: Option<u32>, eq: Option<EqHandle>) -> Result<u32, Error> {
        Ok(self.0.card.pt_alloc(index, eq)?)
    }

    /// Loads a compiled program with handlers, for this host's card; set-up, takes no virtual time.
    ///
    /// # Errors
    /// When it is no program for the card's cores, or does not fit.
    pub fn load_handlers(&self, elf: &[u8], names: &HandlerNames) -> Result<Handlers, Error> {
        let hpu = &self.0.card.spec().hpu;
        let handlers = Handlers::load(elf, names, hpu)?;
        handlers.check(hpu)?;
        Ok(handlers)
    }

    /// Puts handlers on the card, for the match entry whose `handlers` the result becomes; set-up, takes no virtual time.
    ///
    /// # Errors
    /// When program or state do not fit the card.
    pub fn attach(
        &self,
        handlers: &Handlers,
        state: &[u8],
        handler_memory: Option<&Buffer>,
    ) -> Result<u32, Error> {
        let attached = self.0.card.attach(handlers, state, handler_memory.map(|b| (b.address(), b.len())));
        attached.map_err(|error| Error::Input(error.to_string()))
    }

    /// Posts a put.
    ///
    /// # Errors
    /// When the request is not valid.
    pub async fn put(&self, request: &PutRequest) -> Result<(), Error> {
        let (start, mut path) = (self.now(), self.path());
        let posted = self.0.card.put(&self.0.cpus, &mut path, request).await;
        self.0.path.replace(path);
        self.called("put", start);
        Ok(posted?)
    }

    /// Posts a put that the card starts when the counter has reached `threshold`.
    ///
    /// # Errors
    /// When the rank is not valid.
    pub async fn triggered_put(
        &self,
        request: PutRequest,
        ct: CtHandle,
        threshold: u64,
    ) -> Result<(), Error> {
        let (start, mut path) = (self.now(), self.path());
        let posted = self.0.card.triggered_put(&self.0.cpus, &mut path, request, ct, threshold).await;
        self.0.path.replace(path);
        self.called("triggered put", start);
        Ok(posted?)
    }

    /// Posts the append of a match entry.
    ///
    /// # Errors
    /// When the memory is not this host's.
    pub async fn me_append(&self, pt: u32, me: Me, list: List) -> Result<Appending, Error> {
        let (start, mut path) = (self.now(), self.path());
        let appending = self.0.card.me_append(&self.0.cpus, &mut path, pt, me, list).await;
        self.0.path.replace(path);
        self.called("append an entry", start);
        Ok(appending?)
    }

    /// Waits until the card has appended an entry.
    ///
    /// # Errors
    /// When the card refused it.
    pub async fn appended(&self, appending: Appending) -> Result<MeHandle, Error> {
        let (start, mut path) = (self.now(), self.path());
        let handle = self.0.card.appended(&self.0.cpus, &mut path, appending).await;
        self.0.path.replace(path);
        self.called("wait for an append", start);
        Ok(handle?)
    }

    /// A counter as the host sees it now.
    pub fn ct_get(&self, ct: CtHandle) -> CtEvent {
        self.0.card.ct_get(ct)
    }

    /// When the host could see a counter's last change; none where it has not changed.
    pub fn ct_changed(&self, ct: CtHandle) -> Option<Time> {
        self.0.card.ct_changed(ct)
    }

    /// Waits until a counter has reached `threshold`.
    ///
    /// # Errors
    /// When operations it counts have failed; [`Error::HandlerTrap`] where handlers of this card have.
    pub async fn ct_wait(&self, ct: CtHandle, threshold: u64) -> Result<CtEvent, Error> {
        let (start, mut path) = (self.now(), self.path());
        let value = self.0.card.ct_wait(&self.0.cpus, &mut path, ct, threshold).await;
        self.0.path.replace(path);
        self.called("wait for a counter", start);
        let faults = self.0.card.faults();
        match value {
            Err(CallError::Failures { failures }) if !faults.is_empty() => Err(Error::HandlerTrap(format!(
                "{}\nso that {failures} of the operations that rank {} waited for failed",
                fault_lines(&faults),
                self.rank()
            ))),
            value => Ok(value?),
        }
    }

    /// Waits for the first event in a queue that `wanted` accepts. `what` says what for, should it never come.
    ///
    /// # Errors
    /// When the queue overflowed.
    pub async fn eq_wait(
        &self,
        eq: EqHandle,
        wanted: impl Fn(&Event) -> bool,
        what: impl Fn() -> String,
    ) -> Result<Event, Error> {
        let (start, mut path) = (self.now(), self.path());
        let event = self.0.card.eq_wait(&self.0.cpus, &mut path, eq, wanted, what).await;
        self.0.path.replace(path);
        self.called("wait for an event", start);
        Ok(event?)
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
