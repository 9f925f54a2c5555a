//! Visibility of bytes to the host. A byte is not visible before it has crossed the bus. It is visible with its event
//! at the latest.

use crate::support::*;
use nicety_portals::EventKind;

#[test]
fn a_deposit_is_visible_when_its_last_byte_has_crossed_the_bus() {
    let mut rig = Rig::new(&[]);
    rig.program(0, async move |a| {
        let request = a.request(&a.alloc(&[7; 8]), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    rig.program(1, async move |b| {
        let memory = b.alloc(&[0; 8]);
        b.append(entry(&memory, 5)).await.unwrap();
        // In ns: post 65, bus 250, link 0.160 + 33.4, match 30, deposit 0.125 + 250.
        let landed = 65_000 + 250_000 + 160 + 33_400 + 30_000 + 125 + 250_000;
        assert_eq!(landed, 628_685);
        b.until(after(landed - 1)).await;
        assert_eq!(b.read(&memory), [0; 8]);
        b.until(after(landed + 1)).await;
        assert_eq!(b.read(&memory), [7; 8]);
    });
    rig.run();
}

#[test]
fn the_last_of_many_packets_is_visible_with_its_event() {
    // Each packet takes the bus for 63.898 ns. So three packets are crossing the bus when the event is posted behind
    // the last packet.
    let mut rig = Rig::new(&["host.post=0 ns", "host.notice=0 ns"]);
    rig.program(0, async move |a| {
        let request = a.request(&a.alloc(&pattern(6 * 4096, 1)), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    rig.program(1, async move |b| {
        let memory = b.alloc(&[0; 6 * 4096]);
        b.append(entry(&memory, 5)).await.unwrap();
        // In ns: bus 250, six packets on the link, 33.4 of latency, match of a later packet 2, deposit 63.898 + 250.
        let handed = 250_000 + 6 * 81_920 + 33_400 + 2_000 + 63_898;
        // The program schedules its poll after the post of the event and before the arrival of the previous packet's
        // bytes. So in the order of this instant, the poll is between these two.
        b.until(after(handed + 50_000)).await;
        b.until(after(handed + 250_000)).await;
        b.event(EventKind::Put).await;
        assert_eq!(b.sim.now(), after(handed + 250_000));
        assert_eq!(b.read(&memory), pattern(6 * 4096, 1));
    });
    rig.run();
}
