//! Tests the Ethernet port: the time of a frame, calculated by hand, and frames that no process takes.

use super::messages::card;
use nicety_fabric::Symbol;
use nicety_hpu::Image;
use nicety_hpu::asm::*;
use nicety_kernel::{Config, Sim, World};
use nicety_nic_nfp::{Card, MemoryKind, NfpSpec, Outcome, Program, QueueCounters, map, number};
use nicety_types::Duration;
use std::rc::Rc;

/// Returns code that makes one call with the process's arguments, and then ends.
fn call() -> [u32; 2] {
    [ecall(), ret()]
}

/// A card, and its node's simulation handle.
struct Node {
    sim: Sim,
    card: Rc<Card>,
}

/// Returns two cards on a link, without programs.
fn pair(spec: &NfpSpec) -> (World<Symbol>, [Node; 2]) {
    let mut world = World::new(Config::default());
    let nodes = [world.add_node(), world.add_node()];
    let (a, b) = nicety_fabric::pair(&mut world, nodes[0], nodes[1], spec.node.link);
    let nodes = [(nodes[0], a), (nodes[1], b)]
        .map(|(id, port)| Node { sim: world.sim(id), card: card(&world, spec, id, (port, 2)).0 });
    (world, nodes)
}

fn start(card: &Card, spec: &NfpSpec, words: &[u32], arguments: [u32; 8]) {
    let program: Rc<Program> = Program::new(Image::from_words(map::CODE, words, &spec.core), spec).unwrap();
    card.processor().load(0, &program, 1).unwrap();
    card.processor().start(0, 0, map::CODE, &arguments);
}

fn returned(card: &Card) -> u32 {
    match card.processor().outcome(0, 0) {
        Some(Outcome::Returned(value)) => value,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_frame_takes_its_time() {
    // `in_memory` is the number of cycles until the port has read the memory. The send takes 75 cycles. Then EMEM takes
    // 325 cycles, and a cycle for each further 8 bytes.
    for (head, body, in_memory) in
        [(16u32, 1484u32, 325 + 185), (4, 0, 0), (46, 0, 0), (47, 0, 0), (0, 8, 325)]
    {
        let spec = crate::spec(&[]);
        let (mut world, [a, b]) = pair(&spec);
        a.card.processor().memory(MemoryKind::Emem, 0).poke(64, &[9; 1484]).unwrap();
        let send = [1, map::LOCAL, head, map::EMEM + 64, body, 0, 0, number::ETH_SEND];
        start(&a.card, &spec, &call(), send);
        let receive = [map::LOCAL, 16, map::LOCAL + 32, 0, 0, 0, 0, number::ETH_RECEIVE];
        start(&b.card, &spec, &call(), receive);
        let card = b.card.clone();
        let (sim, arrived) = (b.sim.clone(), 1 + 75 + in_memory);
        b.sim.spawn_program("receiver", async move {
            assert_eq!(card.processor().finished(0, 0).await, Ok(head + body));
            let cycle_ps = |cycle: u64| (cycle * 5000).div_ceil(3);
            // The frame has 38 bytes beside the payload, which is padded to 46 bytes. Each byte takes 800 ps, and the
            // wire 33.4 ns.
            let wire = (u64::from(head + body).max(46) + 38) * 800 + 33_400;
            // The port takes 75 cycles to give the frame to the process. From the next whole cycle on, the process sees
            // it after 10 cycles, and returns after 3 more.
            let given = cycle_ps(arrived) + wire + 125_000;
            let end = (given * 3).div_ceil(5000) + 10 + 3;
            assert_eq!(sim.now().ps(), cycle_ps(end), "{head} and {body} bytes");
        });
        world.run().unwrap();
        assert_eq!(returned(&a.card), 0);
    }
}

#[test]
fn frames_that_no_process_takes_wait_at_their_sender() {
    let spec = crate::spec(&["buffer.packets=2"]);
    let (mut world, [a, b]) = pair(&spec);
    let again = |first: u32| {
        [addi(T0, ZERO, 10), addi(A0, first, 0), ecall(), addi(T0, T0, -1), bne(T0, ZERO, -12), ret()]
    };
    // Register a5 keeps the first argument.
    let send = [1, map::LOCAL, 8, 0, 0, 1, 0, number::ETH_SEND];
    start(&a.card, &spec, &again(A5), send);
    let (a_card, b_card, sim) = (a.card.clone(), b.card.clone(), b.sim.clone());
    b.sim.spawn_program("late", async move {
        sim.delay(Duration::from_us(100)).await;
        assert_eq!((a_card.port_counters().sent, b_card.port_counters().received), (2, 0));
        let receive = [map::LOCAL, 8, map::LOCAL + 32, 0, 0, map::LOCAL, 0, number::ETH_RECEIVE];
        start(&b_card, &spec, &again(A5), receive);
        assert_eq!(b_card.processor().finished(0, 0).await, Ok(8));
        assert_eq!((a_card.port_counters().sent, b_card.port_counters().received), (10, 10));
    });
    world.run().unwrap();
    assert_eq!(returned(&a.card), 0);
}

#[test]
fn frames_that_cannot_be_are_refused() {
    for (arguments, result) in [
        ([0, map::LOCAL, 8, 0, 0, 0, 0, number::ETH_SEND], -1),
        ([2, map::LOCAL, 8, 0, 0, 0, 0, number::ETH_SEND], -1),
        ([1, map::LOCAL, 65, 0, 0, 0, 0, number::ETH_SEND], -2),
        ([1, map::LOCAL, 0, 0, 0, 0, 0, number::ETH_SEND], -2),
        ([1, map::LOCAL, 17, map::EMEM, 1484, 0, 0, number::ETH_SEND], -2),
        ([1, map::LOCAL, 8, map::CLS, 8, 0, 0, number::ETH_SEND], -3),
        ([1, map::LOCAL, 8, map::EMEM - 4, 8, 0, 0, number::ETH_SEND], -3),
        ([map::EMEM, 0, 8, 0, 0, 0, 0, number::ETH_MOVE], -4),
        ([map::LOCAL, 65, map::LOCAL, 0, 0, 0, 0, number::ETH_RECEIVE], -2),
        ([0, 0, 0, 0, 0, 0, 0, number::NODE], 0),
        ([1, 0, 0, 0, 0, 0, 0, number::NODE], 2),
    ] {
        let spec = crate::spec(&[]);
        let (mut world, [a, _]) = pair(&spec);
        start(&a.card, &spec, &call(), arguments);
        world.run().unwrap();
        assert_eq!(returned(&a.card) as i32, result, "{arguments:x?}");
    }
}

/// Sends a frame of eight bytes to each of these queues of the other card.
fn send_to(card: &Card, spec: &NfpSpec, queues: &[u32]) {
    let mut words = Vec::new();
    for &queue in queues {
        words.extend([addi(A0, ZERO, 1), addi(A5, ZERO, queue as i32), ecall()]);
    }
    words.push(ret());
    start(card, spec, &words, [1, map::LOCAL, 8, 0, 0, 0, 0, number::ETH_SEND_TO]);
}

#[test]
fn frames_belong_to_the_process_that_receives_from_their_queue() {
    let spec = crate::spec(&[]);
    let (mut world, [a, b]) = pair(&spec);
    send_to(&a.card, &spec, &[0, 3, 3, 9, 0, 7, 3, 0, 0]);
    // Three processes receive from queue 0. One receives from queue 3, and one opens queue 7 and receives nothing.
    let again = [addi(S0, A0, 0), addi(A0, S0, 0), ecall(), j(-8)];
    let receive = [map::LOCAL, 8, map::LOCAL + 32, 0, 0, 0, 0, number::ETH_RECEIVE];
    for (core, arguments) in [
        (56, receive),
        (57, receive),
        (59, receive),
        (0, [map::LOCAL, 8, map::LOCAL + 32, 3, 0, 0, 0, number::ETH_RECEIVE_FROM]),
    ] {
        let program = Program::new(Image::from_words(map::CODE, &again, &spec.core), &spec).unwrap();
        b.card.processor().load(core, &program, 1).unwrap();
        b.card.processor().start(core, 0, map::CODE, &arguments);
    }
    let open = Program::new(Image::from_words(map::CODE, &call(), &spec.core), &spec).unwrap();
    b.card.processor().load(1, &open, 1).unwrap();
    b.card.processor().start(1, 0, map::CODE, &[7, 0, 0, 0, 0, 0, 0, number::ETH_OPEN]);
    world.run().unwrap();
    let seen: Vec<_> = b.card.queue_counters();
    let of = |queue, received, unclaimed, waiting| QueueCounters { queue, received, unclaimed, waiting };
    assert_eq!(seen, [of(0, 4, 0, 0), of(3, 3, 0, 0), of(7, 0, 0, 1), of(9, 0, 1, 0)]);
    let counters = b.card.port_counters();
    assert_eq!((counters.received, counters.unclaimed, counters.waiting, counters.damaged), (7, 1, 1, 0));
    assert_eq!(a.card.port_counters().sent, 9);
}

#[test]
fn a_closed_queue_takes_no_buffer_place() {
    let spec = crate::spec(&["buffer.packets=2"]);
    let (mut world, [a, b]) = pair(&spec);
    send_to(&a.card, &spec, &[[8; 20], [0; 20]].concat()[..22]);
    world.run().unwrap();
    let counters = b.card.port_counters();
    assert_eq!((counters.unclaimed, counters.waiting), (20, 2));
    assert_eq!(returned(&a.card), 0);
}

#[test]
fn a_process_that_ends_gives_its_frame_up() {
    let spec = crate::spec(&["buffer.packets=1"]);
    let (mut world, [a, b]) = pair(&spec);
    send_to(&a.card, &spec, &[0, 0, 0]);
    let (card, receive) = (b.card.clone(), [map::LOCAL, 8, map::LOCAL + 32, 0, 0, 0, 0, number::ETH_RECEIVE]);
    b.sim.spawn_program("three processes", async move {
        for words in [&call()[..], &[ecall(), lw(A0, 0, ZERO)], &call()] {
            start(&card, &spec, words, receive);
            let ended = card.processor().finished(0, 0).await;
            assert_eq!(ended.is_ok(), words == call(), "{ended:?}");
        }
    });
    world.run().unwrap();
    assert_eq!(b.card.port_counters().received, 3);
}

#[test]
fn the_queue_of_messages_is_not_for_other_processes() {
    for arguments in [
        [map::LOCAL, 8, map::LOCAL + 32, 255, 0, 0, 0, number::ETH_RECEIVE_FROM],
        [map::LOCAL, 8, map::LOCAL + 32, 256, 0, 0, 0, number::ETH_RECEIVE_FROM],
        [255, 0, 0, 0, 0, 0, 0, number::ETH_OPEN],
        [256, 0, 0, 0, 0, 0, 0, number::ETH_OPEN],
        [1, map::LOCAL, 8, 0, 0, 256, 0, number::ETH_SEND_TO],
    ] {
        let spec = crate::spec(&[]);
        let (mut world, [a, _]) = pair(&spec);
        start(&a.card, &spec, &call(), arguments);
        world.run().unwrap();
        assert_eq!(returned(&a.card) as i32, -5, "{arguments:x?}");
    }
}
