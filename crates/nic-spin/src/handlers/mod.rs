//! Handlers: from the disposition of a packet to the result of its handler.
//!
//! | part | file |
//! |---|---|
//! | disposition of packets: to handlers, to host memory, or dropped | `disposition.rs` |
//! | commands of handlers: DMA, puts, counters | `commands` |
//! | a handler's result, and its effects | `outcome.rs` |
//! | the runs of handlers, on the handler cores | `run.rs` |

mod commands;
mod disposition;
mod outcome;
mod run;

use crate::spec::SpinSpec;
use nicety_fabric::PacketBox;
use nicety_kernel::{Credits, Sim};
use nicety_nic_core::Log;
use nicety_nic_processors::clusters::packets::Scheduler;
use nicety_nic_processors::{Movers, Processors};
use nicety_types::{Recorder, Time};

/// The state of handlers.
pub(crate) struct HandlerStage {
    processors: Processors,
    scheduler: Scheduler,
    /// Credits for bursts of handlers' DMA: first to the host, then from the host. `None` if the spec does not limit
    /// the bursts.
    host_bursts: Option<Box<[Credits; 2]>>,
}

impl HandlerStage {
    pub(crate) fn new(sim: &Sim, spec: &SpinSpec, log: Log, recorder: &Recorder) -> HandlerStage {
        HandlerStage {
            processors: Processors::new(sim, spec.hpu.clone(), spec.packet_payload, log, recorder),
            scheduler: Scheduler::new(sim, &spec.hpu),
            host_bursts: spec
                .hpu
                .interconnect
                .map(|limits| Box::new([(); 2].map(|()| Credits::new(sim, limits.host_bursts.into())))),
        }
    }

    /// Returns the handler cores.
    pub(crate) const fn processors(&self) -> &Processors {
        &self.processors
    }

    /// Returns the time at which an arriving packet is complete in the packet buffer.
    pub(crate) fn written(&self, packet: &PacketBox) -> Time {
        self.scheduler.written(packet)
    }

    /// Returns the busy times of the units that move packets. `None` without clusters.
    pub(crate) fn movers(&self) -> Option<Movers> {
        self.scheduler.movers()
    }
}
