//! The Portals calls of a host's program. Set-up takes no virtual time. A post occupies a CPU for the LogP parameter o
//! (overhead), and then returns. A wait occupies a CPU for o when it notices the event.

use super::{Buffer, Host};
use crate::Error;
use crate::error::failure_lines;
use nicety_host::ProcessBytes;
use nicety_kernel::Signal;
use nicety_nic_processors::{HandlerNames, Handlers};
use nicety_nic_spin::{self as spin, Appending, CallError};
use nicety_portals::{
    AtomicRequest, CtEvent, CtHandle, EqHandle, Event, FetchRequest, GetRequest, Limits, List, Md, MdHandle,
    Me, MeHandle, PtOptions, PutRequest, Request, SearchOp, StatusRegister,
};
use nicety_types::{Duration, Time};
use std::rc::Rc;

/// The Portals interface of a host's card, for one thread of the host's program. Cheap to clone.
#[derive(Clone)]
pub struct Portals {
    pub(super) host: Host,
    pub(super) card: Rc<spin::Card>,
}

impl Host {
    /// Returns the Portals interface of this host's card, with handlers and applications.
    ///
    /// # Errors
    /// When the card is of another design. The error names a card with a Portals interface.
    pub fn portals(&self) -> Result<Portals, Error> {
        Ok(Portals { host: self.clone(), card: self.inner.card.of::<spin::Node>()?.card().clone() })
    }
}

/// Calls for set-up, which take no virtual time.
impl Portals {
    /// Allocates a counter, at zero (`PtlCTAlloc`).
    ///
    /// # Errors
    /// When the card has no free counter.
    pub fn ct_alloc(&self) -> Result<CtHandle, Error> {
        Ok(self.card.ct_alloc()?)
    }

    /// Frees a counter (`PtlCTFree`).
    ///
    /// # Errors
    /// When the counter is in use, or does not exist.
    pub fn ct_free(&self, ct: CtHandle) -> Result<(), Error> {
        Ok(self.card.ct_free(ct)?)
    }

    /// Allocates an event queue (`PtlEQAlloc`).
    ///
    /// # Errors
    /// When the card has no free event queue, or the depth is beyond the card's limit.
    pub fn eq_alloc(&self, depth: u32) -> Result<EqHandle, Error> {
        Ok(self.card.eq_alloc(depth)?)
    }

    /// Frees an event queue with its events (`PtlEQFree`).
    ///
    /// # Errors
    /// When the queue is in use, or does not exist.
    pub fn eq_free(&self, eq: EqHandle) -> Result<(), Error> {
        Ok(self.card.eq_free(eq)?)
    }

    /// Binds a memory descriptor (`PtlMDBind`).
    ///
    /// # Errors
    /// When the card has no free descriptor, or the memory does not belong to this host.
    pub fn md_bind(&self, md: Md) -> Result<MdHandle, Error> {
        Ok(self.card.md_bind(md)?)
    }

    /// Releases a memory descriptor (`PtlMDRelease`).
    ///
    /// # Errors
    /// When an operation on the descriptor is pending, or the descriptor does not exist.
    pub fn md_release(&self, md: MdHandle) -> Result<(), Error> {
        Ok(self.card.md_release(md)?)
    }

    /// Allocates a portal table entry without options; see [`Portals::pt_alloc_with`].
    ///
    /// # Errors
    /// Those of [`Portals::pt_alloc_with`].
    pub fn pt_alloc(&self, index: Option<u32>, eq: Option<EqHandle>) -> Result<u32, Error> {
        self.pt_alloc_with(index, eq, PtOptions::empty())
    }

    /// Allocates the portal table entry with this index, or any free entry (`PtlPTAlloc`). Entry 0 belongs to `send` and `recv`.
    ///
    /// # Errors
    /// When the index is in use or beyond the table. Also when an entry with flow control has no event queue for at
    /// least four events.
    pub fn pt_alloc_with(
        &self,
        index: Option<u32>,
        eq: Option<EqHandle>,
        options: PtOptions,
    ) -> Result<u32, Error> {
        Ok(self.card.pt_alloc_with(index, eq, options)?)
    }

    /// Appends a match entry for a library. This is set-up: it takes no virtual time. The entry does not count against
    /// the card's limit of entries. The card does not compare it with the unexpected headers, and posts no `LINK`
    /// event.
    ///
    /// # Errors
    /// When the portal table index is not in use, the memory does not belong to this host, or the entry's handlers are not
    /// attached.
    pub fn me_set_up(&self, pt: u32, me: Me, list: List) -> Result<MeHandle, Error> {
        Ok(self.card.me_set_up(pt, me, list)?)
    }

    /// Frees a portal table entry (`PtlPTFree`).
    ///
    /// # Errors
    /// When the table entry does not exist, or has match entries.
    pub fn pt_free(&self, pt: u32) -> Result<(), Error> {
        Ok(self.card.pt_free(pt)?)
    }

    /// Loads a compiled program with handlers, for this host's card.
    ///
    /// # Errors
    /// When the program is not for the card's cores, or does not fit.
    pub fn load_handlers(&self, elf: &[u8], names: &HandlerNames) -> Result<Handlers, Error> {
        let card = &self.card;
        let hpu = &card.spec().hpu;
        let handlers = Handlers::load(elf, names, hpu)?;
        handlers.check(hpu)?;
        Ok(handlers)
    }

    /// Attaches handlers. Returns their number, which goes into the `handlers` field of match entries.
    ///
    /// # Errors
    /// When the program or the state does not fit the card.
    pub fn attach(
        &self,
        handlers: &Handlers,
        state: &[u8],
        handler_memory: Option<&Buffer>,
    ) -> Result<u32, Error> {
        let attached = self.card.attach(handlers, state, handler_memory.map(|b| (b.address(), b.len())));
        attached.map_err(|error| Error::Input(error.to_string()))
    }
}

/// Calls about the network interface.
impl Portals {
    /// The user id of the host's operations (`PtlGetUid`).
    pub fn uid(&self) -> u32 {
        self.card.uid()
    }

    /// Maximum payload of a packet of the card, in bytes.
    pub fn packet_payload(&self) -> u64 {
        self.card.spec().packet_payload
    }

    /// The address of the card's specification. It identifies the specification while the cards exist.
    pub(crate) fn spec_address(&self) -> usize {
        std::ptr::from_ref(self.card.spec()).addr()
    }

    /// Returns the card itself, for measurements.
    pub const fn card(&self) -> &Rc<spin::Card> {
        &self.card
    }

    /// Makes the memory of a process accessible as host memory, from address [`PROCESS_ADDRESSES`](crate::PROCESS_ADDRESSES) on.
    /// Returns whether the host had no such memory before.
    pub fn add_process(&self, bytes: impl ProcessBytes + 'static) -> bool {
        self.card.memory().add_process(bytes)
    }

    /// Returns a signal. The card notifies it when the host can see a change of a counter or an event queue.
    pub fn changed(&self) -> Signal {
        self.card.changed()
    }

    /// Returns the limits of the interface (`ptl_ni_limits_t`, of `PtlNIInit`).
    pub fn ni_limits(&self) -> Limits {
        self.card.spec().limits
    }

    /// Returns the current value of a status register (`PtlNIStatus`).
    pub fn ni_status(&self, register: StatusRegister) -> u64 {
        self.card.statistics().register(register)
    }

    /// Waits until the effects of the card's earlier atomic operations are visible in host memory (`PtlAtomicSync`).
    /// The host posts a command. The card's reply crosses the bus after the card's earlier writes.
    ///
    /// # Errors
    /// When the card has no Portals interface.
    pub async fn atomic_sync(&self) -> Result<(), Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        Ok(self.host.timed("atomic sync", async |path| card.atomic_sync(cpus, path).await).await?)
    }
}

/// Calls for operations.
impl Portals {
    /// Posts a put (`PtlPut`).
    ///
    /// # Errors
    /// When the request is invalid.
    pub async fn put(&self, request: &PutRequest) -> Result<(), Error> {
        self.post(&Request::Put(*request)).await
    }

    /// Posts a get (`PtlGet`).
    ///
    /// # Errors
    /// When the request is invalid.
    pub async fn get(&self, request: &GetRequest) -> Result<(), Error> {
        self.post(&Request::Get(*request)).await
    }

    /// Posts an atomic (`PtlAtomic`).
    ///
    /// # Errors
    /// When the request is invalid.
    pub async fn atomic(&self, request: &AtomicRequest) -> Result<(), Error> {
        self.post(&Request::Atomic(*request)).await
    }

    /// Posts a fetch-and-atomic (`PtlFetchAtomic`).
    ///
    /// # Errors
    /// When the request is invalid.
    pub async fn fetch_atomic(&self, request: &FetchRequest) -> Result<(), Error> {
        self.post(&Request::FetchAtomic(*request)).await
    }

    /// Posts a swap (`PtlSwap`).
    ///
    /// # Errors
    /// When the request is invalid.
    pub async fn swap(&self, request: &FetchRequest) -> Result<(), Error> {
        self.post(&Request::Swap(*request)).await
    }

    /// Posts an operation of any kind.
    ///
    /// # Errors
    /// When the request is invalid.
    pub async fn post(&self, request: &Request) -> Result<(), Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        Ok(self.host.timed(request.name(), async |path| card.post(cpus, path, request).await).await?)
    }

    /// Posts a put that is triggered when the counter reaches `threshold` (`PtlTriggeredPut`).
    ///
    /// # Errors
    /// When the rank is invalid.
    pub async fn triggered_put(
        &self,
        request: PutRequest,
        ct: CtHandle,
        threshold: u64,
    ) -> Result<(), Error> {
        self.triggered(Request::Put(request), ct, threshold).await
    }

    /// Posts an operation of any kind that is triggered when the counter reaches `threshold` (`PtlTriggeredGet` and
    /// similar calls).
    ///
    /// # Errors
    /// When the rank is invalid. If the card refuses the operation, the refusal is among the card's failures.
    pub async fn triggered(&self, request: Request, ct: CtHandle, threshold: u64) -> Result<(), Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        let post = async |path: &mut _| card.post_triggered(cpus, path, request, ct, threshold).await;
        Ok(self.host.timed(request.triggered_name(), post).await?)
    }
}

/// Calls for match entries and portal table entries.
impl Portals {
    /// Posts the append of a match entry (`PtlMEAppend`).
    ///
    /// # Errors
    /// When the memory does not belong to this host.
    pub async fn me_append(&self, pt: u32, me: Me, list: List) -> Result<Appending, Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        let post = async |path: &mut _| card.me_append(cpus, path, pt, me, list).await;
        Ok(self.host.timed("append an entry", post).await?)
    }

    /// Waits until the card has appended an entry.
    ///
    /// # Errors
    /// When the card refused the entry.
    pub async fn appended(&self, appending: Appending) -> Result<MeHandle, Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        let wait = async |path: &mut _| card.appended(cpus, path, appending).await;
        Ok(self.host.timed("wait for an append", wait).await?)
    }

    /// Unlinks a match entry, and waits for the card's answer (`PtlMEUnlink`).
    ///
    /// # Errors
    /// When messages or unexpected headers use the entry, or it does not exist.
    pub async fn me_unlink(&self, me: MeHandle) -> Result<(), Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        let unlink = async |path: &mut _| {
            let pending = card.me_unlink(cpus, path, me).await;
            card.answered(cpus, path, pending, "unlink a match entry").await
        };
        Ok(self.host.timed("unlink an entry", unlink).await?)
    }

    /// Searches the unexpected headers, and waits for the card's answer (`PtlMESearch`). The card posts the results as
    /// events.
    ///
    /// # Errors
    /// When the card refuses the search.
    pub async fn me_search(&self, pt: u32, me: Me, op: SearchOp) -> Result<(), Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        let search = async |path: &mut _| {
            let pending = card.me_search(cpus, path, pt, me, op).await;
            card.answered(cpus, path, pending, "search its unexpected headers").await
        };
        Ok(self.host.timed("search", search).await?)
    }

    /// Enables or disables a portal table entry, and waits for the card's answer (`PtlPTEnable`, `PtlPTDisable`).
    ///
    /// # Errors
    /// When the entry does not exist.
    pub async fn pt_enable(&self, pt: u32, enabled: bool) -> Result<(), Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        let enable = async |path: &mut _| {
            let pending = card.pt_enable(cpus, path, pt, enabled).await;
            let what = if enabled { "enable a portal table entry" } else { "disable a portal table entry" };
            card.answered(cpus, path, pending, what).await
        };
        Ok(self.host.timed(if enabled { "enable an entry" } else { "disable an entry" }, enable).await?)
    }
}

/// Calls for counters and events.
impl Portals {
    /// Returns the value of a counter, as the host sees it now.
    pub fn ct_get(&self, ct: CtHandle) -> CtEvent {
        self.card.ct_get(ct)
    }

    /// As [`ct_get`](Portals::ct_get), for a handle that a program has kept.
    ///
    /// # Errors
    /// When the counter does not exist.
    pub fn ct_value(&self, ct: CtHandle) -> Result<CtEvent, Error> {
        Ok(self.card.ct_value(ct)?)
    }

    /// Returns the time from which the host could see the counter's last change. `None` if the counter never changed.
    pub fn ct_changed(&self, ct: CtHandle) -> Option<Time> {
        self.card.ct_changed(ct)
    }

    /// Posts an increment of a counter (`PtlCTInc`).
    ///
    /// # Errors
    /// When the counter does not exist.
    pub async fn ct_inc(&self, ct: CtHandle, by: CtEvent) -> Result<(), Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        Ok(self.host.timed("increment a counter", async |path| card.ct_inc(cpus, path, ct, by).await).await?)
    }

    /// Posts a set of a counter (`PtlCTSet`).
    ///
    /// # Errors
    /// When the counter does not exist.
    pub async fn ct_set(&self, ct: CtHandle, value: CtEvent) -> Result<(), Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        Ok(self.host.timed("set a counter", async |path| card.ct_set(cpus, path, ct, value).await).await?)
    }

    /// Posts an increment of `target` that is triggered when `ct` reaches `threshold` (`PtlTriggeredCTInc`).
    ///
    /// # Errors
    /// When a counter does not exist.
    pub async fn triggered_ct_inc(
        &self,
        target: CtHandle,
        by: CtEvent,
        ct: CtHandle,
        threshold: u64,
    ) -> Result<(), Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        let post = async |path: &mut _| card.triggered_ct_inc(cpus, path, (target, by), ct, threshold).await;
        Ok(self.host.timed("triggered increment", post).await?)
    }

    /// Posts a set of `target` that is triggered when `ct` reaches `threshold` (`PtlTriggeredCTSet`).
    ///
    /// # Errors
    /// When a counter does not exist.
    pub async fn triggered_ct_set(
        &self,
        target: CtHandle,
        value: CtEvent,
        ct: CtHandle,
        threshold: u64,
    ) -> Result<(), Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        let post =
            async |path: &mut _| card.triggered_ct_set(cpus, path, (target, value), ct, threshold).await;
        Ok(self.host.timed("triggered set", post).await?)
    }

    /// Posts the cancellation of all operations that a counter triggers (`PtlCTCancelTriggered`).
    ///
    /// # Errors
    /// When the counter does not exist.
    pub async fn ct_cancel_triggered(&self, ct: CtHandle) -> Result<(), Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        Ok(self.host.timed("cancel", async |path| card.ct_cancel_triggered(cpus, path, ct).await).await?)
    }

    /// Waits until a counter has reached `threshold` (`PtlCTWait`).
    ///
    /// # Errors
    /// When the counter has counted a failed operation. [`Error::HandlerTrap`] when handlers of this card have failed.
    pub async fn ct_wait(&self, ct: CtHandle, threshold: u64) -> Result<CtEvent, Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        let wait = async |path: &mut _| card.ct_wait(cpus, path, ct, threshold).await;
        let value = self.host.timed("wait for a counter", wait).await;
        let reported = self.card.processors().failures();
        match value {
            Err(CallError::Failures { failures, .. }) if !reported.is_empty() => {
                Err(Error::HandlerTrap(format!(
                    "{}\nso that {failures} of the operations that rank {} waited for failed",
                    failure_lines(&reported),
                    self.host.rank()
                )))
            }
            value => Ok(value?),
        }
    }

    /// Waits until one of these counters has reached its threshold or counts a failure, or until `limit` has passed
    /// (`PtlCTPoll`). Returns the counter and its value; `None` after `limit`.
    ///
    /// # Errors
    /// When a counter does not exist.
    pub async fn ct_poll(
        &self,
        counters: &[(CtHandle, u64)],
        limit: Option<Duration>,
    ) -> Result<Option<(usize, CtEvent)>, Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        let poll = async |path: &mut _| card.ct_poll(cpus, path, counters, limit).await;
        Ok(self.host.timed("wait for a counter", poll).await?)
    }

    /// Waits until a queue has an event for which `wanted` returns true, and returns this event (`PtlEQWait`). `what`
    /// names the event in the text of a deadlock.
    ///
    /// # Errors
    /// When the queue overflowed before the event.
    pub async fn eq_wait(
        &self,
        eq: EqHandle,
        wanted: impl Fn(&Event) -> bool,
        what: impl Fn() -> String,
    ) -> Result<Event, Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        let wait = async |path: &mut _| card.eq_wait(cpus, path, eq, wanted, what).await;
        Ok(self.host.timed("wait for an event", wait).await?)
    }

    /// Returns the next event of a queue, if any (`PtlEQGet`). Each call occupies a CPU for o.
    ///
    /// # Errors
    /// When the queue does not exist, or it overflowed before the event.
    pub async fn eq_get(&self, eq: EqHandle) -> Result<Option<Event>, Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        Ok(self.host.timed("look for an event", async |path| card.eq_get(cpus, path, eq).await).await?)
    }

    /// Waits until one of these queues has an event, or until `limit` has passed (`PtlEQPoll`). Returns the queue and the event;
    /// `None` after `limit`.
    ///
    /// # Errors
    /// When a queue does not exist, or it overflowed before the event.
    pub async fn eq_poll(
        &self,
        queues: &[EqHandle],
        limit: Option<Duration>,
    ) -> Result<Option<(usize, Event)>, Error> {
        let (card, cpus) = (&self.card, &self.host.inner.cpus);
        let poll = async |path: &mut _| card.eq_poll(cpus, path, queues, limit).await;
        Ok(self.host.timed("wait for an event", poll).await?)
    }
}
