//! Handlers on frames of a host's card: [`FrameHandlers`], on Ethernet cards with handler processors.

use super::Host;
use crate::Error;
use nicety_nic::ethernet::{ForHost, HostWork, InstallError, Judged, Node, Rule, RuleReport};
use nicety_nic::spin::{Busy, Due, Handlers, Offered, Processors, load_frame_handler};
use nicety_types::{Duration, NodeId};
use std::cell::Cell;
use std::rc::Rc;

/// The rules and handlers of a host's card. Installing takes no virtual time: it is set-up. Cheap to clone.
#[derive(Clone)]
pub struct FrameHandlers {
    node: Rc<Node>,
}

impl Host {
    /// Handlers on frames of this host's card.
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
    fn handling(&self) -> &nicety_nic::ethernet::Handling {
        self.node.handling().expect("seen when this was made")
    }

    /// Loads a compiled program with a frame handler of this name, or the usual one.
    ///
    /// # Errors
    /// When it is none for the card's cores, or has no such handler.
    pub fn load(&self, elf: &[u8], name: Option<&str>) -> Result<Handlers, Error> {
        Ok(load_frame_handler(elf, name, self.handling().hpu())?)
    }

    /// The address of the card's specification, which programs are loaded for.
    pub(crate) fn spec_address(&self) -> usize {
        std::ptr::from_ref(self.handling().hpu()) as usize
    }

    /// Gives the frames that a rule matches, such as `udp dport=53`, to a frame handler with this state. Returns their number.
    ///
    /// # Errors
    /// When the rule is none, overlaps another one or is too long, or when program or state do not fit.
    pub fn install(&self, rule: &str, handlers: &Handlers, state: &[u8]) -> Result<usize, Error> {
        let rule = Rule::parse(rule).map_err(|error| Error::Input(error.to_string()))?;
        Ok(self.handling().install(rule, handlers, state)?)
    }

    /// The state of handlers, with this number.
    ///
    /// # Errors
    /// When there are none.
    pub fn state(&self, number: usize) -> Result<Vec<u8>, Error> {
        Ok(self.handling().state(number)?)
    }

    /// What became of the frames of each rule.
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

    /// What frames have made each part of the host do so far.
    pub fn host_work(&self) -> Vec<HostWork> {
        self.node.host_work()
    }

    /// Bus time of frames for the host so far.
    pub fn for_host(&self) -> ForHost {
        self.node.for_host()
    }

    /// What has become of the frames of a generator, where they are [watched](FrameHandlers::watch_generator).
    pub fn judged(&self, node: NodeId) -> Option<Judged> {
        self.node.judged(node)
    }

    /// Counts the frames of a generator on their own from now on. It takes all frames that handlers send on for stations that are not
    /// there.
    pub fn watch_generator(&self, node: NodeId) {
        self.node.watch_generator(node);
    }

    /// Busy times of parts of the card so far.
    pub fn busy(&self) -> Busy {
        self.node.busy()
    }

    /// How long a frame of so many bytes has the card's link.
    pub fn wire_interval(&self, bytes: u64) -> Duration {
        self.node.wire_interval(bytes)
    }

    /// Has the card generate frames, as [`Node::offer`].
    pub async fn offer(
        &self,
        target: u32,
        next: impl FnMut(&mut Vec<u8>) -> Option<Due>,
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
