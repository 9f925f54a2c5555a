//! A run in steady state allocates nothing: no task, event, message or place in line.

use nicety_kernel::{Channel, Config, Credits, Pool, Server, Signal, World, join, race, timeout};
use nicety_types::Duration;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

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

const WARM_UP: u64 = 20_000;
const PACKETS: u64 = 100_000;
/// Maximum number of packets in flight.
const CREDITS: u64 = 64;

/// A message of 136 bytes.
struct Packet {
    number: u64,
    _body: [u64; 16],
}

#[test]
fn packets_cost_no_allocation() {
    for shards in [1, 2] {
        let mut world: World<Packet> = World::new(Config { shards, ..Config::default() });
        let (a, b) = (world.add_node(), world.add_node());
        let (tx, rx) = world.wire(a, b, Duration::from_ns(30));
        let (back, credits_back) = world.wire(b, a, Duration::from_ns(30));
        let (near, far) = (world.sim(a), world.sim(b));

        let (tx, credits) = (std::rc::Rc::new(tx), Credits::new(&near, CREDITS));
        let (sim, link, pool) = (near.clone(), Server::new(&near), Pool::new(&near, 4));
        let (source, free) = (near.clone(), credits.clone());
        near.spawn_program("source", async move {
            let mut rng = source.rng("lengths");
            for number in 0..WARM_UP + PACKETS {
                free.acquire(1).await.forget();
                if number < CREDITS {
                    // The first packets go on the wire at one instant: the maximum number in flight.
                    tx.send(source.now() + Duration::from_ns(30), Packet { number, _body: [number; 16] });
                    continue;
                }
                let (sim, link, pool, tx) = (sim.clone(), link.clone(), pool.clone(), tx.clone());
                let length = Duration::from_ps(rng.below(5_000));
                source.spawn(async move {
                    pool.serve(length).await;
                    let _guard = pool.acquire().await;
                    // The service ends long before this timeout, which is then cancelled.
                    let limit = Duration::from_us(rare(number));
                    timeout(&sim, limit, link.serve(Duration::from_ns(1))).await.unwrap();
                    tx.send(
                        sim.now() + Duration::from_ns(30) + length,
                        Packet { number, _body: [number; 16] },
                    );
                });
            }
        });
        near.spawn(async move {
            loop {
                credits_back.recv().await;
                credits.release(1);
            }
        });

        let (queue, done) = (Channel::new(&far, 8), Signal::new(&far));
        let (sim, input) = (far.clone(), queue.clone());
        far.spawn(async move {
            loop {
                let packet = rx.recv().await;
                let (input, t) = (input.clone(), sim.clone());
                sim.spawn(async move {
                    join(t.delay(Duration::from_ps(packet.number % 700)), t.delay(Duration::from_ns(2)))
                        .await;
                    assert!(input.send(packet).await.is_ok());
                });
            }
        });
        let (sim, notify) = (far.clone(), done.clone());
        far.spawn(async move {
            loop {
                done.wait().await;
            }
        });
        far.spawn_program("sink", async move {
            let mut before = 0;
            for received in 0..WARM_UP + PACKETS {
                let packet = queue.recv().await.unwrap();
                race(sim.delay(Duration::from_ps(300)), sim.delay(Duration::from_us(9))).await;
                notify.notify_one();
                back.send(sim.now() + Duration::from_ns(30), packet);
                if received == WARM_UP {
                    before = ALLOCATIONS.load(Ordering::Relaxed);
                }
            }
            let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
            assert_eq!(made, 0, "{made} allocations for {PACKETS} packets, {shards} shards");
        });
        world.run().unwrap();
        assert!(ALLOCATIONS.load(Ordering::Relaxed) > 0, "the allocator counts");
    }
}

/// Returns time limits of all scales: within the range of the wheels and beyond it.
fn rare(number: u64) -> u64 {
    match number % 3 {
        0 => 50,
        1 => 5_000,
        _ => 1_000_000,
    }
}
