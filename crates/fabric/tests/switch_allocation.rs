//! A switch in steady state allocates nothing for a packet.

mod switch_support;

use nicety_fabric::{Channel, HeaderBytes, Label, Packet};
use nicety_types::{Duration, Flight, MessageId, NodeId, Path, Payload, Time};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use switch_support::{Net, SPIN};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and the block came from the system.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SENDERS: u32 = 6;
/// Number of packets of each sender.
const PACKETS: u64 = 25_000;
/// Number of packets of all senders.
const TOTAL: u64 = PACKETS * SENDERS as u64;
/// When this many packets have arrived, all memory has been used once.
const WARM: u64 = TOTAL / 5;
/// When this many packets have arrived, all senders still send.
const NEAR_END: u64 = TOTAL - 1_000;

/// Incast with full switch buffers and a slow receiver. Every queue has its maximum length.
#[test]
fn packets_through_a_switch_cost_no_allocation() {
    for shards in [1, 3] {
        let mut net = Net::star(SENDERS + 1, shards, &SPIN);
        for host in 0..SENDERS {
            let (sim, port) = (net.world.sim(NodeId(host)), net.ports[host as usize].clone());
            let listening = port.clone();
            sim.spawn(async move {
                loop {
                    // No packet arrives here. The loop collects the credits.
                    listening.receive().await;
                }
            });
            sim.clone().spawn_program("sender", async move {
                for sequence in 0..PACKETS {
                    let path = Path::from(sim.now());
                    let turn = port.turn(Flight::resting(path)).await;
                    let message = MessageId { source: NodeId(host), sequence };
                    let destination = NodeId(SENDERS);
                    let header = HeaderBytes::new(&[0; 64]);
                    let payload = Payload::copy_of(&sequence.to_le_bytes());
                    let path = Path::from(Time::ZERO);
                    let (label, channel) = (Label { destination, message, offset: 0 }, Channel::Data(0));
                    port.launch(Packet { label, channel, header, payload, path }, turn);
                }
            });
        }
        let (sim, port) = (net.world.sim(NodeId(SENDERS)), net.ports[SENDERS as usize].clone());
        sim.clone().spawn_program("receiver", async move {
            let (mut before, mut after) = (0, 0);
            for received in 0..TOTAL {
                drop(port.receive().await);
                sim.delay(Duration::from_ps(200 + received % 7)).await;
                port.free_slot();
                match received {
                    WARM => before = ALLOCATIONS.load(Ordering::Relaxed),
                    // Later the senders finish, and more payload memory is free than at any time before.
                    NEAR_END => after = ALLOCATIONS.load(Ordering::Relaxed),
                    _ => {}
                }
            }
            assert!(before > 0, "the allocator counts");
            assert_eq!(
                after - before,
                0,
                "allocations between packets {WARM} and {NEAR_END}, {shards} shards"
            );
        });
        net.world.run().unwrap();
        let statistics = net.network.statistics();
        assert_eq!(statistics.switches[0].ports[0].peak_buffer, SPIN.switch.buffer, "the buffers were full");
        assert_eq!(statistics.hosts[SENDERS as usize].received_packets, TOTAL);
    }
}
