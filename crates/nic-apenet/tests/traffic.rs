//! Random registrations, puts, gets, sends and deregistrations between hosts. Every byte must be correct, no byte
//! outside registered memory may be written, and no run may deadlock. A run is the same in any number of shards.

use super::support::{Rig, User};
use nicety_nic_apenet::{ApenetError, EventKind, Region, Statistics};
use nicety_types::{Duration, Time};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// Size of a slot in bytes. Each host's memory for puts has several slots.
const SLOT: u64 = 10_000;
const SLOTS: u64 = 6;
const BEGIN: Time = Time::from_ps(1_000_000_000);
/// Address and size in bytes of a host's memory. They are the same on all hosts, because all hosts make the same
/// allocations.
type Memory = (u64, u64);

#[derive(Clone, Debug)]
enum Step {
    Put {
        to: u32,
        slot: u64,
        offset: u64,
        bytes: u64,
    },
    Get {
        from: u32,
        slot: u64,
        offset: u64,
        bytes: u64,
    },
    Send {
        to: u32,
        bytes: u64,
    },
    /// Deregisters a slot of this host, or registers it again.
    Toggle {
        slot: u64,
    },
    Pause {
        us: u64,
    },
}

fn step(hosts: u32) -> impl Strategy<Value = Step> {
    let part = || (0..hosts, 0..SLOTS, 0..SLOT + 500, 0..SLOT);
    prop_oneof![
        4 => part().prop_map(|(to, slot, offset, bytes)| Step::Put { to, slot, offset, bytes }),
        3 => part().prop_map(|(from, slot, offset, bytes)| Step::Get { from, slot, offset, bytes }),
        2 => (0..hosts, 0..5000u64).prop_map(|(to, bytes)| Step::Send { to, bytes }),
        2 => (0..SLOTS).prop_map(|slot| Step::Toggle { slot }),
        1 => (0..40u64).prop_map(|us| Step::Pause { us }),
    ]
}

/// Returns the byte that fills everything that a host writes.
fn own(rank: u32) -> u8 {
    100 + rank as u8
}

/// A host's memory: slots for regions with 1000 bytes between neighbours, and a buffer for the host's own transfers.
struct Home {
    user: User,
    slots: Memory,
    from: Memory,
    regions: RefCell<Vec<Option<Region>>>,
}

impl Home {
    async fn step(&self, hosts: u32, step: &Step) {
        let user = &self.user;
        match *step {
            Step::Put { to, slot, offset, bytes } => {
                let remote = self.slots.0 + slot * (SLOT + 1000) + offset;
                let put = user.put(user.to(to % hosts, (self.from.0, bytes), remote)).await.unwrap();
                self.end(put).await;
            }
            Step::Get { from, slot, offset, bytes } => {
                let remote = self.slots.0 + slot * (SLOT + 1000) + offset;
                let get = user.get(user.to(from % hosts, (self.from.0 + SLOT, bytes), remote)).await.unwrap();
                let fits = self.end(get).await;
                assert!(!fits || offset + bytes <= SLOT || bytes == 0);
            }
            Step::Send { to, bytes } => {
                let send = user.put(user.to(to % hosts, (self.from.0, bytes), 0)).await.unwrap();
                self.end(send).await;
            }
            Step::Toggle { slot } => {
                let region = self.regions.borrow_mut()[slot as usize].take();
                match region {
                    Some(region) => user.deregister(region).await.unwrap(),
                    None => self.register(slot).await,
                }
            }
            Step::Pause { us } => user.sim.delay(Duration::from_us(us)).await,
        }
    }

    async fn register(&self, slot: u64) {
        let region = self.user.register((self.slots.0 + slot * (SLOT + 1000), SLOT)).await.unwrap();
        self.regions.borrow_mut()[slot as usize] = Some(region);
    }

    /// Waits for the first event of an operation. Returns false if the event is a refusal.
    async fn end(&self, operation: nicety_nic_apenet::Operation) -> bool {
        match self.user.wait(operation).await {
            Ok(_) => true,
            Err(ApenetError::Refused { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The contents of a host's memory at the end, and the counters of the host's card.
type End = (Vec<u8>, Statistics);

fn run(hosts: u32, overrides: &[&str], steps: &[Vec<Step>], shards: usize) -> (Time, Vec<End>) {
    let mut rig = Rig::with_shards(hosts, overrides, shards);
    let steps = Rc::new(steps.to_vec());
    let ends: Vec<Rc<RefCell<Vec<u8>>>> = (0..hosts).map(|_| Rc::default()).collect();
    for rank in 0..hosts {
        let (steps, end) = (steps.clone(), ends[rank as usize].clone());
        rig.process(rank, 0, async move |user| {
            let slots = user.room(SLOTS * (SLOT + 1000));
            let from = user.bytes(&vec![own(rank); 2 * SLOT as usize]);
            let streaming = user.room(4 * 2500);
            user.register(from).await.unwrap();
            user.register(streaming).await.unwrap();
            for at in 0..4 {
                user.stream((streaming.0 + at * 2500, 2500)).await.unwrap();
            }
            let home =
                Home { user: user.clone(), slots, from, regions: RefCell::new(vec![None; SLOTS as usize]) };
            for slot in 0..SLOTS {
                home.register(slot).await;
            }
            user.sim.until(BEGIN).await;
            for step in &steps[rank as usize] {
                home.step(hosts, step).await;
            }
            user.sim.delay(Duration::from_us(2000)).await;
            // The bytes of every streamed message are all from the same host.
            while let Some(event) =
                user.process.poll(&mut nicety_types::Path::clock(user.sim.now())).await.unwrap()
            {
                if event.kind == EventKind::Received && event.streaming {
                    let bytes = user.look((event.address, event.bytes));
                    assert!(
                        bytes.iter().all(|&byte| byte == own(event.peer.node.0)),
                        "from {:?}",
                        event.peer
                    );
                }
            }
            let memory = user.look(slots);
            for slot in 0..SLOTS {
                let gap = (slot * (SLOT + 1000) + SLOT) as usize;
                assert!(memory[gap..gap + 1000].iter().all(|&byte| byte == 0), "written between regions");
            }
            let valid = |byte: &u8| *byte == 0 || (100..100 + hosts as u8).contains(byte);
            assert!(memory.iter().all(valid));
            *end.borrow_mut() = memory;
        });
    }
    let end = rig.run().end;
    let found = ends.iter().zip(&rig.cards).map(|(memory, card)| (memory.take(), card.statistics()));
    (end, found.collect())
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(24))]

    #[test]
    fn random_traffic_is_right_and_the_same_in_any_number_of_shards(
        hosts in 1..4u32,
        steps in prop::collection::vec(prop::collection::vec(step(3), 0..12), 3),
        which in 0..4usize,
    ) {
        let small: [&[&str]; 4] = [
            &[],
            &["tlb.entries=2", "ring.entries=2", "buffer.packets=1", "dma.fifo=1"],
            &["dma.transmit_engines=1", "dma.receive_engines=1", "limits.gets=1", "packet.payload=1000 B"],
            &["events.notify=interrupt", "kernel.interrupt=20 us"],
        ];
        let one = run(hosts, small[which], &steps, 1);
        let sum = |of: fn(&Statistics) -> u64| one.1.iter().map(|(_, counted)| of(counted)).sum::<u64>();
        prop_assert_eq!(sum(|counted| counted.packets_sent), sum(|counted| counted.packets_received));
        prop_assert_eq!(sum(|counted| counted.unusable) + sum(|counted| counted.abandoned), 0);
        prop_assert_eq!(sum(|counted| counted.events_lost), 0);
        prop_assert!(sum(|counted| counted.refused) >= sum(|counted| counted.refused_by_peer));
        if hosts > 1 {
            prop_assert_eq!(one, run(hosts, small[which], &steps, hosts as usize));
        }
    }
}

#[test]
fn all_bytes_of_puts_are_right() {
    // The ranges are unaligned, longer than a page, or about as long as a word of 32 B.
    for (offset, bytes) in [(0, 1), (1, 31), (5, 32), (4095, 33), (4090, 4096), (17, 9999), (4096, 4097)] {
        let mut rig = Rig::new(2, &["tlb.entries=1"]);
        let address = Rc::new(std::cell::Cell::new(0));
        let there = address.clone();
        rig.process(0, 0, async move |user| {
            let data: Vec<u8> = (0..bytes + 3).map(|at| (at * 7 + at / 256) as u8).collect();
            let buffer = user.bytes(&data);
            user.register(buffer).await.unwrap();
            user.sim.until(BEGIN).await;
            let put = user.put(user.to(1, (buffer.0 + 3, bytes), there.get() + offset)).await.unwrap();
            user.wait(put).await.unwrap();
        });
        rig.process(1, 0, async move |user| {
            let buffer = user.room(20_000);
            address.set(buffer.0);
            user.register(buffer).await.unwrap();
            let event = user.event().await.unwrap();
            assert_eq!((event.address, event.bytes), (buffer.0 + offset, bytes));
            let mut expected = vec![0; 20_000];
            for at in 0..bytes {
                expected[(offset + at) as usize] = ((at + 3) * 7 + (at + 3) / 256) as u8;
            }
            assert!(user.look(buffer) == expected, "{bytes} bytes to {offset}");
        });
        rig.run();
    }
}
