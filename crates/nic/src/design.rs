//! The seam for designs: what a design of cards is to everything outside it.
//!
//! A [`Design`] has a name, by which the files of its cards call it, and reads them; what it has read, a [`CardSpec`], puts
//! a [`Card`] on a node. What only one design has is reached through [`dyn CardSpec::of`](CardSpec) and
//! [`dyn Card::of`](Card) with its own types. Those of this crate are there from the beginning; another crate
//! [registers](register) its own.

use crate::NodeSpec;
use crate::messages::{Arrival, Caller, Calling, Outgoing, PostedReceive, Wanted};
use crate::spin::{CallError, Fault, Log, RefusedCommand};
use crate::transport::Undelivered;
use nicety_fabric::Port;
use nicety_host::{Allocation, Cpus, Memory, MemoryError};
use nicety_hpu::Core;
use nicety_kernel::Sim;
use nicety_spec::{Listing, Reader, Spec, SpecErrors};
use nicety_types::Recorder;
use std::any::Any;
use std::fmt;
use std::future::ready;
use std::rc::Rc;
use std::sync::{Arc, PoisonError, RwLock};

/// A design of cards.
pub trait Design: Sync {
    /// Its name in specs.
    fn name(&self) -> &'static str;

    /// A card of it, for texts that say what to name instead.
    fn example(&self) -> &'static str;

    /// What a host has of its cards, with an article where the language wants one.
    fn interface(&self) -> &'static str;

    /// Modes in which a benchmark may send between hosts, beside that which a card has of itself.
    fn modes(&self) -> &'static [&'static str] {
        &[]
    }

    /// The name, among these, of what a card does of itself; none where it chooses for each message, or has no modes.
    fn natural_mode(&self) -> Option<&'static str> {
        None
    }

    /// Reads the card's sections. What is wrong goes to the reader, which has everything told at once.
    fn read(&self, reader: &Reader<'_>) -> Arc<dyn CardSpec>;

    /// What may be why programs wait for what never comes, as notes on a deadlock: of all cards of this design, with
    /// their ranks. Each note begins with a line break.
    fn hints(&self, _cards: &[(u32, Rc<dyn Card>)]) -> String {
        String::new()
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

/// A card as its file describes it: the numbers that its parts take. Nothing in it changes, so all nodes share it.
pub trait CardSpec: Any + fmt::Debug + Send + Sync {
    /// Its design.
    fn design(&self) -> &'static dyn Design;

    /// What is around the card.
    fn node(&self) -> NodeSpec;

    /// The kind of core that runs its programs; none where it runs none.
    fn core(&self) -> Option<&Core> {
        None
    }

    /// The instruction set to compile its programs for; none where it runs none.
    fn isa(&self) -> Option<&str> {
        None
    }

    /// Most bytes that a host has its card reach at a time by registering them; none where it reaches all host memory.
    fn registers(&self) -> Option<u64> {
        None
    }

    /// What it puts on its link, to follow 'sends'. Cards of one network have the same, or do not understand each other.
    fn protocol(&self) -> String {
        format!("packets of design {}", self.design().name())
    }

    /// Most payload of a packet that it sends or takes, in bytes; none where others need not know.
    fn packet_payload(&self) -> Option<u64> {
        None
    }

    /// Puts a card on a node.
    ///
    /// # Errors
    /// When what the spec says cannot be on this node.
    fn install(self: Arc<Self>, seat: Seat<'_>) -> Result<Rc<dyn Card>, CardError>;
}

/// A type that only one design has.
pub trait OfDesign: Any {
    /// The design.
    const DESIGN: &'static dyn Design;
}

impl dyn CardSpec {
    /// The spec as that of one design.
    ///
    /// # Errors
    /// When the card is of another design.
    pub fn of<S: CardSpec + OfDesign>(&self) -> Result<&S, WrongDesign> {
        let any: &dyn Any = self;
        any.downcast_ref().ok_or(WrongDesign { found: self.design(), wanted: S::DESIGN })
    }
}

/// A node as a card finds it.
pub struct Seat<'s> {
    /// The node's part of the simulation.
    pub sim: &'s Sim,
    /// How many nodes there are.
    pub nodes: u32,
    /// The host's memory.
    pub memory: &'s Rc<Memory>,
    /// The host's CPUs.
    pub cpus: &'s Rc<Cpus>,
    /// The link; of a node that is alone it leads nowhere.
    pub port: Port,
    /// Most payload of a packet that every card of the network takes, in bytes, where they have said.
    pub packet_payload: Option<u64>,
    /// On behalf of which user the host's operations are.
    pub uid: u32,
    /// Takes what programs on the card print.
    pub log: &'s Log,
    /// Keeps what happens on the node.
    pub recorder: &'s Recorder,
}

/// A card on a node.
pub trait Card: Any {
    /// Its design.
    fn design(&self) -> &'static dyn Design;

    /// What it has counted.
    fn report(&self) -> CardReport {
        CardReport::new(())
    }

    /// Programs on it that failed.
    fn faults(&self) -> Vec<Fault> {
        Vec::new()
    }

    /// Messages that it could not bring to their targets.
    fn undelivered(&self) -> Vec<Undelivered> {
        Vec::new()
    }

    /// Whether it sends packets again that the network lost; none where cards of its design never do.
    fn is_reliable(&self) -> Option<bool> {
        None
    }

    /// Packets that came and that it could not use.
    fn unusable(&self) -> u64 {
        0
    }

    /// Commands of programs on it that it refused.
    fn refused_commands(&self) -> Vec<RefusedCommand> {
        Vec::new()
    }

    /// Messages for which an application's budget had no cycles left: the application, and how many.
    fn unserved(&self) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// Lines that programs on it printed beyond those that it shows.
    fn lines_left_out(&self) -> u64 {
        0
    }

    /// Sends a message to another rank's receive, or this one's. Ends when the buffer may be used again.
    ///
    /// # Errors
    /// When a limit of the card is reached.
    fn send<'c>(self: Rc<Self>, caller: Caller<'c>, message: Outgoing) -> Calling<'c, Result<(), CardError>>;

    /// Posts a receive, and does not wait for its message. Where software matches messages when they are asked for, that
    /// takes nothing, and the receive is what is wanted.
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
    /// When the receive turns out not to have been possible, or its message was given up.
    fn received<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Result<Arrival, CardError>>;

    /// The host has allocated memory, for the program that `send` and `recv` belong to.
    fn adopt(&self, _allocation: &Allocation) {}
}

impl dyn Card {
    /// The card as that of one design.
    ///
    /// # Errors
    /// When it is of another design.
    pub fn of<C: Card + OfDesign>(self: &Rc<Self>) -> Result<Rc<C>, WrongDesign> {
        let any: Rc<dyn Any> = self.clone();
        any.downcast().map_err(|_| WrongDesign { found: self.design(), wanted: C::DESIGN })
    }
}

/// What a card has counted, as its design has it.
#[derive(Clone, Debug)]
pub struct CardReport(Arc<dyn Counted>);

impl CardReport {
    /// What one design counts.
    pub fn new<R: Any + fmt::Debug + PartialEq + Send + Sync>(counted: R) -> CardReport {
        CardReport(Arc::new(counted))
    }

    /// What it has counted, where it is of the design whose cards count so.
    pub fn of<R: Any>(&self) -> Option<&R> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref()
    }
}

impl PartialEq for CardReport {
    fn eq(&self, other: &CardReport) -> bool {
        self.0.is_same(&*other.0)
    }
}

impl Eq for CardReport {}

trait Counted: Any + fmt::Debug + Send + Sync {
    fn is_same(&self, other: &dyn Any) -> bool;
}

impl<R: Any + fmt::Debug + PartialEq + Send + Sync> Counted for R {
    fn is_same(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<R>().is_some_and(|other| self == other)
    }
}

/// A card of another design than the one that something needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongDesign {
    /// Its design.
    pub found: &'static dyn Design,
    /// The design that is needed.
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

/// Why a call of a host's on its card failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardError {
    /// What was asked for is wrong, whatever happened before.
    Input(String),
    /// It cannot be done now, or went wrong.
    Failed(String),
    /// A program on the card failed, and the call waited for what it should have done.
    Trapped(String),
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

impl From<CallError> for CardError {
    fn from(error: CallError) -> CardError {
        match error {
            // Known without asking the card.
            CallError::Rank { .. } => CardError::Input(error.to_string()),
            _ => CardError::Failed(error.to_string()),
        }
    }
}

/// The designs of this crate.
static OWN: [&dyn Design; 3] = [crate::spin::DESIGN, crate::nfp::DESIGN, crate::qnix::DESIGN];
/// Those that were registered.
static REGISTERED: RwLock<Vec<&'static dyn Design>> = RwLock::new(Vec::new());

/// Makes a design known to everything that reads cards, from now on. A second one of the same name takes the place of the
/// first where that was registered too.
///
/// # Panics
/// When it has the name of a design of this crate.
pub fn register(design: &'static dyn Design) {
    assert!(!OWN.contains(&design), "design {} is a design of nicety's", design.name());
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    registered.retain(|known| *known != design);
    registered.push(design);
}

/// All designs: those of this crate, then those that were registered.
pub fn designs() -> Vec<&'static dyn Design> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    OWN.iter().chain(&*registered).copied().collect()
}

/// Reads a card's specification.
///
/// # Errors
/// Everything that is wrong with it, each with its place and what to write instead.
pub fn read(spec: &Spec) -> Result<(Arc<dyn CardSpec>, Listing), SpecErrors> {
    let known = designs();
    let names: Vec<&'static str> = known.iter().map(|design| design.name()).collect();
    let name = spec.design_among(&names)?;
    let reader = spec.reader();
    let card = known.iter().find(|design| design.name() == name).map(|design| design.read(&reader));
    let listing = reader.finish()?;
    Ok((card.expect("one of those that were named"), listing))
}
