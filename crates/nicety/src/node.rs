//! A node's card, which is of one of several designs, and what a node's report takes from it.

use crate::Error;
use crate::processes::{MicroengineReport, PortReport, ProcessTable};
use nicety_host::KernelCounters;
use nicety_nic::nfp::ChannelCounters;
use nicety_nic::qnix::{self, QnixError};
use nicety_nic::spin::{
    ApplicationReport, Card, Fault, HandlerStatistics, Printed, RefusedCommand, Unusable,
};
use nicety_nic::transport::{TransportStatistics, Undelivered};
use nicety_nic::{Design, WrongDesign};
use nicety_portals::Statistics;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The card of a node. Cheap to clone.
#[derive(Clone)]
pub(crate) enum NodeCard {
    /// Portals 4 with packet handlers.
    Spin(Rc<Card>),
    /// Microengines, and the processes on them.
    Nfp(Rc<ProcessTable>),
    /// Virtual network interfaces, and the processes that have them.
    Qnix(Rc<QnixNode>),
}

/// The process of a host that `send` and `recv` belong to.
pub(crate) const OWN_PROCESS: u32 = 0;

/// A card with virtual network interfaces, and the processes of its host.
pub(crate) struct QnixNode {
    card: Rc<qnix::Card>,
    processes: RefCell<BTreeMap<u32, Rc<qnix::Process>>>,
    /// The interface of the process that `send` and `recv` belong to.
    own: u32,
}

impl QnixNode {
    /// Registers the host's own process, with the largest Buffer Pool there may be.
    pub(crate) fn set_up(card: &Rc<qnix::Card>) -> Result<QnixNode, QnixError> {
        let process = Rc::new(qnix::Process::new(card, OWN_PROCESS));
        let own = process.set_up(card.spec().limits.pool)?;
        let processes = RefCell::new(BTreeMap::from([(OWN_PROCESS, process)]));
        Ok(QnixNode { card: card.clone(), processes, own })
    }

    pub(crate) const fn card(&self) -> &Rc<qnix::Card> {
        &self.card
    }

    pub(crate) const fn own_interface(&self) -> u32 {
        self.own
    }

    /// A process, by its number.
    pub(crate) fn process(&self, number: u32) -> Rc<qnix::Process> {
        let mut processes = self.processes.borrow_mut();
        let new = || Rc::new(qnix::Process::new(&self.card, number));
        processes.entry(number).or_insert_with(new).clone()
    }
}

/// What a card has counted. What its design does not have is zero, and empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CardReport {
    pub(crate) portals: Statistics,
    pub(crate) handlers: HandlerStatistics,
    pub(crate) applications: Vec<ApplicationReport>,
    pub(crate) refused_commands: Vec<RefusedCommand>,
    pub(crate) printed: Printed,
    pub(crate) transport: TransportStatistics,
    pub(crate) unusable: Unusable,
    pub(crate) microengines: Vec<MicroengineReport>,
    pub(crate) channels: ChannelCounters,
    pub(crate) port: PortReport,
    pub(crate) interfaces: qnix::Statistics,
    pub(crate) kernel: KernelCounters,
}

impl NodeCard {
    /// Its design.
    pub(crate) fn design(&self) -> Design {
        match self {
            NodeCard::Spin(_) => Design::Portals,
            NodeCard::Nfp(_) => Design::Nfp,
            NodeCard::Qnix(_) => Design::Qnix,
        }
    }

    fn wrong(&self, wanted: Design) -> Error {
        WrongDesign { found: self.design(), wanted }.into()
    }

    /// The card with a Portals interface.
    pub(crate) fn spin(&self) -> Result<&Rc<Card>, Error> {
        match self {
            NodeCard::Spin(card) => Ok(card),
            _ => Err(self.wrong(Design::Portals)),
        }
    }

    /// The card with processes.
    pub(crate) fn nfp(&self) -> Result<&Rc<ProcessTable>, Error> {
        match self {
            NodeCard::Nfp(card) => Ok(card),
            _ => Err(self.wrong(Design::Nfp)),
        }
    }

    /// The card with interfaces for processes.
    pub(crate) fn qnix(&self) -> Result<&Rc<QnixNode>, Error> {
        match self {
            NodeCard::Qnix(node) => Ok(node),
            _ => Err(self.wrong(Design::Qnix)),
        }
    }

    /// Handlers or processes that failed.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        match self {
            NodeCard::Spin(card) => card.faults(),
            NodeCard::Nfp(card) => card.faults(),
            NodeCard::Qnix(_) => Vec::new(),
        }
    }

    /// Messages that it could not bring to their targets.
    pub(crate) fn undelivered(&self) -> Vec<Undelivered> {
        match self {
            NodeCard::Spin(card) => card.undelivered(),
            NodeCard::Nfp(_) | NodeCard::Qnix(_) => Vec::new(),
        }
    }

    /// Whether it sends packets again that the network lost; none where cards of its design never do.
    pub(crate) fn is_reliable(&self) -> Option<bool> {
        match self {
            NodeCard::Spin(card) => Some(card.spec().transport.reliable),
            NodeCard::Nfp(_) | NodeCard::Qnix(_) => None,
        }
    }

    /// Packets that came and that it could not use.
    pub(crate) fn unusable(&self) -> u64 {
        match self {
            NodeCard::Spin(card) => card.unusable().total(),
            NodeCard::Nfp(processes) => processes.port().unusable(),
            NodeCard::Qnix(node) => node.card().statistics().unusable,
        }
    }

    /// What it has counted.
    pub(crate) fn report(&self) -> CardReport {
        match self {
            NodeCard::Spin(card) => CardReport {
                portals: card.statistics(),
                handlers: card.handler_statistics(),
                applications: card.applications(),
                refused_commands: card.refused_commands(),
                printed: card.printed(),
                transport: card.transport_statistics(),
                unusable: card.unusable(),
                ..CardReport::default()
            },
            NodeCard::Nfp(processes) => CardReport {
                microengines: processes.microengines(),
                channels: processes.card().channel_counters(),
                port: processes.port(),
                kernel: processes.card().kernel_counters(),
                ..CardReport::default()
            },
            NodeCard::Qnix(node) => CardReport {
                interfaces: node.card().statistics(),
                kernel: node.card().kernel().counters(),
                ..CardReport::default()
            },
        }
    }
}
