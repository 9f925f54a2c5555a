//! Handlers for frames on a host's card: [`FrameHandlers`]. The card is an Ethernet card with handler cores.

use super::Host;
use crate::Error;
use nicety_ebpf::translate::Offload;
use nicety_nic_core::CardSpec;
use nicety_nic_core::parts::{DueTime, Offered};
use nicety_nic_ethernet::{
    EthernetSpec, ForHost, FrameDispositions, HandlersSpec, HostWork, InstallError, Node, Rule, RuleReport,
};
use nicety_nic_nfp::{MemoryKind, NfpSpec};
use nicety_nic_processors::{Busy, Handlers, Processors, load_frame_handler};
use nicety_types::{Duration, NodeId};
use serde::Serialize;
use std::cell::Cell;
use std::rc::Rc;

/// The rules and handlers of a host's card. Installing them is set-up: it takes no virtual time. Cheap to clone.
#[derive(Clone)]
pub struct FrameHandlers {
    node: Rc<Node>,
}

/// The numbers of a microengine's contexts in `mhartid`.
const HARTS: usize = 8;

/// The values of a card that an XDP program for its cores is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CardForXdp {
    /// Cores.
    pub cpus: u32,
    /// Bytes of headroom before a frame.
    pub headroom: u32,
    /// Bytes of the longest frame that it sends.
    pub longest: u32,
    /// Receive channels of the host.
    pub queues: u32,
    /// Picoseconds of a cycle.
    pub cycle_ps: u32,
    /// Bytes of memory for maps and data.
    pub memory: u64,
    /// Cores of a cluster, where `mhartid` has the cluster above five bits of the core.
    pub cluster: Option<u32>,
    /// Whether its handlers get frames and return their destinations.
    pub frames: bool,
    /// The limits of the firmware of a network flow processor; none on other cards.
    pub offload: Option<Offload>,
}

impl CardForXdp {
    /// The values of a network flow processor, if it has a firmware for XDP programs.
    pub fn of_flow_processor(spec: &NfpSpec) -> Option<CardForXdp> {
        let xdp = spec.xdp?;
        Some(CardForXdp {
            cpus: (spec.cores * HARTS) as u32,
            headroom: xdp.headroom,
            longest: xdp.longest as u32,
            queues: 1,
            cycle_ps: spec.clock.cycles(1).ps() as u32,
            memory: spec.memory(MemoryKind::Emem).size.into(),
            cluster: None,
            frames: false,
            offload: Some(Offload {
                stack: xdp.stack,
                instructions: xdp.program,
                maps: xdp.maps,
                entries: xdp.entries,
                key: xdp.key,
                value: xdp.value,
                entry: xdp.entry,
                updates: xdp.updates,
            }),
        })
    }

    /// The values of a card of frames.
    pub fn of_frames(spec: &EthernetSpec, handlers: &HandlersSpec) -> CardForXdp {
        let hpu = &handlers.hpu;
        CardForXdp {
            cpus: hpu.cores as u32,
            headroom: handlers.headroom as u32,
            longest: spec.largest_packet() as u32,
            queues: spec.receive.channels as u32,
            cycle_ps: hpu.clock.cycles(1).ps() as u32,
            memory: hpu.memory.into(),
            cluster: None,
            frames: true,
            offload: None,
        }
    }
}

impl Host {
    /// Returns the interface for frame handlers on this host's card.
    ///
    /// # Errors
    /// When the card is of another design, or has no handler cores.
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

    /// The values that an XDP program for this card is built for.
    pub fn for_xdp(&self) -> CardForXdp {
        let spec = self.node.spec();
        CardForXdp::of_frames(spec, spec.handlers.as_ref().expect("seen when this was made"))
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

    /// The handler cores.
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

    /// CPU time of the whole host so far.
    pub fn cpu_time(&self) -> Duration {
        Duration::from_ps(self.node.report().busy_ps)
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
