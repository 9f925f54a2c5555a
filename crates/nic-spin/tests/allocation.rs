//! In steady state a packet takes no allocation and few events of the simulation. A cluster that is dropped leaves no
//! memory behind.

mod support;

use nicety_fabric::{NetworkSpec, Topology};
use nicety_host::Memory;
use nicety_kernel::{Config, RunError, World};
use nicety_nic_core::Log;
use nicety_nic_spin::Card;
use nicety_types::{NodeId, Recorder};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use support::code::{Code, echo, number, payload, program, put};
use support::*;

struct Counting;

thread_local! {
    // The counts are per thread, since the threads of the test harness may allocate at any time.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: every call is forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE_BYTES.set(LIVE_BYTES.get() + layout.size() as i64);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.set(LIVE_BYTES.get() - layout.size() as i64);
        // SAFETY: the caller upholds the contract of `dealloc`, and the block came from the system.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number of messages of four packets: before the measurement, and while allocations are counted.
const WARM_UP: u64 = 300;
const MEASURED: u64 = 1000;
const LEN: usize = 4096;

/// Returns the number of allocations while rank 0 sends messages of four packets to an entry of rank 1. Rank 0 waits
/// for every tenth message. If `handlers` is given, they process the messages. If `echoed` is true, the packets return as
/// messages.
fn allocations(handlers: Option<(nicety_nic_processors::Handlers, Vec<u8>)>, echoed: bool) -> u64 {
    let mut rig = Rig::new(&["packet.payload=1 KiB"]);
    let made = Rc::new(Cell::new(u64::MAX));
    let note = made.clone();
    rig.program(0, async move |a| {
        let (out, back) = (a.alloc(&pattern(LEN, 1)), a.alloc(&[0; LEN]));
        a.append(counted(&back, 9, a.ct)).await.unwrap();
        let request = a.request(&out, 5);
        a.start().await;
        let mut before = 0;
        for round in 0..WARM_UP + MEASURED {
            if round == WARM_UP {
                before = ALLOCATIONS.get();
            }
            a.put(&request).await.unwrap();
            match echoed {
                true => _ = a.count(a.ct, 4 * (round + 1)).await.unwrap(),
                false => a.sim.delay(nicety_types::Duration::from_us(1)).await,
            }
        }
        note.set(ALLOCATIONS.get() - before);
    });
    rig.program(1, async move |b| {
        let memory = b.alloc(&[0; LEN]);
        let me = counted(&memory, 5, b.ct);
        match handlers {
            Some((handlers, state)) => b.append_with(me, &handlers, &state).await.unwrap(),
            None => b.append(me).await.unwrap(),
        };
        b.count(b.ct, WARM_UP + MEASURED).await.unwrap();
    });
    rig.run();
    assert_eq!(rig.failures(), []);
    made.get()
}

/// Returns a handler that stores its packet by DMA. The DMA is blocking or non-blocking.
fn store(blocking: bool) -> Code {
    use nicety_hpu::asm::*;
    Code::enter()
        .with(&[lw(A1, 8, A0), lw(A2, 4, A0), lw(A0, 0, A0), addi(SP, SP, -16), mv(A4, SP)])
        .with(if blocking { &[0x0000_0713] } else { &[] }) // li a4, 0
        .small(A3, 0)
        .command(number::DMA_TO_HOST)
        .returns(0)
}

#[test]
fn packets_cost_no_allocation_and_clusters_no_memory() {
    // This is a single test, because all tests of a process share the counters.
    let all = program(
        Some(Code::enter().returns(2)),
        Some(store(true)),
        Some(Code::enter_completion().publish(8).returns(0)),
    );
    let fetch = {
        use nicety_hpu::asm::*;
        Code::enter()
            .small(A0, 0)
            .at(A1, 64)
            .small(A2, 64)
            .small(A3, 0)
            .with(&[addi(SP, SP, -16), mv(A4, SP)])
            .command(number::DMA_FROM_HOST)
            .returns(0)
    };
    for (name, handlers, echoed) in [
        ("deposit", None, false),
        ("handlers that store", Some((payload(store(true)), vec![])), false),
        ("handlers that store without waiting", Some((payload(store(false)), vec![])), false),
        ("handlers that fetch", Some((payload(fetch), vec![0; 256])), false),
        ("all three handlers", Some((all, vec![0; 64])), false),
        ("handlers that answer", Some((payload(echo()), put(9, 0, 0, false))), true),
    ] {
        let made = allocations(handlers, echoed);
        assert_eq!(made, 0, "{made} allocations for {} packets: {name}", 4 * MEASURED);
    }

    let mut live = Vec::new();
    for _ in 0..6 {
        for limit in 0..20 {
            // The cluster is dropped at an arbitrary time, with programs, packets and handlers in flight.
            let mut rig = Rig::with_config(
                &["hpu.memory=64 KiB"],
                Config { max_time: Some(after(limit * 300_000)), ..Config::default() },
            );
            rig.program(0, async |a| {
                let request = a.request(&a.alloc(&pattern(65_536, 1)), 5);
                a.start().await;
                for _ in 0..4 {
                    a.put(&request).await.unwrap();
                }
                a.count(a.ct, 1).await.unwrap();
            });
            rig.program(1, async |b| {
                let me = entry(&b.alloc(&[0; 65_536]), 5);
                b.append_with(me, &payload(Code::enter().spin(50).returns(0)), &[]).await.unwrap();
            });
            assert!(matches!(rig.try_run(), Err(RunError::TimeLimit { .. })));
        }
        live.push(LIVE_BYTES.get());
    }
    let growth = live[5] - live[1];
    assert!(growth.abs() < 4096, "bytes left after each 20 clusters: {live:?}");
}

/// Returns the number of simulation events per packet of a single message in flight. If `handlers` is given, they
/// process the message.
fn events_of_a_packet(handlers: Option<&nicety_nic_processors::Handlers>) -> u64 {
    let events = |packets: usize| {
        let mut rig = Rig::new(&["packet.payload=1 KiB"]);
        rig.program(0, async move |a| {
            let request = a.request(&a.alloc(&pattern(1024 * packets, 1)), 5);
            a.start().await;
            a.put(&request).await.unwrap();
        });
        let handlers = handlers.cloned();
        rig.program(1, async move |b| {
            let me = counted(&b.alloc(&vec![0; 1024 * packets]), 5, b.ct);
            match handlers {
                Some(handlers) => b.append_with(me, &handlers, &[]).await.unwrap(),
                None => b.append(me).await.unwrap(),
            };
            b.count(b.ct, 1).await.unwrap();
        });
        rig.run().events
    };
    (events(64) - events(32)) / 32
}

#[test]
fn a_packet_takes_few_events() {
    let found = [None, Some(payload(store(true)))].map(|handlers| events_of_a_packet(handlers.as_ref()));
    // A packet from memory to memory takes five events. A handler's start, its command and its end take four more. A
    // return in the middle of the handler's last slice is no event.
    // middle of its last slice is no event.
    assert_eq!(found, [5, 9]);
}

/// Returns the memory of an idle host in a fat tree, in bytes. It includes the host's card, its link and its share of
/// the switches.
fn idle_bytes(hosts: u32) -> i64 {
    let before = LIVE_BYTES.get();
    let spec = Arc::new(spec(&[]));
    let mut world = World::new(Config::default());
    let ids: Vec<NodeId> = (0..hosts).map(|_| world.add_node()).collect();
    let parts = NetworkSpec { link: spec.link, switch: spec.switch, router: spec.router };
    let tree: Topology = "fat-tree".parse().expect("a topology");
    let (ports, _network) = tree.build(&mut world, &ids, &parts).expect("so many hosts fit");
    let log: Log = Arc::new(|_| ());
    let card = |(&id, port): (&NodeId, _)| {
        let memory = Rc::new(Memory::new(spec.host.memory));
        Card::install(&world.sim(id), spec.clone(), memory, port, hosts, log.clone(), &Recorder::off())
    };
    let _cards: Vec<Rc<Card>> = ids.iter().zip(ports).map(card).collect();
    world.run().expect("there are no programs");
    (LIVE_BYTES.get() - before) / i64::from(hosts)
}

#[test]
fn an_idle_node_takes_little_memory() {
    let bytes = idle_bytes(1024);
    // 100 000 idle hosts, with their cards, links and switches, must fit in 2 GB.
    assert!(bytes < 14_600, "an idle node of 1024 takes {bytes} bytes");
}
