//! The Ethernet port: a frame's time worked out by hand, and what happens where nobody takes what comes.

use super::messages::card;
use nicety_fabric::Symbol;
use nicety_hpu::Image;
use nicety_hpu::asm::*;
use nicety_kernel::{Config, Sim, World};
use nicety_nic::nfp::{Card, MemoryKind, NfpSpec, Outcome, Program, map, number};
use nicety_types::Duration;
use std::rc::Rc;

/// One call, whose arguments the process was started with, and the end.
fn call() -> [u32; 2] {
    [ecall(), ret()]
}

/// A card and its node's handle on time.
struct Node {
    sim: Sim,
    card: Rc<Card>,
}

/// Two cards on a link, with nothing on them.
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
    // Cycles until the port has read the memory: 75 to have it sent, then EMEM, 325 and a cycle for each further 8 bytes.
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
            // 38 bytes beside the payload, which is filled up to 46; 800 ps a byte, and the wire.
            let wire = (u64::from(head + body).max(46) + 38) * 800 + 33_400;
            // 75 cycles to give it away; from the next whole cycle on 10 until the process sees it, and 3 to return.
            let given = cycle_ps(arrived) + wire + 125_000;
            let end = (given * 3).div_ceil(5000) + 10 + 3;
            assert_eq!(sim.now().ps(), cycle_ps(end), "{head} and {body} bytes");
        });
        world.run().unwrap();
        assert_eq!(returned(&a.card), 0);
    }
}

#[test]
fn what_nobody_takes_waits_at_its_sender() {
    let spec = crate::spec(&["buffer.packets=2"]);
    let (mut world, [a, b]) = pair(&spec);
    let again = |first: u32| {
        [addi(T0, ZERO, 10), addi(A0, first, 0), ecall(), addi(T0, T0, -1), bne(T0, ZERO, -12), ret()]
    };
    // a5 keeps the first argument.
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
