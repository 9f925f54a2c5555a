//! The QNIX card as a [`Design`], and the processes of its host.

use crate::messages::Messenger;
use crate::spec::read_qnix;
use crate::stages;
use crate::{
    Card, Completed, Endpoint, Operation, Process, QnixError, QnixSpec, Receive, Send, Statistics,
    TransferMethod,
};
use nicety_host::{Allocation, BusSpec, Kernel, KernelCounters};
use nicety_kernel::{Pool, describe};
use nicety_nic_core::library::Messages;
use nicety_nic_core::parts::{self, Early};
use nicety_nic_core::{
    Arrival, Caller, Calling, CardError, CardReport, CardSpec, Counters, Design, NodeContext, NodeSpec,
    OfDesign, Outgoing, Pairs, PostedReceive, Wanted,
};
use nicety_types::NodeId;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::future::ready;
use std::rc::Rc;
use std::sync::Arc;

/// The design with virtual network interfaces for processes.
pub const DESIGN: &Design = &Design {
    modes: &["pio", "dma", "copy", "translate"],
    stages: &[stages::STAGES, parts::stages::ENGINE],
    ..Design::new("qnix", "qnix", "virtual network interfaces", |reader| Arc::new(read_qnix(reader)))
};

/// Number of the process that owns the host's `send` and `recv`.
pub const OWN_PROCESS: u32 = 0;

/// Counters of a card with virtual network interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Counters of the card.
    pub interfaces: Statistics,
    /// Counters of the host's kernel.
    pub kernel: KernelCounters,
}

impl Counters for Report {
    fn kernel(&self) -> KernelCounters {
        self.kernel
    }
}

/// A card with virtual network interfaces, and the processes of its host.
pub struct Node {
    card: Rc<Card>,
    processes: RefCell<BTreeMap<u32, Rc<Process>>>,
    /// Number of the interface of the process that owns `send` and `recv`.
    own: u32,
    /// Keeps messages of `send` in the order of sending, even if a later message needs less time for its copy or
    /// registration.
    turn: Pool,
    /// The library that matches the messages of `send` and `recv`. Empty if the card matches them.
    library: OnceCell<Rc<Messenger>>,
}

impl Node {
    /// Registers the host's own process with the largest possible Buffer Pool.
    fn set_up(card: Rc<Card>) -> Result<Node, QnixError> {
        let process = Rc::new(Process::new(&card, OWN_PROCESS));
        let own = process.set_up(card.spec().limits.pool)?;
        let processes = RefCell::new(BTreeMap::from([(OWN_PROCESS, process)]));
        let turn = Pool::new(&card.sim, 1);
        Ok(Node { card, processes, own, turn, library: OnceCell::new() })
    }

    /// Returns the card.
    pub const fn card(&self) -> &Rc<Card> {
        &self.card
    }

    /// Returns the number of the interface of the host's own process.
    pub const fn own_interface(&self) -> u32 {
        self.own
    }

    /// Returns the process with this number. Creates the process at the first call.
    pub fn process(&self, number: u32) -> Rc<Process> {
        let mut processes = self.processes.borrow_mut();
        let new = || Rc::new(Process::new(&self.card, number));
        processes.entry(number).or_insert_with(new).clone()
    }

    /// Posts a send of the host's own process. `how` is the transfer method of the message to the card.
    ///
    /// # Errors
    /// When the message is too long for that transfer method.
    pub async fn post_send(
        &self,
        caller: Caller<'_>,
        message: Outgoing,
        how: TransferMethod,
    ) -> Result<Operation, CardError> {
        let Outgoing { to, tag, address, bytes } = message;
        let to = Endpoint { node: NodeId(to), vni: self.own };
        let (process, send) = (self.process(OWN_PROCESS), Send { address, bytes, to, tag, how });
        let post = async |path: &mut _| process.send(self.own, send, path).await;
        Ok(caller.timed("post a send", post).await?)
    }

    /// Waits until the buffer of a send may be reused.
    ///
    /// # Errors
    /// When the operation does not exist or has ended already.
    pub async fn sent(&self, caller: Caller<'_>, posted: Operation) -> Result<Completed, CardError> {
        self.completed(caller, posted, "wait for a send").await
    }

    async fn completed(
        &self,
        caller: Caller<'_>,
        posted: Operation,
        what: &'static str,
    ) -> Result<Completed, CardError> {
        let process = self.process(OWN_PROCESS);
        let wait = async |path: &mut _| process.wait(self.own, posted, path).await;
        Ok(caller.timed(what, wait).await?)
    }

    /// Posts a receive of the host's own process. `how` is the transfer method of the message from the card.
    ///
    /// # Errors
    /// When a limit is reached.
    pub async fn post_receive_by(
        &self,
        caller: Caller<'_>,
        wanted: Wanted,
        how: TransferMethod,
    ) -> Result<PostedReceive, CardError> {
        let Wanted { source, tags, address, room } = wanted;
        let from = source.map(|rank| Endpoint { node: NodeId(rank), vni: self.own });
        let receive = Receive { address, bytes: room, from, tags, how };
        let process = self.process(OWN_PROCESS);
        let post = async |path: &mut _| process.receive(self.own, receive, path).await;
        let operation = caller.timed("post a receive", post).await?;
        Ok(PostedReceive::new(Posted { operation, wanted }))
    }
}

/// A receive of the host's own process: a Receive command in its interface.
#[derive(Clone, Copy)]
struct Posted {
    operation: Operation,
    wanted: Wanted,
}

impl OfDesign for QnixSpec {
    const DESIGN: &'static Design = DESIGN;
}

impl CardSpec for QnixSpec {
    fn design(&self) -> &'static Design {
        DESIGN
    }

    fn bus(&self) -> Option<&BusSpec> {
        Some(&self.bus)
    }

    fn node(&self) -> NodeSpec {
        self.node
    }

    fn registers(&self) -> Option<u64> {
        Some(self.limits.message.min(self.limits.pool))
    }

    fn protocol(&self) -> String {
        "QNIX packets".to_owned()
    }

    fn packet_payload(&self) -> Option<u64> {
        Some(self.packet)
    }

    fn install(
        self: Arc<Self>,
        node_context: NodeContext<'_>,
    ) -> Result<Rc<dyn nicety_nic_core::Card>, CardError> {
        let NodeContext { sim, nodes, memory, cpus, port, packet_payload, recorder, .. } = node_context;
        let kernel = Rc::new(Kernel::new(sim, cpus, self.kernel));
        let spec = match packet_payload {
            Some(packet) if packet < self.packet => Arc::new(QnixSpec { packet, ..QnixSpec::clone(&self) }),
            _ => self,
        };
        let card = Card::install(sim, spec, memory.clone(), kernel, port, nodes, recorder);
        Ok(Rc::new(Node::set_up(card)?))
    }
}

impl OfDesign for Node {
    const DESIGN: &'static Design = DESIGN;
}

impl nicety_nic_core::Card for Node {
    fn design(&self) -> &'static Design {
        DESIGN
    }

    fn report(&self) -> CardReport {
        let kernel = self.card.kernel().counters();
        CardReport::new(Report { interfaces: self.card.statistics(), kernel })
    }

    fn unusable(&self) -> u64 {
        self.card.statistics().unusable
    }

    fn adopt(&self, allocation: &Allocation) {
        self.process(OWN_PROCESS).adopt(allocation);
    }

    fn library(&self) -> Option<Rc<dyn Messages>> {
        Some(self.library.get()?.clone())
    }

    fn send<'c>(self: Rc<Self>, caller: Caller<'c>, message: Outgoing) -> Calling<'c, Result<(), CardError>> {
        if let Some(library) = self.library() {
            return library.send(caller, message);
        }
        Box::pin(async move {
            let start = caller.sim.now();
            let turn = self.turn.acquire().await;
            let posted = self.post_send(caller, message, TransferMethod::Auto).await;
            drop(turn);
            let posted = posted?;
            self.sent(caller, posted).await?;
            caller.called("send", start);
            Ok(())
        })
    }

    fn post_receive<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        wanted: Wanted,
    ) -> Calling<'c, Result<PostedReceive, CardError>> {
        match self.library() {
            Some(library) => Box::pin(ready(library.post_receive(caller, wanted))),
            None => Box::pin(async move { self.post_receive_by(caller, wanted, TransferMethod::Auto).await }),
        }
    }

    fn received<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Result<Arrival, CardError>> {
        if let Some(library) = self.library().filter(|_| !posted.is::<Posted>()) {
            return library.received(caller, posted);
        }
        Box::pin(async move {
            let Posted { operation, wanted } = posted.of();
            let completed = self.completed(caller, operation, "wait for a receive");
            let Completed { peer, tag, bytes, .. } = describe(move || wanted.what(), completed).await?;
            Ok(Arrival { source: peer.node.0, tag, bytes, room: wanted.room })
        })
    }

    fn match_in_library(&self, _pairs: Pairs) -> Result<(), CardError> {
        if self.library.get().is_none() {
            let library = Messenger::start(&self.process(OWN_PROCESS), self.own)?;
            self.library.get_or_init(|| library);
        }
        Ok(())
    }

    fn early(&self) -> Option<&Early> {
        self.library.get().map(|messenger| messenger.library.early())
    }

    fn cancel<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Result<Option<PostedReceive>, CardError>> {
        match self.library().filter(|_| !posted.is::<Posted>()) {
            Some(library) => Box::pin(async move { Ok(library.cancel(caller, posted).await) }),
            None => Box::pin(ready(Err(DESIGN.lacks("cancels a posted receive")))),
        }
    }
}

impl From<QnixError> for CardError {
    fn from(error: QnixError) -> CardError {
        use QnixError as E;
        match error {
            // These arguments are invalid at any time.
            E::NoNode { .. }
            | E::NoSuchInterface { .. }
            | E::Message { .. }
            | E::Pool { .. }
            | E::TooLongForPio { .. } => CardError::Input(error.to_string()),
            _ => CardError::Failed(error.to_string()),
        }
    }
}
