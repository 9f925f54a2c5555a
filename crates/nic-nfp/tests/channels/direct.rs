//! Tests direct messages.

use super::{Host, from};
use nicety_types::Duration;

#[test]
fn bytes_go_both_ways() {
    let mut host = Host::new(&[]);
    host.process(0, "channels_echo", &[7, 56, 3]);
    host.thread(|device, sim| async move {
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, 7).await.unwrap();
        for round in 0..3u8 {
            let bytes: Vec<u8> = (0..56).map(|i| i ^ round).collect();
            device.send(&mut path, channel, &bytes, None).await.unwrap();
            let back = device.receive(&mut path, channel, 56, None).await.unwrap();
            assert_eq!(*back, *bytes);
        }
        device.close(&mut path, channel).await.unwrap();
        assert_eq!(path.at(), sim.now());
    });
    host.run();
    assert_eq!(host.returned(0), 0);
}

/// The path of a direct message to a waiting reader. The expected times are calculated by hand from the shipped spec.
///
/// PCI Express, generation 3 x8, has 7.877 GB/s, or 126.95 ps per byte. A crossing takes 250 ns. On the link, a
/// doorbell has 4 + 24 bytes, a read request 24 bytes, and a completion of 64 bytes 84 bytes. A written mailbox has 88
/// bytes, and an MSI-X message 28 bytes. A cycle is 5000/3 ps.
#[test]
fn a_path_says_where_the_time_went() {
    let mut host = Host::new(&[]);
    host.process(0, "channels_read", &[7, 56, 2]);
    host.thread(|device, sim| async move {
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, 7).await.unwrap();
        device.send(&mut path, channel, &[1; 56], None).await.unwrap();
        sim.delay(Duration::from_us(50)).await;
        let mut path = from(&sim);
        device.send(&mut path, channel, &[2; 56], None).await.unwrap();
        let parts: Vec<_> = path.stages().map(|(stage, time)| (stage.name(), time.ps())).collect();
        let wire = |bytes: u64| (bytes * 130_000).div_ceil(8 * 128);
        let manager = 125_000 + 148_334 + 125_000;
        let expected = [
            ("library", 50_000),
            ("system call", 60_000),
            ("driver", 5_400_000),
            ("bus", wire(28) + 250_000),
            ("manager", manager),
            ("fetch", wire(24) + 250_000 + wire(84) + 250_000),
            ("deposit", wire(88) + wire(28) + 250_000),
            ("interrupt", 3_920_000),
            ("wake", 3_800_000),
        ];
        assert_eq!(parts, expected);
        assert_eq!(path.stages().map(|(_, time)| time).sum::<Duration>(), sim.now().since(path.origin()));
    });
    host.run();
}
