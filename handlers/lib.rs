//! The shipped C files: the handlers' interface, their runtime, and the library of handlers.

/// Every file for handlers: its path in the folder `handlers`, and its text.
pub const FILES: &[(&str, &str)] = &[
    ("accumulate.c", include_str!("accumulate.c")),
    ("broadcast_store.c", include_str!("broadcast_store.c")),
    ("broadcast_stream.c", include_str!("broadcast_stream.c")),
    ("collectives.c", include_str!("collectives.c")),
    ("datatype_list.c", include_str!("datatype_list.c")),
    ("datatype_vector.c", include_str!("datatype_vector.c")),
    ("dpa/aggregate.c", include_str!("dpa/aggregate.c")),
    ("dpa/flows.c", include_str!("dpa/flows.c")),
    ("dpa/header.c", include_str!("dpa/header.c")),
    ("dpa/loads.c", include_str!("dpa/loads.c")),
    ("dpa/reflect.c", include_str!("dpa/reflect.c")),
    ("dpa/rewrite.c", include_str!("dpa/rewrite.c")),
    ("frames/balancer.c", include_str!("frames/balancer.c")),
    ("frames/count.c", include_str!("frames/count.c")),
    ("frames/drop.c", include_str!("frames/drop.c")),
    ("frames/echo.c", include_str!("frames/echo.c")),
    ("frames/firewall.c", include_str!("frames/firewall.c")),
    ("frames/vlan.c", include_str!("frames/vlan.c")),
    ("include/broadcast.h", include_str!("include/broadcast.h")),
    ("include/collectives.h", include_str!("include/collectives.h")),
    ("include/datatype.h", include_str!("include/datatype.h")),
    ("include/fpspin/packets.h", include_str!("include/fpspin/packets.h")),
    ("include/fpspin/pspin.h", include_str!("include/fpspin/pspin.h")),
    ("include/fpspin/pspin_rt.h", include_str!("include/fpspin/pspin_rt.h")),
    ("include/fpspin/spin_conf.h", include_str!("include/fpspin/spin_conf.h")),
    ("include/fpspin/spin_host.h", include_str!("include/fpspin/spin_host.h")),
    ("include/fpspin/util.h", include_str!("include/fpspin/util.h")),
    ("include/frame.h", include_str!("include/frame.h")),
    ("include/kv.h", include_str!("include/kv.h")),
    ("include/matching.h", include_str!("include/matching.h")),
    ("include/nfp.h", include_str!("include/nfp.h")),
    ("include/nicety.h", include_str!("include/nicety.h")),
    ("include/nicety_dpa.h", include_str!("include/nicety_dpa.h")),
    ("include/pingpong.h", include_str!("include/pingpong.h")),
    ("include/pspin/hal/pulp.h", include_str!("include/pspin/hal/pulp.h")),
    ("include/pspin/handler.h", include_str!("include/pspin/handler.h")),
    ("include/pspin/hwsched.h", include_str!("include/pspin/hwsched.h")),
    ("include/pspin/libaxidma.h", include_str!("include/pspin/libaxidma.h")),
    ("include/pspin/packets.h", include_str!("include/pspin/packets.h")),
    ("include/pspin/pspin.h", include_str!("include/pspin/pspin.h")),
    ("include/pspin/pspin_rt.h", include_str!("include/pspin/pspin_rt.h")),
    ("include/pspin/spin_conf.h", include_str!("include/pspin/spin_conf.h")),
    ("include/pspin/spin_dma.h", include_str!("include/pspin/spin_dma.h")),
    ("include/pspin/stdio.h", include_str!("include/pspin/stdio.h")),
    ("include/pspin/util.h", include_str!("include/pspin/util.h")),
    ("include/storage.h", include_str!("include/storage.h")),
    ("include/xdp.h", include_str!("include/xdp.h")),
    ("kv.c", include_str!("kv.c")),
    ("matching.c", include_str!("matching.c")),
    ("nfp/channel_bench.c", include_str!("nfp/channel_bench.c")),
    ("nfp/channels.c", include_str!("nfp/channels.c")),
    ("nfp/forward.c", include_str!("nfp/forward.c")),
    ("nfp/pcsa.c", include_str!("nfp/pcsa.c")),
    ("nfp/tsp.c", include_str!("nfp/tsp.c")),
    ("nfp/tsp.h", include_str!("nfp/tsp.h")),
    ("nfp/tsp_climb.h", include_str!("nfp/tsp_climb.h")),
    ("nfp/tsp_table.c", include_str!("nfp/tsp_table.c")),
    ("pingpong_store.c", include_str!("pingpong_store.c")),
    ("pingpong_stream.c", include_str!("pingpong_stream.c")),
    ("pspin/empty.c", include_str!("pspin/empty.c")),
    ("pspin/pingpong.c", include_str!("pspin/pingpong.c")),
    ("pspin/saturate.c", include_str!("pspin/saturate.c")),
    ("pspin/sum.c", include_str!("pspin/sum.c")),
    ("runtime/decimal.h", include_str!("runtime/decimal.h")),
    ("runtime/exact.c", include_str!("runtime/exact.c")),
    ("runtime/format.c", include_str!("runtime/format.c")),
    ("runtime/format.h", include_str!("runtime/format.h")),
    ("runtime/fpspin.c", include_str!("runtime/fpspin.c")),
    ("runtime/include/assert.h", include_str!("runtime/include/assert.h")),
    ("runtime/include/ctype.h", include_str!("runtime/include/ctype.h")),
    ("runtime/include/errno.h", include_str!("runtime/include/errno.h")),
    ("runtime/include/inttypes.h", include_str!("runtime/include/inttypes.h")),
    ("runtime/include/math.h", include_str!("runtime/include/math.h")),
    ("runtime/include/stdio.h", include_str!("runtime/include/stdio.h")),
    ("runtime/include/stdlib.h", include_str!("runtime/include/stdlib.h")),
    ("runtime/include/string.h", include_str!("runtime/include/string.h")),
    ("runtime/include/strings.h", include_str!("runtime/include/strings.h")),
    ("runtime/include/time.h", include_str!("runtime/include/time.h")),
    ("runtime/integer.c", include_str!("runtime/integer.c")),
    ("runtime/layout.ld", include_str!("runtime/layout.ld")),
    ("runtime/math.zig", include_str!("runtime/math.zig")),
    ("runtime/memory.c", include_str!("runtime/memory.c")),
    ("runtime/output.c", include_str!("runtime/output.c")),
    ("runtime/pspin.S", include_str!("runtime/pspin.S")),
    ("runtime/pspin.ld", include_str!("runtime/pspin.ld")),
    ("runtime/standard.c", include_str!("runtime/standard.c")),
    ("runtime/start.c", include_str!("runtime/start.c")),
    ("runtime/text.c", include_str!("runtime/text.c")),
    ("runtime/xdp/check.c", include_str!("runtime/xdp/check.c")),
    ("runtime/xdp/check.h", include_str!("runtime/xdp/check.h")),
    ("runtime/xdp/frame.c", include_str!("runtime/xdp/frame.c")),
    ("runtime/xdp/hash.c", include_str!("runtime/xdp/hash.c")),
    ("runtime/xdp/helper.h", include_str!("runtime/xdp/helper.h")),
    ("runtime/xdp/host.c", include_str!("runtime/xdp/host.c")),
    ("runtime/xdp/lpm.c", include_str!("runtime/xdp/lpm.c")),
    ("runtime/xdp/lru.c", include_str!("runtime/xdp/lru.c")),
    ("runtime/xdp/map.h", include_str!("runtime/xdp/map.h")),
    ("runtime/xdp/maps.c", include_str!("runtime/xdp/maps.c")),
    ("runtime/xdp/nfp.c", include_str!("runtime/xdp/nfp.c")),
    ("runtime/xdp/nfp.ld", include_str!("runtime/xdp/nfp.ld")),
    ("runtime/xdp/other.c", include_str!("runtime/xdp/other.c")),
    ("runtime/xdp/packet.c", include_str!("runtime/xdp/packet.c")),
    ("runtime/xdp/queue.c", include_str!("runtime/xdp/queue.c")),
    ("runtime/xdp/ring.c", include_str!("runtime/xdp/ring.c")),
    ("runtime/xdp/task.c", include_str!("runtime/xdp/task.c")),
    ("runtime/xdp/verdict.c", include_str!("runtime/xdp/verdict.c")),
    ("runtime/xdp/verdict.h", include_str!("runtime/xdp/verdict.h")),
    ("sink_store.c", include_str!("sink_store.c")),
    ("sink_stream.c", include_str!("sink_stream.c")),
    ("storage.c", include_str!("storage.c")),
    ("xdp/balancer.c", include_str!("xdp/balancer.c")),
    ("xdp/bucket.c", include_str!("xdp/bucket.c")),
    ("xdp/counters.c", include_str!("xdp/counters.c")),
    ("xdp/firewall.c", include_str!("xdp/firewall.c")),
    ("xdp/queues.c", include_str!("xdp/queues.c")),
    ("xdp/redirect.c", include_str!("xdp/redirect.c")),
    ("xdp/router.c", include_str!("xdp/router.c")),
    ("xdp/syncookie.c", include_str!("xdp/syncookie.c")),
    ("xdp/too_long.c", include_str!("xdp/too_long.c")),
    ("xdp/tunnel.c", include_str!("xdp/tunnel.c")),
];

#[cfg(test)]
mod tests {
    use super::FILES;
    use std::path::Path;

    /// Files of the crate itself.
    const OWN: [&str; 5] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "lib.rs"];

    #[test]
    fn every_file_of_the_folder_is_embedded() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Vec::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()),
                }
            }
        }
        found.retain(|name| !OWN.contains(&name.as_str()));
        found.sort();
        assert_eq!(found, FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}
