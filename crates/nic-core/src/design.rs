//! The seam for card designs: the interface between a design and all other code.
//!
//! The specs of a [`Design`]'s cards have the design's name, and the design reads these specs. The result, a
//! [`CardSpec`], installs a [`Card`] on a node. [`dyn CardSpec::of`](CardSpec) and [`dyn Card::of`](Card) give access
//! to features of one design, in the design's own types. The crate that links the designs has a list of them.

use crate::NodeSpec;
use crate::counters::CardReport;
use crate::error::CardError;
use crate::library::Messages;
use crate::messages::{Arrival, Caller, Calling, Outgoing, Pairs, PostedReceive, Tags, Wanted};
use crate::parts::Early;
use crate::parts::transport::{TransportSpec, Undelivered, Wire};
use crate::programs::{Log, ProgramFailure, RefusedCommand};
use nicety_fabric::{Packet, Port};
use nicety_host::{Allocation, BusSpec, Cpus, Gpu, GpuSpec, Memory};
use nicety_hpu::Core;
use nicety_kernel::Sim;
use nicety_spec::{Listing, Reader, Spec, SpecErrors};
use nicety_types::{Recorder, Stage};
use std::any::Any;
use std::fmt;
use std::future::ready;
use std::rc::Rc;
use std::sync::Arc;

/// Cards, each with the rank of its host.
pub type RankedCards = [(u32, Rc<dyn Card>)];

/// A design of cards. [`Design::new`] sets default values.
pub struct Design {
    /// Its name in specs.
    pub name: &'static str,
    /// The name of a card of this design, for error texts.
    pub example: &'static str,
    /// The name of the cards' interface to a host, for error texts. It has an article if English needs one.
    pub interface: &'static str,
    /// The modes in which a benchmark may send between hosts, in addition to the card's natural mode. By default, there
    /// are none.
    pub modes: &'static [&'static str],
    /// The mode that a card uses by default. `None` if the card chooses a mode for each message, or has no modes.
    pub natural_mode: Option<&'static str>,
    /// Whether messages need real bytes, because a component on their path reads the bytes. If true, phantom messages
    /// are refused.
    pub needs_bytes: bool,
    /// The stages that the design's cards add to the [stages of every node](Stage::COMMON), in groups.
    pub stages: &'static [&'static [Stage]],
    /// Reads the sections of a card's spec. The reader reports all errors at once.
    pub read: fn(&Reader<'_>) -> Arc<dyn CardSpec>,
    /// Returns notes on possible reasons of a deadlock, for these cards of this design. Each note begins with a line
    /// break.
    pub hints: fn(&RankedCards) -> String,
}

impl Design {
    /// Returns a design with these four values. It has no modes, no stages and no hints, and accepts phantom messages.
    pub const fn new(
        name: &'static str,
        example: &'static str,
        interface: &'static str,
        read: fn(&Reader<'_>) -> Arc<dyn CardSpec>,
    ) -> Design {
        Design {
            name,
            example,
            interface,
            modes: &[],
            natural_mode: None,
            needs_bytes: false,
            stages: &[],
            read,
            hints: |_| String::new(),
        }
    }

    /// The name of the cards' interface, without an article.
    pub fn bare_interface(&self) -> &'static str {
        self.interface.trim_start_matches("a ").trim_start_matches("an ")
    }

    /// Returns the error for a command that the design's cards do not have.
    pub fn lacks(&self, what: &str) -> CardError {
        CardError::Input(format!("a card of design {} has no command that {what}", self.name))
    }
}

impl fmt::Debug for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Design {
    fn eq(&self, other: &Design) -> bool {
        self.name == other.name
    }
}

impl Eq for Design {}

/// The spec of a card, immutable and shared by all nodes.
pub trait CardSpec: Any + fmt::Debug + Send + Sync {
    /// The design of the card.
    fn design(&self) -> &'static Design;

    /// The specifications of the card's host and network.
    fn node(&self) -> NodeSpec;

    /// The kind of core that runs the card's programs, if the card runs programs.
    fn core(&self) -> Option<&Core> {
        None
    }

    /// The instruction set of the card's programs, if the card runs programs.
    fn isa(&self) -> Option<&str> {
        None
    }

    /// The C interface of the card's handlers: `nicety`, or `pspin` or `fpspin` for handlers that use the headers of
    /// PsPIN or FPsPIN.
    fn interface(&self) -> &'static str {
        "nicety"
    }

    /// Maximum number of bytes of host memory that may be registered for the card at any time. `None` if the card can
    /// access all host memory.
    fn registers(&self) -> Option<u64> {
        None
    }

    /// The host's graphics processor, if the card can access the memory of that processor.
    fn gpu(&self) -> Option<GpuSpec> {
        None
    }

    /// The bus between host and card, if there is one.
    fn bus(&self) -> Option<&BusSpec> {
        None
    }

    /// The card's reliable transport, if the design has one.
    fn transport(&self) -> Option<&TransportSpec> {
        None
    }

    /// Whether the card resends packets that the network lost.
    fn is_reliable(&self) -> bool {
        self.transport().is_some_and(|transport| transport.reliable)
    }

    /// The card's packets in words, as the object of 'sends'.
    fn packets(&self) -> String {
        format!("packets of design {}", self.design().name)
    }

    /// The card's protocol on the link in words, as the object of 'sends'. All cards of a network must have the same
    /// protocol.
    fn protocol(&self) -> String {
        self.packets() + if self.is_reliable() { " with reliable transport" } else { "" }
    }

    /// The format of the card's packets in a capture.
    fn link_layer(&self) -> LinkLayer {
        LinkLayer::Own
    }

    /// Whether the network may lose or damage this packet without loss of program data. This is so if the card resends
    /// the packet, or if the packet has no data. If the network loses another packet and the run still completes, the
    /// run reports the missing data as [lost](crate::FailureKind::Lost).
    fn makes_up_for(&self, _packet: &Packet) -> bool {
        self.is_reliable()
    }

    /// Maximum payload of a packet that the card sends or accepts, in bytes. `None` if other cards need not know this
    /// limit.
    fn packet_payload(&self) -> Option<u64> {
        None
    }

    /// Maximum payload of a packet on the card's link, in bytes. The sizes of switch buffers depend on it. The default
    /// is [`CardSpec::packet_payload`], or the payload of a jumbo frame, 9000 bytes.
    fn largest_packet(&self) -> u64 {
        self.packet_payload().unwrap_or(9000)
    }

    /// Maximum length of an eager message of `send`, in bytes. The card sends an eager message before it knows of a
    /// receive. `None` if other cards need not know this limit.
    fn eager(&self) -> Option<u64> {
        None
    }

    /// Installs a card on a node.
    ///
    /// # Errors
    /// When the spec does not fit this node.
    fn install(self: Arc<Self>, node_context: NodeContext<'_>) -> Result<Rc<dyn Card>, CardError>;
}

/// The format of packets on a card's link in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLayer {
    /// The packet format of the design.
    Own,
    /// Ethernet frames, from the destination address on.
    Ethernet {
        /// Size in bytes of the frame checksum at the end of a packet's header. Captures omit this checksum.
        checksum: usize,
    },
}

/// A type that belongs to one design.
pub trait OfDesign: Any {
    /// The design to which the type belongs.
    const DESIGN: &'static Design;
}

impl dyn CardSpec {
    /// Returns the spec in its design's own type.
    ///
    /// # Errors
    /// When the card is of another design.
    pub fn of<S: CardSpec + OfDesign>(&self) -> Result<&S, WrongDesign> {
        let any: &dyn Any = self;
        any.downcast_ref().ok_or(WrongDesign { found: self.design(), wanted: S::DESIGN })
    }
}

/// The environment of a card on its node.
pub struct NodeContext<'s> {
    /// The node's handle to the simulation.
    pub sim: &'s Sim,
    /// Number of nodes.
    pub nodes: u32,
    /// Whether packets from one node to another arrive in the order in which they were sent, unless a fault delays a
    /// packet.
    pub ordered: bool,
    /// The host's memory.
    pub memory: &'s Rc<Memory>,
    /// The host's graphics processor, if the spec [has one](CardSpec::gpu).
    pub gpu: Option<&'s Gpu>,
    /// The host's CPUs.
    pub cpus: &'s Rc<Cpus>,
    /// The port to the link. It is not connected if the cluster has a single node.
    pub port: Port,
    /// Maximum payload of a packet that all cards of the network accept, in bytes. `None` if no card limits it.
    pub packet_payload: Option<u64>,
    /// Maximum length of an eager message that all cards of the network accept, in bytes. `None` if no card limits it.
    pub eager: Option<u64>,
    /// The user ID of the host's operations.
    pub uid: u32,
    /// The output of programs on the card.
    pub log: &'s Log,
    /// The recorder of the node's events.
    pub recorder: &'s Recorder,
}

/// A card on a node.
pub trait Card: Any {
    /// The design of the card.
    fn design(&self) -> &'static Design;

    /// The card's counters.
    fn report(&self) -> CardReport {
        CardReport::new(())
    }

    /// Failures of programs on the card.
    fn failures(&self) -> Vec<ProgramFailure> {
        Vec::new()
    }

    /// The card's end of its link, if the design has reliable transport.
    fn wire(&self) -> Option<&Wire> {
        None
    }

    /// The messages that the card failed to deliver.
    fn undelivered(&self) -> Vec<Undelivered> {
        self.wire().map(Wire::undelivered).unwrap_or_default()
    }

    /// Whether the card resends packets that the network lost. `None` if the design has no reliable transport.
    fn is_reliable(&self) -> Option<bool> {
        self.wire().map(Wire::is_reliable)
    }

    /// Number of received packets that the card could not use.
    fn unusable(&self) -> u64 {
        0
    }

    /// Refused commands of programs on the card.
    fn refused_commands(&self) -> Vec<RefusedCommand> {
        Vec::new()
    }

    /// Applications with messages that were refused because the cycle budget was used up, and the number of these
    /// messages.
    fn unserved(&self) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// Number of lines that programs printed beyond the limit of lines.
    fn lines_left_out(&self) -> u64 {
        0
    }

    /// The host's library of `send` and `recv`, if software matches the messages. By default this library executes all
    /// calls below.
    fn library(&self) -> Option<Rc<dyn Messages>> {
        None
    }

    /// Sends a message to a receive at a rank, which may be this rank. Returns when the buffer may be reused.
    ///
    /// # Errors
    /// When a limit of the card is reached.
    fn send<'c>(self: Rc<Self>, caller: Caller<'c>, message: Outgoing) -> Calling<'c, Result<(), CardError>> {
        match self.library() {
            Some(library) => library.send(caller, message),
            None => lacking(self.design(), "sends messages"),
        }
    }

    /// Posts a receive, and does not wait for its message. If software matches messages only on demand, the call takes
    /// no simulated time and only stores the request.
    ///
    /// # Errors
    /// When a limit of the card is reached.
    fn post_receive<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        wanted: Wanted,
    ) -> Calling<'c, Result<PostedReceive, CardError>> {
        Box::pin(ready(match self.library() {
            Some(library) => library.post_receive(caller, wanted),
            None => Ok(PostedReceive::new(wanted)),
        }))
    }

    /// Waits for the message of a receive.
    ///
    /// # Errors
    /// When the receive is invalid, or its message failed.
    fn received<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Result<Arrival, CardError>> {
        match self.library() {
            Some(library) => library.received(caller, posted),
            None => lacking(self.design(), "receives messages"),
        }
    }

    /// Calls `then` with the receive when a message has arrived for it. [`Card::received`] then need not wait. So a
    /// program can post many receives, with little memory for each.
    ///
    /// # Errors
    /// Returns the receive if a message has already arrived for it, or if the card cannot report the arrival.
    fn when_received(
        &self,
        posted: PostedReceive,
        _then: Box<dyn FnOnce(PostedReceive)>,
    ) -> Result<(), PostedReceive> {
        Err(posted)
    }

    /// Makes the host's library match the messages of `send` and `recv`, on a card that otherwise matches them itself.
    /// A program can then post, probe and cancel any number of receives. A library with room for a fixed number of
    /// messages per host gets this room for each pair of processes. Call this method on all cards with the same pairs,
    /// before the first message. It has no effect if the library already matches messages, as after a first call.
    ///
    /// # Errors
    /// When a limit of the card is reached.
    fn match_in_library(&self, _pairs: Pairs) -> Result<(), CardError> {
        Ok(())
    }

    /// Returns the oldest message without a receive that a receive from this source with these tags would take. The
    /// message stays in its list. `room` of the returned [`Arrival`] is the message's length.
    ///
    /// # Errors
    /// When the design does not support this, or a message was lost.
    fn probe<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        source: Option<u32>,
        tags: Tags,
    ) -> Calling<'c, Result<Option<Arrival>, CardError>> {
        match self.library() {
            Some(library) => library.probe(caller, source, tags),
            None => lacking(self.design(), "probes for messages"),
        }
    }

    /// The signal that a probe may find a message that the previous probe did not find. `None` before the first
    /// message, or if the design has no such signal.
    fn early(&self) -> Option<&Early> {
        None
    }

    /// Cancels a posted receive. If a message has arrived for the receive or is about to arrive, the receive is
    /// returned. The caller must then wait for its message with [`Card::received`].
    ///
    /// # Errors
    /// When the design cannot cancel a posted receive.
    fn cancel<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Result<Option<PostedReceive>, CardError>> {
        match self.library() {
            Some(library) => Box::pin(async move { Ok(library.cancel(caller, posted).await) }),
            None => lacking(self.design(), "cancels a posted receive"),
        }
    }

    /// Ends the host's program. Closes everything that the program left open, as an operating system does.
    fn program_ended<'c>(self: Rc<Self>, _caller: Caller<'c>) -> Calling<'c, ()> {
        Box::pin(ready(()))
    }

    /// Informs the card that host memory was allocated for the program that uses `send` and `recv`.
    fn adopt(&self, _allocation: &Allocation) {}
}

/// Returns the outcome of a call that cards of this design do not have.
fn lacking<'c, V: 'c>(design: &'static Design, what: &str) -> Calling<'c, Result<V, CardError>> {
    Box::pin(ready(Err(design.lacks(what))))
}

/// Returns the cards of one type, each with its rank.
pub fn cards_of<C: Card + OfDesign>(cards: &RankedCards) -> impl Iterator<Item = (u32, Rc<C>)> {
    cards.iter().filter_map(|(rank, card)| Some((*rank, card.of().ok()?)))
}

impl dyn Card {
    /// Returns the card in its design's own type.
    ///
    /// # Errors
    /// When it is of another design.
    pub fn of<C: Card + OfDesign>(self: &Rc<Self>) -> Result<Rc<C>, WrongDesign> {
        let any: Rc<dyn Any> = self.clone();
        any.downcast().map_err(|_| WrongDesign { found: self.design(), wanted: C::DESIGN })
    }
}

/// The error for a card of the wrong design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongDesign {
    /// The card's design.
    pub found: &'static Design,
    /// The needed design.
    pub wanted: &'static Design,
}

impl fmt::Display for WrongDesign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrongDesign { found, wanted } = self;
        write!(
            f,
            "a card of design {} has no {}, but {}; name a card of design {}, for example {}",
            found.name,
            wanted.bare_interface(),
            found.interface,
            wanted.name,
            wanted.example
        )
    }
}

impl std::error::Error for WrongDesign {}

/// Returns the stages of messages for cards of these designs, in ascending order of the stages' places.
pub fn stages(designs: impl IntoIterator<Item = &'static Design>) -> Vec<Stage> {
    let mut stages = Stage::COMMON.to_vec();
    stages.extend(designs.into_iter().flat_map(|design| design.stages.concat()));
    stages.sort();
    stages.dedup();
    stages
}

/// Reads the spec of a card. Its design is one of the `known` designs. Also returns the list of the spec's keys.
///
/// # Errors
/// All errors in the spec, each with its place and a correction.
pub fn read(spec: &Spec, known: &[&'static Design]) -> Result<(Arc<dyn CardSpec>, Listing), SpecErrors> {
    let names: Vec<&'static str> = known.iter().map(|design| design.name).collect();
    let name = spec.design_among(&names)?;
    let reader = spec.reader();
    let card = known.iter().find(|design| design.name == name).map(|design| (design.read)(&reader));
    let listing = reader.finish()?;
    Ok((card.expect("one of those that were named"), listing))
}
