//! Replays packets into the card's port, as fast as the wire takes them. Processes on the card receive the packets, find their
//! source addresses and count them.
//!
//! The replayer writes the card's address into every frame, as `tcprewrite` does. The last frame has the number of packets that
//! the port accepts. The port drops packets with a length field (IEEE 802.3) of 0, or with one above their captured length, which
//! occurs with a snap length. A thread of the host waits for the card's answer: the sum of the trailing ones, and the number of
//! packets of each kind.

use super::stream::{check_sketches, check_workers};
use crate::experiment::{self, Bench, ExperimentError};
use nicety_fabric::{Channel, Label, Packet, Port};
use nicety_kernel::Sim;
use nicety_nic_nfp::{self as nfp, Address, NfpSpec, map};
use nicety_types::{Buffer, Duration, Flight, MessageId, NodeId, Path, Payload};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The target number of the first collector.
const TARGET: u32 = 1;
/// The EtherType of the frame after the last packet, as in `pcsa.c`. It is an experimental one (IEEE 802).
pub const END_OF_REPLAY: u16 = 0x88b5;
/// Number of words in the card's answer: the sum of the trailing ones, and three counts of packets.
const ANSWER: usize = 4;
/// The node number of the card.
const CARD: NodeId = NodeId(0);

/// A packet on the wire, without the destination address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The source address.
    pub station: [u8; 6],
    /// The EtherType, or the length (IEEE 802.3).
    pub kind: u16,
    /// The payload. It is at most as long as the port accepts.
    pub payload: Vec<u8>,
}

/// Numbers of packets that the card has counted, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// IPv4 packets.
    pub ipv4: u32,
    /// IPv6 packets.
    pub ipv6: u32,
    /// Other packets.
    pub other: u32,
}

/// The result of replaying packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The counts of the card.
    pub counted: Counted,
    /// Virtual time from the earliest start of the first packet until the host has received the sum.
    pub time: Duration,
    /// Virtual time at which the last packet had been sent.
    pub sent: Duration,
    /// Busy time of the wire. It is less than `sent` if the card was too slow and stalled the wire.
    pub wire: Duration,
    /// The number of trailing ones, summed over all sketches.
    pub sum: u32,
    /// Number of packets that the card's port dropped.
    pub dropped: u64,
}

/// Replays the packets that `next` returns, and counts them on the whole card. On each island, one context collects the sketches
/// and all others receive packets. Calls of `next` take no virtual time. `elf` is `pcsa.c`, compiled for the instruction set of
/// the card and for `sketches`. If another thread sets `interrupt`, the run ends.
///
/// # Errors
/// When CLS has no room for the sketches, the program does not fit, a process stops, or a channel fails.
pub fn replay(
    spec: &NfpSpec,
    elf: &[u8],
    sketches: u32,
    interrupt: Option<Arc<AtomicBool>>,
    mut next: impl FnMut() -> Option<Frame> + 'static,
) -> Result<Replayed, ExperimentError> {
    check_sketches(spec, sketches)?;
    check_workers(spec)?;
    let sent = Rc::new(Cell::new([Duration::ZERO; 2]));
    let told = sent.clone();
    let least = spec.port.least;
    let count = move |bench: Bench| async move {
        let places = start(&bench, sketches)?;
        let device = bench.card.open();
        let mut path = Path::from(bench.sim.now());
        let waiting = async {
            let channel = device.subscribe(&mut path, TARGET).await?;
            let bytes = device.receive(&mut path, channel, 4 * ANSWER as u32, None).await?;
            let word = |i: usize| u32::from_le_bytes(bytes[4 * i..][..4].try_into().expect("four bytes"));
            Ok(std::array::from_fn::<u32, ANSWER, _>(word))
        };
        let [sum, ipv4, ipv6, other] = bench.beside(&places, waiting).await?;
        let dropped = bench.card.port_counters().damaged;
        Ok((sum, Counted { ipv4, ipv6, other }, dropped, Duration::from_ps(bench.sim.now().ps())))
    };
    let send = move |sim: Sim, port: Port| async move {
        let port = Rc::new(port);
        let listening = port.clone();
        sim.spawn(async move {
            // Only credits arrive from the card.
            loop {
                listening.receive().await;
                listening.free_slot();
            }
        });
        let (mut packets, mut taken) = (0u32, 0u32);
        while let Some(frame) = next() {
            taken += u32::from(launch(&sim, &port, frame, least, packets).await);
            packets += 1;
        }
        told.set([Duration::from_ps(sim.now().ps()), port.busy()]);
        let last = Frame { station: [0; 6], kind: END_OF_REPLAY, payload: taken.to_le_bytes().to_vec() };
        launch(&sim, &port, last, least, packets).await;
    };
    let (sum, counted, dropped, time) = experiment::run_on_link(spec, elf, interrupt, count, send)?;
    let [sent, wire] = sent.get();
    Ok(Replayed { counted, time, sent, wire, sum, dropped })
}

/// Sends a frame, and waits until its last byte is on the wire. Returns whether the card's port accepts the frame.
async fn launch(sim: &Sim, port: &Port, frame: Frame, least: u64, sequence: u32) -> bool {
    let Frame { station, kind, mut payload } = frame;
    payload.resize(payload.len().max(least as usize), 0);
    let payload = Payload::real(Buffer::filled_by(payload.len(), |into| into.copy_from_slice(&payload)));
    let path = Path::from(sim.now());
    let turn = port.turn(Flight::resting(path.clone())).await;
    let message = MessageId { source: sim.node(), sequence: sequence.into() };
    let header = nfp::Frame { destination: Address::of(CARD, 0), source: Address(station), last: kind };
    let taken = header.unpadded(payload.len()).is_some();
    let packet = Packet {
        label: Label { destination: CARD, message, offset: 0 },
        channel: Channel::Data(0),
        header: header.emit(&payload),
        payload,
        path,
    };
    let handed = port.launch(packet, turn);
    sim.until(handed.at()).await;
    taken
}

/// Starts collectors and counters on all microengines. Returns their places.
fn start(bench: &Bench, sketches: u32) -> Result<Vec<(usize, usize)>, ExperimentError> {
    let (nfp, image) = (bench.card.processor(), bench.program.image());
    let (collector, counter) = (image.require("pcsa_collector")?, image.require("pcsa_packets")?);
    let spec = nfp.spec();
    let (merged, arrived) = (map::IMEM, map::IMEM + 4 * sketches);
    let (islands, size) = (spec.islands() as u32, spec.island as u32);
    let mut places = Vec::new();
    for core in 0..spec.cores {
        nfp.load(core, &bench.program, spec.contexts)?;
        for context in 0..spec.contexts {
            match (core % spec.island, context) {
                (0, 0) => nfp.start(core, context, collector, &[TARGET, islands, size, merged, arrived]),
                _ => nfp.start(core, context, counter, &[arrived]),
            }
            places.push((core, context));
        }
    }
    Ok(places)
}
