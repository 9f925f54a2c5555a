//! The Ethernet implementation of the card design seam.

use super::card::{Card, Statistics};
use super::messages::{Messenger, Posted};
use super::net::Net;
use super::spec::{EthernetSpec, read_ethernet};
use super::stages;
use crate::counters::{CardReport, Counters};
use crate::design::{self, CardError, CardSpec, Design, OfDesign, Seat};
use crate::messages::{Arrival, Caller, Calling, Outgoing, PostedReceive, Wanted};
use crate::sections::NodeSpec;
use nicety_host::threads::{Account, Group};
use nicety_kernel::describe;
use nicety_spec::Reader;
use nicety_types::Stage;
use schemars::JsonSchema;
use serde::Serialize;
use std::rc::Rc;
use std::sync::Arc;

/// Ethernet cards below TCP.
pub(crate) const DESIGN: &dyn Design = &Ethernet;

struct Ethernet;

/// CPU time of a function group.
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
    pub first_misses: u64,
    /// Of these, loads that missed the shared cache, too.
    pub second_misses: u64,
}

/// A host's Ethernet card, its protocols and its threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "EthernetReport")]
pub struct Report {
    /// Counters of the card.
    #[serde(flatten)]
    pub card: Statistics,
    /// Segments that TCP sent again.
    pub retransmissions: u64,
    /// Frames that the protocols dropped.
    pub dropped: u64,
    /// Frames dropped because too many waited for a kernel thread.
    pub backlog_full: u64,
    /// CPU time by function group.
    pub groups: Vec<GroupReport>,
    /// Context switches of the host.
    pub context_switches: u64,
    /// Calls from one CPU of the host to another.
    pub cross_calls: u64,
    /// Interrupts that the host's CPUs took.
    pub interrupts: u64,
}

impl Counters for Report {}

/// An Ethernet card, and the network of its host.
pub struct Node {
    net: Rc<Net>,
    messenger: Messenger,
}

impl Node {
    fn report(&self) -> Report {
        let net = &self.net;
        let account: Account = net.threads.account();
        let group = |group: Group| {
            let used = account.group(group);
            GroupReport {
                group: group.name().to_owned(),
                busy_ps: used.busy.ps(),
                instructions: used.instructions,
                first_misses: used.first_misses,
                second_misses: used.second_misses,
            }
        };
        let stack = net.stack.borrow();
        Report {
            card: net.card.statistics(),
            retransmissions: stack.counters().retransmissions,
            dropped: stack.counters().dropped.iter().sum(),
            backlog_full: net.rings.iter().map(|ring| ring.dropped.get()).sum(),
            groups: Group::ALL.map(group).to_vec(),
            context_switches: account.context_switches,
            cross_calls: account.cross_calls,
            interrupts: account.interrupts,
        }
    }
}

impl Design for Ethernet {
    fn name(&self) -> &'static str {
        "ethernet"
    }

    fn example(&self) -> &'static str {
        "niagara2-niu"
    }

    fn interface(&self) -> &'static str {
        "sockets"
    }

    fn stages(&self) -> Vec<Stage> {
        stages::STAGES.to_vec()
    }

    fn read(&self, reader: &Reader<'_>) -> Arc<dyn CardSpec> {
        Arc::new(read_ethernet(reader))
    }
}

impl OfDesign for EthernetSpec {
    const DESIGN: &'static dyn Design = DESIGN;
}

impl CardSpec for EthernetSpec {
    fn design(&self) -> &'static dyn Design {
        DESIGN
    }

    fn node(&self) -> NodeSpec {
        self.node
    }

    fn protocol(&self) -> String {
        "TCP over Ethernet".to_owned()
    }

    fn install(self: Arc<Self>, seat: Seat<'_>) -> Result<Rc<dyn design::Card>, CardError> {
        let Seat { sim, nodes, memory, port, recorder, .. } = seat;
        let card = Card::install(sim, self.clone(), memory, port, nodes, recorder)?;
        let net = Net::start(sim, self, card);
        let messenger = Messenger::start(&net, memory);
        Ok(Rc::new(Node { net, messenger }))
    }
}

impl OfDesign for Node {
    const DESIGN: &'static dyn Design = DESIGN;
}

impl design::Card for Node {
    fn design(&self) -> &'static dyn Design {
        DESIGN
    }

    fn report(&self) -> CardReport {
        CardReport::new(Node::report(self))
    }

    fn is_reliable(&self) -> Option<bool> {
        Some(true)
    }

    fn send<'c>(self: Rc<Self>, caller: Caller<'c>, message: Outgoing) -> Calling<'c, Result<(), CardError>> {
        Box::pin(async move {
            caller.timed("send", async |path: &mut _| self.messenger.send(message, path).await).await
        })
    }

    fn post_receive<'c>(
        self: Rc<Self>,
        _caller: Caller<'c>,
        wanted: Wanted,
    ) -> Calling<'c, Result<PostedReceive, CardError>> {
        Box::pin(async move { Ok(PostedReceive::new(self.messenger.post(wanted))) })
    }

    fn received<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Result<Arrival, CardError>> {
        let posted: Rc<Posted> = posted.of();
        Box::pin(async move {
            let what = posted.what();
            let wait = async |path: &mut _| self.messenger.received(&posted, path).await;
            describe(move || what.clone(), caller.timed("wait for a receive", wait)).await
        })
    }
}
