//! The Ethernet implementation of the card design seam.

use crate::card::disposition::FrameDispositions;
use crate::card::handling::{Handling, RuleReport};
use crate::card::{Card, Statistics};
use crate::messages::Messenger;
use crate::net::Net;
use crate::sockets::Sockets;
use crate::spec::{EthernetSpec, HEADERS, read_ethernet};
use crate::work::{ForHost, HostWork};
use crate::xdp::{Xdp, XdpError, XdpProgram, XdpReport, XskReader};
use crate::{stages, wire};
use nicety_fabric::Packet;
use nicety_host::threads::{Account, Group};
use nicety_host::{BusSpec, KernelCounters};
use nicety_hpu::Core;
use nicety_nic_core::library::Messages;
use nicety_nic_core::parts::{DueTime, Early, Offered};
use nicety_nic_core::{
    Caller, Calling, CardError, CardReport, CardSpec, Counters, Design, LinkLayer, NodeContext, NodeSpec,
    OfDesign, ProgramFailure, RefusedCommand, at_ranks, cards_of,
};
use nicety_nic_processors::{Busy, stages as handlers};
use nicety_types::{Buffer, Duration, NodeId, Path};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// Ethernet cards below TCP.
pub const DESIGN: &Design = &Design {
    // TCP computes checksums and resends.
    needs_bytes: true,
    // The stages of handlers are those of the PsPIN design.
    stages: &[
        stages::STAGES,
        &[handlers::MATCH, handlers::MATCH_QUEUED, handlers::HANDLER, handlers::HANDLER_QUEUED],
    ],
    hints: |cards| {
        let facts = cards_of::<Node>(cards)
            .flat_map(|(rank, node)| node.messenger.unreceived().into_iter().map(move |fact| (rank, fact)));
        at_ranks(&facts.collect::<Vec<_>>())
    },
    ..Design::new("ethernet", "niagara2-niu", "sockets", |reader| Arc::new(read_ethernet(reader)))
};

/// The cost of a function group of the kernel or of programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "GroupReport")]
pub struct GroupReport {
    /// Its name.
    pub group: String,
    /// CPU time, in picoseconds.
    pub busy_ps: u64,
    /// Instructions.
    pub instructions: u64,
    /// Loads that missed a core's first-level cache.
    pub l1_misses: u64,
    /// Of these, loads that also missed the shared cache.
    pub shared_cache_misses: u64,
    /// Misses of the cores' TLBs for data.
    pub tlb_misses: u64,
    /// Misses of the cores' TLBs for code.
    pub code_tlb_misses: u64,
}

/// A host's Ethernet card, its protocols and its threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "EthernetReport")]
pub struct Report {
    /// Counters of the card.
    #[serde(flatten)]
    pub card: Statistics,
    /// TCP segments sent again.
    pub retransmissions: u64,
    /// Frames that the protocols dropped.
    pub dropped: u64,
    /// Frames dropped because the backlog of a kernel thread was full.
    pub backlog_full: u64,
    /// Packets delivered to host memory: frames, or several frames that the card joined.
    pub packets: u64,
    /// Frames by receive channel.
    pub channels: Vec<u64>,
    /// Frames by soft ring.
    pub soft_rings: Vec<u64>,
    /// CPU time by function group.
    pub groups: Vec<GroupReport>,
    /// CPU time of all groups, in picoseconds.
    pub busy_ps: u64,
    /// Handled interrupts of receive channels.
    pub handlers: u64,
    /// CPU time of their handlers before they took frames, in picoseconds.
    pub handler_busy_ps: u64,
    /// System calls.
    pub system_calls: u64,
    /// Context switches of the host's CPUs.
    pub context_switches: u64,
    /// Wake-ups of sleeping threads.
    pub wakes: u64,
    /// Migrations of threads to another CPU.
    pub migrations: u64,
    /// Calls from one CPU of the host to another.
    pub cross_calls: u64,
    /// Interrupts of the host's CPUs.
    pub interrupts: u64,
    /// Disposition of the frames of each rule of handlers.
    pub rules: Vec<RuleReport>,
    /// Frames that met XDP programs in the driver; none without a program.
    pub xdp: Option<XdpReport>,
}

impl Counters for Report {
    fn kernel(&self) -> KernelCounters {
        let Report { system_calls: calls, interrupts, wakes, .. } = *self;
        KernelCounters { calls, interrupts, wakes, ..KernelCounters::default() }
    }
}

/// An Ethernet card, and the network of its host.
pub struct Node {
    net: Rc<Net>,
    messenger: Rc<Messenger>,
    sockets: Rc<Sockets>,
}

impl Node {
    /// Returns the sockets of the host's programs.
    pub const fn sockets(&self) -> &Rc<Sockets> {
        &self.sockets
    }

    /// Returns the card's rules and handlers, if the card has handler cores.
    pub fn handling(&self) -> Option<&Handling> {
        self.net.card.handling.as_ref()
    }

    /// Sends frames to a station, like a tester without a host. A frame is sent when it is due, or as soon after that
    /// as the receiver permits. `next` writes a frame and returns its due time, or `None` at the end. The frame's
    /// Ethernet addresses become those of this station and of the receiver. Nothing is sent once `over` is true. From
    /// this call on, the card drops every received frame.
    ///
    /// # Panics
    /// When a frame is too short for its addresses.
    pub async fn offer(
        &self,
        target: NodeId,
        next: impl FnMut(&mut Vec<u8>) -> Option<DueTime>,
        over: &Cell<bool>,
    ) -> Offered {
        self.net.card.offer(target, next, over).await
    }

    /// The card's spec.
    pub fn spec(&self) -> &EthernetSpec {
        &self.net.spec
    }

    /// Attaches an XDP program to the driver, or replaces the attached program. This is set-up, and takes no virtual
    /// time.
    ///
    /// # Errors
    /// When the host cannot run the program.
    pub fn attach_xdp(&self, program: XdpProgram) -> Result<(), XdpError> {
        self.net.card.xdp.attach(program, &self.net.spec)
    }

    /// Charges a system call without work to a thread of the host's program.
    pub async fn system_call(&self, program: u32, path: &mut Path) {
        let call = self.net.programs.enter(program);
        self.net.system_call(call.thread(), path).await;
    }

    /// Waits for records of a program's ring buffer or perf events by a system call of a thread of the host's program.
    pub async fn xdp_records(
        &self,
        caller: u32,
        program: &XdpProgram,
        map: (usize, &str),
        path: &mut Path,
    ) -> Vec<Vec<u8>> {
        let call = self.net.programs.enter(caller);
        self.net.records(call.thread(), program, map, path).await
    }

    /// Takes at most `most` frames of an AF_XDP socket of a program, by a thread of the host's program. The frames that its reader
    /// took last give their buffers back. It waits by a system call while there are none.
    pub async fn xdp_frames(
        &self,
        (caller, reader): (u32, &XskReader),
        program: &XdpProgram,
        socket: ((usize, u32), usize),
        path: &mut Path,
    ) -> Vec<Buffer> {
        let call = self.net.programs.enter(caller);
        self.net.socket_frames((call.thread(), reader), program, socket, path).await
    }

    /// The XDP program of the driver, and its counters.
    pub fn xdp(&self) -> &Xdp {
        &self.net.card.xdp
    }

    /// Returns the time that a frame of this size occupies the card's link. A short frame is padded there.
    pub fn wire_interval(&self, bytes: u64) -> Duration {
        self.net.card.port.serialisation(bytes.max(wire::SHORTEST as u64))
    }

    /// Counts the frames of a tester separately from this call on.
    pub fn watch_tester(&self, tester: NodeId) {
        self.net.card.testers.watch(tester, false);
    }

    /// Counts the frames of a generator separately from this call on. The generator is the only device at the end of
    /// its wire. Frames that handlers send to missing stations leave by the wire on which they arrived.
    pub fn watch_generator(&self, generator: NodeId) {
        self.net.card.testers.watch(generator, true);
    }

    /// The disposition of a tester's frames. `None` if the tester's frames are not counted.
    pub fn dispositions(&self, tester: NodeId) -> Option<FrameDispositions> {
        self.net.card.testers.dispositions(tester)
    }

    /// Busy times of parts of the card so far.
    pub fn busy(&self) -> Busy {
        self.net.card.busy()
    }

    /// The total time of fetches of transmit descriptors so far. A fetch of fewer descriptors than possible counts in
    /// proportion to its descriptors.
    pub fn fetching(&self) -> Duration {
        self.net.card.fetching.get()
    }

    /// Work of each part of the host for frames so far.
    pub fn host_work(&self) -> Vec<HostWork> {
        self.net.work()
    }

    /// Bus time of frames for the host so far.
    pub fn for_host(&self) -> ForHost {
        let card = &self.net.card;
        ForHost { carried: card.carried.get(), left_out: card.left_out.get() }
    }

    /// The counters so far.
    pub fn report(&self) -> Report {
        let net = &self.net;
        let account: Account = net.threads.account();
        let group = |group: Group| {
            let used = account.group(group);
            GroupReport {
                group: group.name().to_owned(),
                busy_ps: used.busy.ps(),
                instructions: used.instructions,
                l1_misses: used.l1_misses,
                shared_cache_misses: used.shared_cache_misses,
                tlb_misses: used.tlb_misses,
                code_tlb_misses: used.code_tlb_misses,
            }
        };
        let stack = net.stack.borrow();
        Report {
            card: net.card.statistics(),
            retransmissions: stack.counters().retransmissions,
            dropped: stack.counters().dropped.iter().sum(),
            backlog_full: net.rings.iter().map(|ring| ring.dropped.get()).sum(),
            packets: net.card.receive.iter().map(|ring| ring.packets.get()).sum(),
            channels: net.card.receive.iter().map(|ring| ring.frames.get()).collect(),
            soft_rings: net.rings.iter().map(|ring| ring.taken.get()).collect(),
            groups: Group::ALL.map(group).to_vec(),
            busy_ps: account.busy().ps(),
            handlers: net.handlers.get().0,
            handler_busy_ps: net.handlers.get().1.ps(),
            system_calls: net.system_calls.get(),
            context_switches: account.context_switches,
            wakes: account.wakes,
            migrations: account.migrations,
            cross_calls: account.cross_calls,
            interrupts: account.interrupts,
            rules: self.handling().map(Handling::reports).unwrap_or_default(),
            xdp: net.card.xdp.report(),
        }
    }
}

impl OfDesign for EthernetSpec {
    const DESIGN: &'static Design = DESIGN;
}

impl CardSpec for EthernetSpec {
    fn design(&self) -> &'static Design {
        DESIGN
    }

    fn bus(&self) -> Option<&BusSpec> {
        Some(&self.bus)
    }

    fn core(&self) -> Option<&Core> {
        self.handlers.as_ref().map(|handlers| &handlers.hpu.core)
    }

    fn isa(&self) -> Option<&str> {
        self.handlers.as_ref().map(|handlers| &*handlers.hpu.isa)
    }

    fn node(&self) -> NodeSpec {
        self.node
    }

    fn protocol(&self) -> String {
        "TCP over Ethernet".to_owned()
    }

    fn link_layer(&self) -> LinkLayer {
        LinkLayer::Ethernet { checksum: wire::CHECK_SEQUENCE }
    }

    fn makes_up_for(&self, packet: &Packet) -> bool {
        // TCP recovers its segments. Nothing recovers datagrams and other frames of programs.
        packet.payload.pieces().next().is_none_or(|(_, frame)| wire::is_recovered(frame))
    }

    fn largest_packet(&self) -> u64 {
        self.frames.mtu + HEADERS
    }

    fn install(
        self: Arc<Self>,
        node_context: NodeContext<'_>,
    ) -> Result<Rc<dyn nicety_nic_core::Card>, CardError> {
        let NodeContext { sim, nodes, memory, port, log, recorder, .. } = node_context;
        let card = Card::install(sim, self.clone(), memory, port, nodes, (log, recorder))?;
        let net = Net::start(sim, self, card)?;
        let messenger = Messenger::start(&net, memory)?;
        let sockets = Rc::new(Sockets::new(&net));
        Ok(Rc::new(Node { net, messenger, sockets }))
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
        CardReport::new(Node::report(self))
    }

    fn failures(&self) -> Vec<ProgramFailure> {
        let mut failures = self.handling().map(Handling::failures).unwrap_or_default();
        failures.extend(self.net.card.xdp.failures());
        failures
    }

    fn refused_commands(&self) -> Vec<RefusedCommand> {
        self.handling().map(Handling::refused_commands).unwrap_or_default()
    }

    fn lines_left_out(&self) -> u64 {
        self.handling().map_or(0, |handling| handling.frames().printed().suppressed)
    }

    fn unusable(&self) -> u64 {
        self.net.card.statistics().fcs_errors
    }

    fn is_reliable(&self) -> Option<bool> {
        Some(true)
    }

    fn library(&self) -> Option<Rc<dyn Messages>> {
        Some(self.messenger.clone())
    }

    fn program_ended<'c>(self: Rc<Self>, caller: Caller<'c>) -> Calling<'c, ()> {
        Box::pin(async move {
            caller.on_path(async |path| self.sockets.close_all(caller.thread, path).await).await;
        })
    }

    fn early(&self) -> Option<&Early> {
        Some(&self.net.early)
    }
}
