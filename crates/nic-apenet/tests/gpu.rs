//! The memory of a graphics processor.

use super::support::{Rig, User};
use nicety_nic_apenet::EventKind;
use nicety_nic_core::parts::stages::GPU;
use nicety_types::{Path, Time};
use std::cell::Cell;
use std::rc::Rc;

const START: Time = Time::from_ps(1_000_000_000);
const BYTES: u64 = 2 * 65_536 + 100;

/// Returns the address and the size of a registered buffer. The buffer is in the graphics processor's memory if `gpu`
/// is true, or else in host memory.
async fn buffer(user: &User, gpu: bool, byte: u8) -> (u64, u64) {
    let memory = if gpu { &user.card.gpu().unwrap().memory } else { user.card.host_memory() };
    let allocation = memory.allocate(BYTES).unwrap();
    allocation.bytes().unwrap().write(0, &vec![byte; BYTES as usize]);
    user.register((allocation.address(), BYTES)).await.unwrap();
    (allocation.address(), BYTES)
}

/// Puts the first `bytes` bytes from one memory to another. Returns the path until the receiver's event.
fn put(from_gpu: bool, to_gpu: bool, bytes: u64) -> Path {
    let mut rig = Rig::new(2, &["bus.kind=plain", "gpu.read_latency=1 us", "gpu.write_latency=300 ns"]);
    let (address, path) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(None)));
    let (there, seen) = (address.clone(), path.clone());
    rig.process(0, 0, async move |user| {
        let (from, _) = buffer(&user, from_gpu, 3).await;
        user.sim.until(START).await;
        user.restart();
        user.put(user.to(1, (from, bytes), there.get())).await.unwrap();
    });
    rig.process(1, 0, async move |user| {
        let into = buffer(&user, to_gpu, 4).await;
        address.set(into.0);
        user.sim.until(START).await;
        assert_eq!(user.event().await.unwrap().kind, EventKind::Received);
        // The event never comes before the bytes.
        assert_eq!(user.look((into.0, bytes)), vec![3; bytes as usize]);
        assert_eq!(user.look((into.0 + bytes, BYTES - bytes)), vec![4; (BYTES - bytes) as usize]);
        seen.set(Some(user.path.get()));
    });
    rig.run();
    path.take().unwrap()
}

#[test]
fn its_latencies_come_to_those_of_the_bus() {
    let time = |path: &Path| path.at().since(path.origin()).ps();
    let host = time(&put(false, false, 8));
    // A read from the graphics processor takes 1 us of latency, and 2286 ps for 8 B at 3.5 GB/s, which nothing hides.
    // The bus takes 1016 ps for these bytes.
    let read = put(true, false, 8);
    assert_eq!(time(&read) - host, 1_000_000 + 2286 - 1016);
    assert_eq!(read.total(GPU).ps(), 1_000_000 + 2286);
    // The latency of a write has passed before the engine is set up for the event. The graphics processor takes 1250 ps
    // for the 8 B, and the bus 1016 ps.
    let write = time(&put(false, true, 8));
    assert_eq!(write - host, 1250 - 1016);
}

#[test]
fn bytes_are_right_between_all_memories() {
    for bytes in [1, 65_536, BYTES] {
        let times = [(false, false), (false, true), (true, false), (true, true)]
            .map(|(from, to)| put(from, to, bytes))
            .map(|path| path.at().since(path.origin()).ps());
        assert!(times[2] > times[0] && times[3] > times[1] && times[1] > times[0], "{bytes}: {times:?}");
    }
}

#[test]
fn a_page_of_64_kib_is_one_entry_and_one_descriptor() {
    let mut rig = Rig::new(1, &[]);
    rig.process(0, 0, async move |user| {
        let (from, into) = (buffer(&user, true, 1).await, buffer(&user, true, 2).await);
        assert_eq!(user.card.registered(), (2, 6));
        let put = user.put(user.to(0, from, into.0)).await.unwrap();
        user.wait(put).await.unwrap();
        user.event().await.unwrap();
        assert_eq!(user.look(into), user.look(from));
    });
    rig.run();
    let counted = rig.cards[0].statistics();
    // The put has 33 packets of at most 4 KiB.
    assert_eq!(
        (counted.descriptors, counted.packets_sent, counted.tlb_hits, counted.tlb_misses),
        (3, 33, 33, 0)
    );
}
