//! When the host sees bytes: not before they have crossed the bus, and never after the event that tells of them.

use crate::support::*;

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
        // Post 65 ns, bus 250, link 0.160 + 33.4, match 30, deposit 0.125 + 250.
        let landed = 65_000 + 250_000 + 160 + 33_400 + 30_000 + 125 + 250_000;
        assert_eq!(landed, 628_685);
        b.until(after(landed - 1)).await;
        assert_eq!(b.read(&memory), [0; 8]);
        b.until(after(landed + 1)).await;
        assert_eq!(b.read(&memory), [7; 8]);
    });
    rig.run();
}
