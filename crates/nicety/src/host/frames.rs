//! Handlers for frames on a host's card: [`FrameHandlers`]. The card is an Ethernet card with handler processors.

use super::Host;
use crate::Error;
use nicety_nic_core::parts::{DueTime, Offered};
use nicety_nic_ethernet::{ForHost, FrameDispositions, HostWork, InstallError, Node, Rule, RuleReport};
use nicety_nic_processors::{Busy, Handlers, Processors, load_frame_handler};
use nicety_types::{Duration, NodeId};
use std::cell::Cell;
use std::rc::Rc;

/// The rules and handlers of a host's card. Installing them is set-up: it takes no virtual time. Cheap to clone.
#[derive(Clone)]
pub struct FrameHandlers {
    node: Rc<Node>,
}

impl Host {
    /// Returns the interface for frame handlers on this host's card.
    ///
    /// # Errors
    /// When the card is of another design, or has no handler processors.
    pub fn frames(&self) -> Result<FrameHandlers, Error> {
        let node = self.inner.card.of::<Node>()?;
        match node.handling() {
            Some(_) => Ok(FrameHandlers { node }),
            None => Err(InstallError::NoProcessors.into()),
        }
    }
}

impl FrameHandlers {
    fn handling(&self) -> &nicety_nic_ethernet::Handling {
        self.node.handling().expect("seen when this was made")
    }

    /// Loads a compiled program with a frame handler. `name` is the handler, or `None` for the default handler.
    ///
    /// # Errors
    /// When the program is not for the card's cores, or does not have that handler.
    pub fn load(&self, elf: &[u8], name: Option<&str>) -> Result<Handlers, Error> {
        Ok(load_frame_handler(elf, name, self.handling().hpu())?)
    }

    /// The address of the card's specification. It identifies the specification for which a program is loaded.
    pub(crate) fn spec_address(&self) -> usize {
        std::ptr::from_ref(self.handling().hpu()) as usize
    }

    /// Installs a frame handler for the frames that match a rule, such as `udp dport=53`. `state` is the initial state. Returns
    /// the number of the installed handler.
    ///
    /// # Errors
    /// When the rule is invalid, overlaps another rule or is too long. Also when the program or its state does not fit.
    pub fn install(&self, rule: &str, handlers: &Handlers, state: &[u8]) -> Result<usize, Error> {
        let rule = Rule::parse(rule).map_err(|error| Error::Input(error.to_string()))?;
        Ok(self.handling().install(rule, handlers, state)?)
    }

    /// Returns the current state of handler `number`.
    ///
    /// # Errors
    /// When the handler does not exist.
    pub fn state(&self, number: usize) -> Result<Vec<u8>, Error> {
        Ok(self.handling().state(number)?)
    }

    /// Returns the data of the program of handler `number`.
    ///
    /// # Errors
    /// When the handler does not exist.
    pub fn data(&self, number: usize) -> Result<Vec<u8>, Error> {
        Ok(self.handling().data(number)?)
    }

    /// The dispositions of frames, for each rule.
    pub fn reports(&self) -> Vec<RuleReport> {
        self.handling().reports()
    }

    /// The handler processors.
    pub fn processors(&self) -> &Processors {
        self.handling().frames()
    }

    /// The number of frames that handlers have sent to the wire.
    pub fn sent(&self) -> u64 {
        self.handling().sent()
    }

    /// The work that each CPU or soft ring of the host has done for frames so far.
    pub fn host_work(&self) -> Vec<HostWork> {
        self.node.host_work()
    }

    /// The time for which frames for the host have occupied the bus so far.
    pub fn for_host(&self) -> ForHost {
        self.node.for_host()
    }

    /// The dispositions of frames from a [watched](FrameHandlers::watch_generator) generator; `None` if it is not watched.
    pub fn dispositions(&self, node: NodeId) -> Option<FrameDispositions> {
        self.node.dispositions(node)
    }

    /// Starts separate counts for the frames of a generator. From then on, handlers' frames to unknown stations go to this
    /// generator.
    pub fn watch_generator(&self, node: NodeId) {
        self.node.watch_generator(node);
    }

    /// The busy time of each part of the card so far.
    pub fn busy(&self) -> Busy {
        self.node.busy()
    }

    /// The time for which a frame of `bytes` bytes occupies the wire of the card.
    pub fn wire_interval(&self, bytes: u64) -> Duration {
        self.node.wire_interval(bytes)
    }

    /// Makes the card generate frames; see [`Node::offer`].
    pub async fn offer(
        &self,
        target: u32,
        next: impl FnMut(&mut Vec<u8>) -> Option<DueTime>,
        over: &Cell<bool>,
    ) -> Offered {
        self.node.offer(NodeId(target), next, over).await
    }
}

impl From<InstallError> for Error {
    fn from(error: InstallError) -> Error {
        Error::Input(error.to_string())
    }
}
