//! Handlers on frames of a host's card: [`FrameHandlers`], on Ethernet cards with handler processors.

use super::Host;
use crate::Error;
use nicety_nic_core::parts::{DueTime, Offered};
use nicety_nic_ethernet::{ForHost, FrameDispositions, HostWork, InstallError, Node, Rule, RuleReport};
use nicety_nic_processors::{Busy, Handlers, Processors, load_frame_handler};
use nicety_types::{Duration, NodeId};
use std::cell::Cell;
use std::rc::Rc;

/// The rules and handlers of a host's card. An installation is set-up and takes no virtual time. Cheap to clone.
#[derive(Clone)]
pub struct FrameHandlers {
    node: Rc<Node>,
}

impl Host {
    /// Returns the handlers on frames of this host's card.
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

    /// Loads a compiled program with a frame handler of this name or the default one.
    ///
    /// # Errors
    /// When it is not a program for the card's cores, or lacks that handler.
    pub fn load(&self, elf: &[u8], name: Option<&str>) -> Result<Handlers, Error> {
        Ok(load_frame_handler(elf, name, self.handling().hpu())?)
    }

    /// The address of the card's specification, for which programs are loaded.
    pub(crate) fn spec_address(&self) -> usize {
        std::ptr::from_ref(self.handling().hpu()) as usize
    }

    /// Installs a frame handler with this state for the frames of a rule, such as `udp dport=53`. Returns its number.
    ///
    /// # Errors
    /// When the rule is invalid, overlaps another one or is too long, or when program or state do not fit.
    pub fn install(&self, rule: &str, handlers: &Handlers, state: &[u8]) -> Result<usize, Error> {
        let rule = Rule::parse(rule).map_err(|error| Error::Input(error.to_string()))?;
        Ok(self.handling().install(rule, handlers, state)?)
    }

    /// Returns the state of handler `number`.
    ///
    /// # Errors
    /// When the handler does not exist.
    pub fn state(&self, number: usize) -> Result<Vec<u8>, Error> {
        Ok(self.handling().state(number)?)
    }

    /// The frame dispositions of each rule.
    pub fn reports(&self) -> Vec<RuleReport> {
        self.handling().reports()
    }

    /// The handler processors.
    pub fn processors(&self) -> &Processors {
        self.handling().frames()
    }

    /// Frames that handlers have sent out.
    pub fn sent(&self) -> u64 {
        self.handling().sent()
    }

    /// Work of each part of the host for frames so far.
    pub fn host_work(&self) -> Vec<HostWork> {
        self.node.host_work()
    }

    /// Bus time of frames for the host so far.
    pub fn for_host(&self) -> ForHost {
        self.node.for_host()
    }

    /// Frame dispositions of a [watched](FrameHandlers::watch_generator) generator.
    pub fn dispositions(&self, node: NodeId) -> Option<FrameDispositions> {
        self.node.dispositions(node)
    }

    /// Starts to count the frames of a generator separately. The generator takes all frames that handlers forward to unknown
    /// stations.
    pub fn watch_generator(&self, node: NodeId) {
        self.node.watch_generator(node);
    }

    /// Busy times of parts of the card so far.
    pub fn busy(&self) -> Busy {
        self.node.busy()
    }

    /// The time for which a frame of `bytes` bytes occupies the card's link.
    pub fn wire_interval(&self, bytes: u64) -> Duration {
        self.node.wire_interval(bytes)
    }

    /// Makes the card generate frames, as [`Node::offer`].
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
