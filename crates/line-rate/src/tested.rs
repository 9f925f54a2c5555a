//! The cards of a line-rate check: those with handlers of messages, and those with handlers of frames.

use nicety::cards::Card;
use nicety::{CardForXdp, Error, FrameHandlers, HandlerNames, Handlers, Host};
use nicety_fabric::LinkSpec;
use nicety_nic_ethernet::{EthernetSpec, ForHost, HandlersSpec, HostWork, InstallError};
use nicety_nic_processors::{Busy, HpuSpec, Processors, load_frame_handler};
use nicety_nic_spin::{self as spin, SpinSpec};
use nicety_traffic::{Form, Stream, Traffic, TrafficError};
use nicety_types::{Duration, Gap, NodeId};
use std::rc::Rc;

/// Minimum frame length, in bytes without the check sequence.
pub(super) const SHORTEST_FRAME: u64 = 60;
/// Bytes of a frame in addition to its IP packet, with a VLAN tag.
const FRAME_HEADERS: u64 = 18;

/// The lengths of frames on an Ethernet card, in bytes without the check sequence.
pub(super) const fn frame_sizes(spec: &EthernetSpec) -> (u64, u64) {
    (SHORTEST_FRAME, spec.frames.mtu + FRAME_HEADERS)
}

/// The units of a card's handlers.
pub(super) enum Tested<'c> {
    /// Packets of messages.
    Messages(&'c SpinSpec),
    /// Frames.
    Frames(&'c EthernetSpec, &'c HandlersSpec),
}

impl<'c> Tested<'c> {
    /// Returns the card of a spec.
    ///
    /// # Errors
    /// When it has no handlers.
    pub(super) fn of(card: &'c Card) -> Result<Tested<'c>, Error> {
        match card.spec.of::<EthernetSpec>() {
            Err(_) => Ok(Tested::Messages(card.spec.of::<SpinSpec>()?)),
            Ok(spec) => {
                let handlers = spec.handlers.as_ref().ok_or(InstallError::NoProcessors)?;
                Ok(Tested::Frames(spec, handlers))
            }
        }
    }

    pub(super) const fn has_frames(&self) -> bool {
        matches!(self, Tested::Frames(..))
    }

    /// Whether its network resends dropped packets.
    pub(super) const fn sends_again(&self) -> bool {
        matches!(self, Tested::Messages(spec) if spec.transport.reliable)
    }

    /// Whether its packets take time on a wire.
    pub(super) fn takes_time(&self) -> bool {
        match self {
            Tested::Messages(spec) => spec.link.gap != Gap::ZERO || !spec.send_gap.is_zero(),
            Tested::Frames(..) => true,
        }
    }

    pub(super) fn hpu(&self) -> &'c HpuSpec {
        match self {
            Tested::Messages(spec) => &spec.hpu,
            Tested::Frames(_, handlers) => &handlers.hpu,
        }
    }

    pub(super) const fn link(&self) -> &'c LinkSpec {
        match self {
            Tested::Messages(spec) => &spec.link,
            Tested::Frames(spec, _) => &spec.node.link,
        }
    }

    /// The number of its ports, each with its own link.
    pub(super) const fn ports(&self) -> u32 {
        match self {
            Tested::Messages(spec) => spec.ports,
            Tested::Frames(spec, _) => spec.node.ports,
        }
    }

    /// The host's receive channels for its frames.
    pub(super) const fn channels(&self) -> u32 {
        match self {
            Tested::Messages(_) => 0,
            Tested::Frames(spec, _) => spec.receive.channels as u32,
        }
    }

    /// The form of its packets. Handlers for PsPIN find PsPIN's packets; those for FPsPIN, and XDP programs, find frames.
    pub(super) fn form(&self, xdp: bool) -> Form {
        match self {
            Tested::Messages(spec)
                if !xdp && spec.hpu.pspin.is_some_and(|commands| commands.cycle_call.is_none()) =>
            {
                Form::Packet
            }
            _ => Form::Frame,
        }
    }

    /// Opens the traffic in the form of its packets.
    ///
    /// # Errors
    /// As [`Traffic::open`].
    pub(super) fn open(&self, traffic: Traffic, seed: u64, xdp: bool) -> Result<Stream, TrafficError> {
        traffic.formed(self.form(xdp)).open(seed, self.sizes(xdp).1)
    }

    /// The sizes of packets, in bytes.
    pub(super) const fn sizes(&self, xdp: bool) -> (u64, u64) {
        match self {
            Tested::Messages(spec) => (if xdp { SHORTEST_FRAME } else { 1 }, spec.packet_payload),
            Tested::Frames(spec, _) => frame_sizes(spec),
        }
    }

    /// The values for a program of XDP; none where handlers of nicety's interface have messages. A message of PsPIN has a frame,
    /// without room in front of it, and one place in host memory.
    pub(super) fn for_xdp(&self) -> Option<CardForXdp> {
        let spec = match self {
            Tested::Frames(spec, handlers) => return Some(CardForXdp::of_frames(spec, handlers)),
            Tested::Messages(spec) => spec,
        };
        let hpu = &spec.hpu;
        hpu.pspin?;
        Some(CardForXdp {
            cpus: hpu.cores as u32,
            headroom: 0,
            longest: spec.packet_payload as u32,
            queues: 1,
            cycle_ps: hpu.clock.cycles(1).ps() as u32,
            memory: hpu.memory.into(),
            cluster: Some(hpu.memories.cluster as u32),
            frames: false,
            offload: None,
        })
    }

    /// Loads a program with handlers for it.
    ///
    /// # Errors
    /// When it has none, or does not fit.
    pub(super) fn load(&self, elf: &[u8], names: &HandlerNames) -> Result<Handlers, Error> {
        let loaded = match self {
            Tested::Messages(spec) => Handlers::load(elf, names, &spec.hpu)?,
            Tested::Frames(_, handlers) => {
                if let Some(name) = names.header.as_ref().or(names.completion.as_ref()) {
                    return Err(Error::Input(format!(
                        "{name}: frames have only a payload handler; name {name} as that handler, or leave \
                         it out"
                    )));
                }
                load_frame_handler(elf, names.payload.as_deref(), &handlers.hpu)?
            }
        };
        loaded.check(self.hpu())?;
        Ok(loaded)
    }
}

/// A card in a run.
pub(super) enum OnHost {
    Messages(Rc<spin::Card>),
    Frames(FrameHandlers),
}

impl OnHost {
    pub(super) fn of(host: &Host, tested: &Tested<'_>) -> Result<OnHost, Error> {
        Ok(match tested {
            Tested::Messages(_) => OnHost::Messages(host.portals()?.card().clone()),
            Tested::Frames(..) => OnHost::Frames(host.frames()?),
        })
    }

    pub(super) fn processors(&self) -> &Processors {
        match self {
            OnHost::Messages(card) => card.processors(),
            OnHost::Frames(frames) => frames.processors(),
        }
    }

    /// The data of the only program of handlers.
    pub(super) fn program_data(&self) -> Vec<u8> {
        let [_, data] = self.processors().shared_bytes();
        data
    }

    /// CPU time of the host so far; none if no part of it takes packets.
    pub(super) fn cpu_time(&self) -> Option<Duration> {
        match self {
            OnHost::Messages(_) => None,
            OnHost::Frames(frames) => Some(frames.cpu_time()),
        }
    }

    /// The time of a packet that it generates on its link.
    pub(super) fn interval(&self, bytes: u64) -> Duration {
        match self {
            OnHost::Messages(card) => card.wire_interval(bytes),
            OnHost::Frames(frames) => frames.wire_interval(bytes),
        }
    }

    pub(super) fn busy(&self) -> Busy {
        match self {
            OnHost::Messages(card) => card.busy(),
            OnHost::Frames(frames) => frames.busy(),
        }
    }

    /// Packets that it has sent.
    pub(super) fn sent(&self) -> u64 {
        match self {
            OnHost::Messages(card) => card.packets_sent(),
            OnHost::Frames(frames) => frames.sent(),
        }
    }

    /// Starts to count the packets of these senders that the host drops without room.
    pub(super) fn watch(&self, senders: impl Iterator<Item = NodeId>) {
        if let OnHost::Frames(frames) = self {
            senders.for_each(|sender| frames.watch_generator(sender));
        }
    }

    /// Packets of a sender that the host dropped without room.
    pub(super) fn lost_at_host(&self, sender: NodeId) -> u64 {
        match self {
            OnHost::Messages(_) => 0,
            OnHost::Frames(frames) => frames.dispositions(sender).map_or(0, |counts| counts.dropped_at_host),
        }
    }

    /// Packets of a sender that handlers sent to unknown stations.
    pub(super) fn unknown_destination(&self, sender: NodeId) -> u64 {
        match self {
            OnHost::Messages(_) => 0,
            OnHost::Frames(frames) => {
                frames.dispositions(sender).map_or(0, |counts| counts.unknown_destination)
            }
        }
    }

    /// Work of each part of the host for frames; none if no part takes packets.
    pub(super) fn host_work(&self) -> Option<Vec<HostWork>> {
        match self {
            OnHost::Messages(_) => None,
            OnHost::Frames(frames) => Some(frames.host_work()),
        }
    }

    /// Bus time of all packets for the host, over that of the accepted ones.
    pub(super) fn for_host(&self) -> f64 {
        let OnHost::Frames(frames) = self else { return 1.0 };
        let ForHost { carried, left_out } = frames.for_host();
        1.0 + left_out.ps() as f64 / carried.ps().max(1) as f64
    }
}
