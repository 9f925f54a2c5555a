//! Sends forged packets to the network flow processor: Ethernet frames, and frames with forged envelopes of messages
//! between hosts.

use nicety_fabric::Symbol;
use nicety_host::{Cpus, Memory};
use nicety_kernel::World;
use nicety_nic_core::Tags;
use nicety_nic_nfp::{
    Card, MESSAGE_QUEUE, MessageError, Messenger, MessengerCounters, NfpSpec, PortCounters, Slot,
};
use nicety_nic_testing::forger::{self, Forged, forged, noise, number};
use nicety_spec::{SHIPPED, Spec, parse_override};
use nicety_types::{NodeId, Path, Payload, Recorder, Time};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Returns a frame with its checksum.
fn frame(queue: u8, source: u8, len: u16, payload: &[u8]) -> Vec<u8> {
    let mut header = vec![2, queue, 0, 0, 0, 0, 2, 0, 0, 0, 0, source];
    header.extend(len.to_be_bytes());
    let mut crc = crc32fast::Hasher::new();
    crc.update(&header);
    crc.update(payload);
    header.extend(crc.finalize().to_le_bytes());
    header
}

/// Returns a valid frame, padded to 46 bytes.
fn good(queue: u8, source: u8, bytes: &[u8]) -> Forged {
    let mut payload = bytes.to_vec();
    payload.resize(bytes.len().max(46), 0);
    Forged {
        header: frame(queue, source, bytes.len() as u16, &payload),
        payload: Payload::copy_of(&payload),
        control: false,
        pause: 0,
    }
}

/// Runs a card and a forger. Returns the counters of the port and of messages, and the results of receives.
fn run(packets: Vec<Forged>) -> (PortCounters, MessengerCounters, Vec<Result<u64, MessageError>>) {
    let overrides = ["buffer.packets=4"].map(|text| parse_override(text).unwrap());
    let spec = Spec::load("nfp-4000", &overrides, SHIPPED).unwrap();
    let spec = Arc::new(
        nicety_nic_core::read(&spec, &[nicety_nic_nfp::DESIGN]).unwrap().0.of::<NfpSpec>().unwrap().clone(),
    );
    let (mut world, port, other): (World<Symbol>, _, _) = forger::link(spec.node.link);
    let (sim, recorder) = (world.sim(NodeId(0)), Recorder::off());
    let memory = Rc::new(Memory::new(spec.node.host.memory));
    let cpus = Rc::new(Cpus::new(&sim, spec.node.host, &recorder));
    let card =
        Card::install(&sim, spec, memory.clone(), &cpus, (Some(port), 2), (&Slot::default(), &recorder));
    let messenger = Messenger::install(&sim, &card, 2).unwrap();
    // The host posts three receives, and sends eager messages and messages by rendezvous.
    let results = Rc::new(RefCell::new(Vec::new()));
    for bytes in [0u64, 100, 200_000] {
        let address = memory.allocate(bytes.max(1)).unwrap().address();
        let posted = messenger.post(&Path::from(Time::ZERO), None, Tags::ANY, address, bytes).unwrap();
        let (receiver, results) = (messenger.clone(), results.clone());
        sim.spawn(async move {
            let result = receiver.received(&mut Path::from(Time::ZERO), posted).await;
            results.borrow_mut().push(result.map(|arrival| arrival.bytes));
        });
        let sender = messenger.clone();
        sim.spawn(async move {
            let _ = sender.send(&mut Path::from(Time::ZERO), 1, 0, address, bytes).await;
        });
    }
    forger::send(&world, other, packets, 4);
    world.run().unwrap_or_else(|error| panic!("{error}"));
    let results = results.borrow().clone();
    (card.port_counters(), messenger.counters(), results)
}

/// Generates a frame's payload for a forwarding process: a head of small numbers, then random bytes.
fn told() -> impl Strategy<Value = Vec<u8>> {
    let head = (0..6u8, 0..9u8, 0..9u8, 0..3u8, number(), number());
    (head, prop::collection::vec(any::<u8>(), 0..60)).prop_map(
        |((kind, lane, back, slot, at, chunk), rest)| {
            [&[kind, lane, back, slot][..], &(at as u32).to_le_bytes(), &(chunk as u32).to_le_bytes(), &rest]
                .concat()
        },
    )
}

/// Returns an envelope with these fields and eager bytes. `id` is the number of the message.
fn envelope(kind: u32, tag: u32, bytes: u32, id: u32, lane: u32) -> Vec<u8> {
    let words = [1, kind, tag, bytes, id, lane].map(u32::to_le_bytes).concat();
    [words, vec![5; 32]].concat()
}

fn sealed() -> impl Strategy<Value = Forged> {
    let envelope = (0..6u32, number(), number(), number(), number())
        .prop_map(|(kind, t, b, i, l)| envelope(kind, t as u32, b as u32, i as u32, l as u32));
    let bytes = prop_oneof![told(), envelope, prop::collection::vec(any::<u8>(), 1..1500)];
    let queue = prop_oneof![8 => Just(MESSAGE_QUEUE), 1 => 1..4u8];
    (queue, prop_oneof![9 => Just(1u8), 1 => any::<u8>()], bytes, 0..30_000u64)
        .prop_map(|(queue, source, bytes, pause)| Forged { pause, ..good(queue, source, &bytes) })
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(48))]

    #[test]
    fn forged_frames_are_counted(
        packets in prop::collection::vec(
            prop_oneof![
                1 => forged(noise(), prop::collection::vec(any::<u8>(), 0..1600)),
                6 => sealed(),
            ],
            0..60,
        )
    ) {
        run(packets);
    }
}

#[test]
fn frames_that_are_none_are_damaged() {
    let of = |header: Vec<u8>, payload: Vec<u8>| Forged {
        header,
        payload: Payload::copy_of(&payload),
        ..good(0, 1, &[0; 46])
    };
    let full = vec![0; 46];
    let frames = vec![
        of(vec![], full.clone()),
        of(vec![2; 13], full.clone()),
        of(frame(0, 1, 46, &full)[..17].to_vec(), full.clone()),
        of([frame(0, 1, 46, &full), vec![0]].concat(), full.clone()),
        of(frame(0, 1, 47, &full), full.clone()),
        of(frame(0, 1, 0, &full), full.clone()),
        of(frame(MESSAGE_QUEUE, 0, 46, &full), full.clone()),
        of(frame(MESSAGE_QUEUE, 2, 46, &full), full.clone()),
        of(frame(0, 1, 46, &[1; 46]), full.clone()),
        of(frame(0, 1, 1501, &[0; 1501]), vec![0; 1501]),
        Forged { control: true, ..of(frame(0, 1, 46, &full), full.clone()) },
        Forged { payload: Payload::phantom(46), ..of(frame(0, 1, 46, &full), full) },
    ];
    let (port, ..) = run(frames);
    // The packets include eight more invalid frames.
    assert_eq!((port.damaged, port.waiting, port.unclaimed), (12 + 8, 0, 0));
}

#[test]
fn invalid_envelopes_are_refused() {
    let late = |bytes: &[u8]| Forged { pause: 300_000, ..good(MESSAGE_QUEUE, 1, bytes) };
    let (port, refused, results) = run(vec![
        // A program's own frame may begin with these words, which a former version took for an envelope.
        late(&[[1u32; 1].map(u32::to_le_bytes).concat(), vec![0; 56]].concat()),
        late(&[1, 0, 0, 0]),
        late(&envelope(0, 0, 0, 1, 0)),
        late(&envelope(1, 0, 33, 2, 0)),
        late(&envelope(2, 0, 32, 3, 0)),
        late(&envelope(3, 0, 0, 4, 0)),
        late(&envelope(4, 0, 0, 1000, 0)),
        // These are a valid message and its duplicate.
        late(&envelope(1, 0, 0, 5, 0)),
        late(&envelope(1, 0, 0, 5, 0)),
        // These are chunks, slots and ends for lanes that were never granted.
        late(&[2, 9, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 1, 1, 1]),
        late(&[2, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 1, 1, 1]),
        late(&[3, 0, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        late(&[3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        late(&[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        late(&[9; 12]),
        // This message is longer than its receive.
        late(&envelope(2, 0, 101, 6, 0)),
    ]);
    assert_eq!(port.unclaimed, 0);
    assert_eq!((refused.frames, refused.envelopes), (2 + 6, 5 + 1));
    assert_eq!(results[0], Ok(0));
    assert!(matches!(results[1], Err(MessageError::NoRoom { .. })), "{results:?}");
}
