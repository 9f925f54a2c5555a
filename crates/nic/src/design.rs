//! The seam for card designs: the interface between a design and everything outside it.
//!
//! A [`Design`] has a name, which the specs of its cards give, and reads those specs; the result, a [`CardSpec`],
//! installs a [`Card`] on a node. Features of one design are reached through [`dyn CardSpec::of`](CardSpec) and
//! [`dyn Card::of`](Card), with the design's own types. The designs of this crate are always known; another crate
//! [registers](register) its own.

use crate::NodeSpec;
use crate::counters::CardReport;
use crate::messages::{Arrival, Caller, Calling, Outgoing, Pairs, PostedReceive, Tags, Wanted};
use crate::parts::Early;
use crate::parts::transport::Undelivered;
use crate::programs::{Log, ProgramFailure, RefusedCommand};
use nicety_fabric::{Packet, Port};
use nicety_host::{Allocation, Cpus, Gpu, GpuSpec, Memory, MemoryError};
use nicety_hpu::Core;
use nicety_kernel::Sim;
use nicety_spec::{Listing, Reader, Spec, SpecErrors};
use nicety_types::{Recorder, Stage};
use std::any::Any;
use std::fmt;
use std::future::ready;
use std::rc::Rc;
use std::sync::{Arc, PoisonError, RwLock};

/// A design of cards.
pub trait Design: Sync {
    /// Its name in specs.
    fn name(&self) -> &'static str;

    /// A card of this design, for error texts that suggest one.
    fn example(&self) -> &'static str;

    /// The interface that its cards give a host, with an article if English needs one.
    fn interface(&self) -> &'static str;

    /// Modes in which a benchmark may send between hosts, beside the card's natural mode.
    fn modes(&self) -> &'static [&'static str] {
        &[]
    }

    /// The mode, among these, that the card uses by itself; none if it chooses for each message, or has no modes.
    fn natural_mode(&self) -> Option<&'static str> {
        None
    }

    /// Whether messages have to have bytes, because something on their way reads them; a phantom is refused then.
    fn needs_bytes(&self) -> bool {
        false
    }

    /// The stages of a message that its cards declare, beside those that [every node](Stage::COMMON) has.
    fn stages(&self) -> Vec<Stage> {
        Vec::new()
    }

    /// Reads the card's sections. Errors go to the reader, which reports all of them at once.
    fn read(&self, reader: &Reader<'_>) -> Arc<dyn CardSpec>;

    /// Deadlock hints: notes on why programs may wait in vain, from all cards of this design, with their ranks. Each
    /// note begins with a line break.
    fn hints(&self, _cards: &[(u32, Rc<dyn Card>)]) -> String {
        String::new()
    }
}

impl dyn Design {
    /// Its cards have no command that does this.
    pub(crate) fn lacks(&self, what: &str) -> CardError {
        CardError::Input(format!("a card of design {} has no command that {what}", self.name()))
    }
}

impl fmt::Debug for dyn Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for dyn Design {
    fn eq(&self, other: &dyn Design) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Design {}

/// A card as its spec describes it. Immutable, and shared by all nodes.
pub trait CardSpec: Any + fmt::Debug + Send + Sync {
    /// Its design.
    fn design(&self) -> &'static dyn Design;

    /// The surroundings of the card: host and network.
    fn node(&self) -> NodeSpec;

    /// The kind of core that runs its programs, if it runs any.
    fn core(&self) -> Option<&Core> {
        None
    }

    /// The instruction set to compile its programs for, if it runs any.
    fn isa(&self) -> Option<&str> {
        None
    }

    /// The interface that its handlers are written for: `nicety`, or `pspin` or `fpspin` for the headers of those.
    fn interface(&self) -> &'static str {
        "nicety"
    }

    /// Most bytes of host memory that may be registered for its card at a time; none if the card reaches all host
    /// memory.
    fn registers(&self) -> Option<u64> {
        None
    }

    /// The graphics processor of its host, if the card can reach the memory of one.
    fn gpu(&self) -> Option<GpuSpec> {
        None
    }

    /// Its protocol on the link, as the object of 'sends'. Cards of one network must have the same.
    fn protocol(&self) -> String {
        format!("packets of design {}", self.design().name())
    }

    /// The format of its packets in a capture.
    fn link_layer(&self) -> LinkLayer {
        LinkLayer::Own
    }

    /// Whether someone sends a packet of its again that the network has lost or damaged, or it carries no data of a program: a run
    /// that loses others, and comes to its end, has [lost](crate::FailureKind::Lost) data that nobody may have missed.
    fn makes_up_for(&self, _packet: &Packet) -> bool {
        false
    }

    /// Most payload of a packet that it sends or accepts, in bytes; none if other cards need not know.
    fn packet_payload(&self) -> Option<u64> {
        None
    }

    /// Most payload of a packet on its link, in bytes: by this buffers of switches are measured. That of a jumbo frame, 9000,
    /// if the card does not say.
    fn largest_packet(&self) -> u64 {
        self.packet_payload().unwrap_or(9000)
    }

    /// The longest message of `send` that leaves before its receive is known, in bytes; none if other cards need not
    /// know.
    fn eager(&self) -> Option<u64> {
        None
    }

    /// Installs a card on a node.
    ///
    /// # Errors
    /// When the spec does not fit this node.
    fn install(self: Arc<Self>, seat: Seat<'_>) -> Result<Rc<dyn Card>, CardError>;
}

/// The format of packets on a card's link, as tools for captures know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLayer {
    /// The design's own.
    Own,
    /// Frames of Ethernet, from the destination's address on.
    Ethernet {
        /// Bytes at the end of a packet's header that are the frame's checksum, and no part of a capture.
        checksum: usize,
    },
}

/// A type of one design.
pub trait OfDesign: Any {
    /// The design.
    const DESIGN: &'static dyn Design;
}

impl dyn CardSpec {
    /// The spec as its design's own type.
    ///
    /// # Errors
    /// When the card is of another design.
    pub fn of<S: CardSpec + OfDesign>(&self) -> Result<&S, WrongDesign> {
        let any: &dyn Any = self;
        any.downcast_ref().ok_or(WrongDesign { found: self.design(), wanted: S::DESIGN })
    }
}

/// The surroundings of a card on its node.
pub struct Seat<'s> {
    /// The node's part of the simulation.
    pub sim: &'s Sim,
    /// Number of nodes.
    pub nodes: u32,
    /// Whether packets from one node to another come in the order in which they were sent, unless a fault delays one.
    pub ordered: bool,
    /// The host's memory.
    pub memory: &'s Rc<Memory>,
    /// The host's graphics processor, where the spec [has one](CardSpec::gpu).
    pub gpu: Option<&'s Gpu>,
    /// The host's CPUs.
    pub cpus: &'s Rc<Cpus>,
    /// The link; unconnected on a single node.
    pub port: Port,
    /// Most payload of a packet that every card of the network accepts, in bytes, if they limit it.
    pub packet_payload: Option<u64>,
    /// The longest message that every card of the network takes before its receive is known, in bytes, if they limit it.
    pub eager: Option<u64>,
    /// The user of the host's operations.
    pub uid: u32,
    /// Receives the output of programs on the card.
    pub log: &'s Log,
    /// Records the events on the node.
    pub recorder: &'s Recorder,
}

/// A card on a node.
pub trait Card: Any {
    /// Its design.
    fn design(&self) -> &'static dyn Design;

    /// Its counters.
    fn report(&self) -> CardReport {
        CardReport::new(())
    }

    /// Failures of programs on it.
    fn failures(&self) -> Vec<ProgramFailure> {
        Vec::new()
    }

    /// Messages that it failed to deliver.
    fn undelivered(&self) -> Vec<Undelivered> {
        Vec::new()
    }

    /// Whether it sends packets again that the network lost; none if cards of its design never do.
    fn is_reliable(&self) -> Option<bool> {
        None
    }

    /// Packets that came and were unusable.
    fn unusable(&self) -> u64 {
        0
    }

    /// Commands of programs on it that it refused.
    fn refused_commands(&self) -> Vec<RefusedCommand> {
        Vec::new()
    }

    /// Messages that found no cycles left in their application's budget: the application, and their number.
    fn unserved(&self) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// Printed lines of programs beyond the limit of those shown.
    fn lines_left_out(&self) -> u64 {
        0
    }

    /// Sends a message to the receive of a rank, possibly this one. Returns when the buffer may be used again.
    ///
    /// # Errors
    /// When a limit of the card is reached.
    fn send<'c>(self: Rc<Self>, caller: Caller<'c>, message: Outgoing) -> Calling<'c, Result<(), CardError>>;

    /// Posts a receive without waiting for its message. Where software matches messages only on demand, this takes no
    /// time and just stores the request.
    ///
    /// # Errors
    /// When a limit of the card is reached.
    fn post_receive<'c>(
        self: Rc<Self>,
        _caller: Caller<'c>,
        wanted: Wanted,
    ) -> Calling<'c, Result<PostedReceive, CardError>> {
        Box::pin(ready(Ok(PostedReceive::new(wanted))))
    }

    /// Waits for the message of a receive.
    ///
    /// # Errors
    /// When the receive turns out to be invalid, or its message failed.
    fn received<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Result<Arrival, CardError>>;

    /// Calls `then` with the receive once something has come for it, so that [`Card::received`] need not wait: many receives may be
    /// posted, and what is kept for each meanwhile is little.
    ///
    /// # Errors
    /// The receive, if something has come already, or the card cannot tell when something does.
    fn when_received(
        &self,
        posted: PostedReceive,
        _then: Box<dyn FnOnce(PostedReceive)>,
    ) -> Result<(), PostedReceive> {
        Err(posted)
    }

    /// Has the library match the messages of `send` and `recv` where the card does by itself and keeps what it has: any number of receives may
    /// then be posted, probed and given up. Libraries with room for so many messages of a host have as much for each pair. Set-up, before the
    /// first message, on all cards and with the same pairs; nothing where they can already, as the second time.
    ///
    /// # Errors
    /// When a limit of the card is reached.
    fn match_in_library(&self, _pairs: Pairs) -> Result<(), CardError> {
        Ok(())
    }

    /// The oldest early message that a receive of this source and these tags would take. It stays where it is; the arrival's room
    /// is its own length.
    ///
    /// # Errors
    /// When cards of this design do not tell, or a message was lost.
    fn probe<'c>(
        self: Rc<Self>,
        _caller: Caller<'c>,
        _source: Option<u32>,
        _tags: Tags,
    ) -> Calling<'c, Result<Option<Arrival>, CardError>> {
        Box::pin(ready(Err(self.design().lacks("looks for messages and takes none"))))
    }

    /// Tells when a look for an early message may find what the one before did not; none before there are messages, or where cards of
    /// this design do not tell.
    fn early(&self) -> Option<&Early> {
        None
    }

    /// Gives up a posted receive. Returns it if something has come for it, or is about to: then it is to be received.
    ///
    /// # Errors
    /// When cards of this design keep the receives that they have.
    fn cancel<'c>(
        self: Rc<Self>,
        _caller: Caller<'c>,
        _posted: PostedReceive,
    ) -> Calling<'c, Result<Option<PostedReceive>, CardError>> {
        Box::pin(ready(Err(self.design().lacks("takes a posted receive back"))))
    }

    /// The host's program has ended: closes what it has left open, as an operating system does.
    fn program_ended<'c>(self: Rc<Self>, _caller: Caller<'c>) -> Calling<'c, ()> {
        Box::pin(ready(()))
    }

    /// Tells the card of host memory allocated for the program that uses `send` and `recv`.
    fn adopt(&self, _allocation: &Allocation) {}
}

impl dyn Card {
    /// The card as its design's own type.
    ///
    /// # Errors
    /// When it is of another design.
    pub fn of<C: Card + OfDesign>(self: &Rc<Self>) -> Result<Rc<C>, WrongDesign> {
        let any: Rc<dyn Any> = self.clone();
        any.downcast().map_err(|_| WrongDesign { found: self.design(), wanted: C::DESIGN })
    }
}

/// A card of another design than needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongDesign {
    /// Its design.
    pub found: &'static dyn Design,
    /// The needed design.
    pub wanted: &'static dyn Design,
}

impl fmt::Display for WrongDesign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrongDesign { found, wanted } = self;
        let bare = |interface: &'static str| interface.trim_start_matches("a ").trim_start_matches("an ");
        write!(
            f,
            "a card of design {} has no {}, but {}; name one of design {}, for example {}",
            found.name(),
            bare(wanted.interface()),
            found.interface(),
            wanted.name(),
            wanted.example()
        )
    }
}

impl std::error::Error for WrongDesign {}

/// Why a host's call on its card failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardError {
    /// The arguments are invalid, whatever happened before.
    Input(String),
    /// It cannot be done now, or failed.
    Failed(String),
    /// A program on the card trapped, and the call waited for its result.
    Trapped(String),
}

impl CardError {
    /// There is no such rank, among so many.
    pub fn no_rank(rank: u32, ranks: u32) -> CardError {
        CardError::Input(format!("there is no rank {rank}; the cluster has ranks 0 to {}", ranks - 1))
    }
}

impl fmt::Display for CardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CardError::Input(text) | CardError::Failed(text) | CardError::Trapped(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for CardError {}

impl From<MemoryError> for CardError {
    fn from(error: MemoryError) -> CardError {
        CardError::Failed(error.to_string())
    }
}

/// The designs of this crate.
static OWN: [&dyn Design; 5] = [
    crate::spin::DESIGN,
    crate::nfp::DESIGN,
    crate::qnix::DESIGN,
    crate::apenet::DESIGN,
    crate::ethernet::DESIGN,
];
/// The registered designs.
static REGISTERED: RwLock<Vec<&'static dyn Design>> = RwLock::new(Vec::new());

/// Registers a design with everything that reads specs, from now on. It replaces a registered design of the same
/// name.
///
/// # Panics
/// When it has the name of a design of this crate.
pub fn register(design: &'static dyn Design) {
    assert!(!OWN.contains(&design), "design {} is a design of nicety's", design.name());
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    registered.retain(|known| *known != design);
    registered.push(design);
}

/// All designs: those of this crate, then the registered ones.
pub fn designs() -> Vec<&'static dyn Design> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    OWN.iter().chain(&*registered).copied().collect()
}

/// The stages that messages may have where cards of these designs are, in their usual order.
pub fn stages(designs: impl IntoIterator<Item = &'static dyn Design>) -> Vec<Stage> {
    let mut stages = Stage::COMMON.to_vec();
    stages.extend(designs.into_iter().flat_map(|design| design.stages()));
    stages.sort();
    stages.dedup();
    stages
}

/// Reads a card's specification.
///
/// # Errors
/// All errors in it, each with its place and a correction.
pub fn read(spec: &Spec) -> Result<(Arc<dyn CardSpec>, Listing), SpecErrors> {
    let known = designs();
    let names: Vec<&'static str> = known.iter().map(|design| design.name()).collect();
    let name = spec.design_among(&names)?;
    let reader = spec.reader();
    let card = known.iter().find(|design| design.name() == name).map(|design| design.read(&reader));
    let listing = reader.finish()?;
    Ok((card.expect("one of those that were named"), listing))
}
