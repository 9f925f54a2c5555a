//! Indirect messages.

use super::{Host, from};
use nicety_nic::nfp::map;

#[test]
fn pages_go_there_and_back() {
    for size in [1u32, 56, 4096, 4097, 24_576, 24_577, 100_000] {
        let mut host = Host::new(&[]);
        host.process(13, "channels_echo_ind", &[7, size, 2, map::CTM + 64]);
        let memory = host.memory.clone();
        host.thread(move |device, sim| async move {
            let mut path = from(&sim);
            let channel = device.subscribe(&mut path, 7).await.unwrap();
            let buffer = memory.allocate(2 * u64::from(size) + 8192).unwrap();
            let (from, to) = (buffer.address() + 100, buffer.address() + 8192 + u64::from(size) - 3);
            for round in 0..2u32 {
                let bytes: Vec<u8> = (0..size).map(|i| (i * 7 + i / 251 + round) as u8).collect();
                memory.write(from, &bytes).unwrap();
                device.send_indirect(&mut path, channel, from, size, None).await.unwrap();
                device.receive_indirect(&mut path, channel, to, size, None).await.unwrap();
                let back = memory.read(to, u64::from(size)).unwrap().into_buffer().unwrap();
                assert!(*back == *bytes, "{size}");
            }
            assert_eq!(path.at(), sim.now());
        });
        host.run();
        assert_eq!(host.returned(13), 0);
    }
}
