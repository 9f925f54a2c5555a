//! The shipped C files: the handlers' interface, their runtime, and the library of handlers.

/// Every file of the folder `handlers`: its path in that folder, and its text.
pub const FILES: &[(&str, &str)] = &[
    ("accumulate.c", include_str!("../../../handlers/accumulate.c")),
    ("broadcast_store.c", include_str!("../../../handlers/broadcast_store.c")),
    ("broadcast_stream.c", include_str!("../../../handlers/broadcast_stream.c")),
    ("collectives.c", include_str!("../../../handlers/collectives.c")),
    ("datatype_list.c", include_str!("../../../handlers/datatype_list.c")),
    ("datatype_vector.c", include_str!("../../../handlers/datatype_vector.c")),
    ("frames/count.c", include_str!("../../../handlers/frames/count.c")),
    ("frames/drop.c", include_str!("../../../handlers/frames/drop.c")),
    ("frames/echo.c", include_str!("../../../handlers/frames/echo.c")),
    ("frames/firewall.c", include_str!("../../../handlers/frames/firewall.c")),
    ("frames/vlan.c", include_str!("../../../handlers/frames/vlan.c")),
    ("include/broadcast.h", include_str!("../../../handlers/include/broadcast.h")),
    ("include/collectives.h", include_str!("../../../handlers/include/collectives.h")),
    ("include/datatype.h", include_str!("../../../handlers/include/datatype.h")),
    ("include/fpspin/packets.h", include_str!("../../../handlers/include/fpspin/packets.h")),
    ("include/fpspin/pspin.h", include_str!("../../../handlers/include/fpspin/pspin.h")),
    ("include/fpspin/pspin_rt.h", include_str!("../../../handlers/include/fpspin/pspin_rt.h")),
    ("include/fpspin/spin_conf.h", include_str!("../../../handlers/include/fpspin/spin_conf.h")),
    ("include/fpspin/spin_host.h", include_str!("../../../handlers/include/fpspin/spin_host.h")),
    ("include/fpspin/util.h", include_str!("../../../handlers/include/fpspin/util.h")),
    ("include/frame.h", include_str!("../../../handlers/include/frame.h")),
    ("include/kv.h", include_str!("../../../handlers/include/kv.h")),
    ("include/matching.h", include_str!("../../../handlers/include/matching.h")),
    ("include/nfp.h", include_str!("../../../handlers/include/nfp.h")),
    ("include/nicety.h", include_str!("../../../handlers/include/nicety.h")),
    ("include/pingpong.h", include_str!("../../../handlers/include/pingpong.h")),
    ("include/pspin/hal/pulp.h", include_str!("../../../handlers/include/pspin/hal/pulp.h")),
    ("include/pspin/handler.h", include_str!("../../../handlers/include/pspin/handler.h")),
    ("include/pspin/hwsched.h", include_str!("../../../handlers/include/pspin/hwsched.h")),
    ("include/pspin/libaxidma.h", include_str!("../../../handlers/include/pspin/libaxidma.h")),
    ("include/pspin/packets.h", include_str!("../../../handlers/include/pspin/packets.h")),
    ("include/pspin/pspin.h", include_str!("../../../handlers/include/pspin/pspin.h")),
    ("include/pspin/pspin_rt.h", include_str!("../../../handlers/include/pspin/pspin_rt.h")),
    ("include/pspin/spin_conf.h", include_str!("../../../handlers/include/pspin/spin_conf.h")),
    ("include/pspin/spin_dma.h", include_str!("../../../handlers/include/pspin/spin_dma.h")),
    ("include/pspin/stdio.h", include_str!("../../../handlers/include/pspin/stdio.h")),
    ("include/pspin/util.h", include_str!("../../../handlers/include/pspin/util.h")),
    ("include/storage.h", include_str!("../../../handlers/include/storage.h")),
    ("include/xdp.h", include_str!("../../../handlers/include/xdp.h")),
    ("kv.c", include_str!("../../../handlers/kv.c")),
    ("matching.c", include_str!("../../../handlers/matching.c")),
    ("nfp/channel_bench.c", include_str!("../../../handlers/nfp/channel_bench.c")),
    ("nfp/channels.c", include_str!("../../../handlers/nfp/channels.c")),
    ("nfp/forward.c", include_str!("../../../handlers/nfp/forward.c")),
    ("nfp/pcsa.c", include_str!("../../../handlers/nfp/pcsa.c")),
    ("nfp/tsp.c", include_str!("../../../handlers/nfp/tsp.c")),
    ("nfp/tsp.h", include_str!("../../../handlers/nfp/tsp.h")),
    ("nfp/tsp_climb.h", include_str!("../../../handlers/nfp/tsp_climb.h")),
    ("nfp/tsp_table.c", include_str!("../../../handlers/nfp/tsp_table.c")),
    ("pingpong_store.c", include_str!("../../../handlers/pingpong_store.c")),
    ("pingpong_stream.c", include_str!("../../../handlers/pingpong_stream.c")),
    ("pspin/empty.c", include_str!("../../../handlers/pspin/empty.c")),
    ("pspin/pingpong.c", include_str!("../../../handlers/pspin/pingpong.c")),
    ("pspin/saturate.c", include_str!("../../../handlers/pspin/saturate.c")),
    ("pspin/sum.c", include_str!("../../../handlers/pspin/sum.c")),
    ("runtime/decimal.h", include_str!("../../../handlers/runtime/decimal.h")),
    ("runtime/exact.c", include_str!("../../../handlers/runtime/exact.c")),
    ("runtime/format.c", include_str!("../../../handlers/runtime/format.c")),
    ("runtime/format.h", include_str!("../../../handlers/runtime/format.h")),
    ("runtime/fpspin.c", include_str!("../../../handlers/runtime/fpspin.c")),
    ("runtime/include/assert.h", include_str!("../../../handlers/runtime/include/assert.h")),
    ("runtime/include/ctype.h", include_str!("../../../handlers/runtime/include/ctype.h")),
    ("runtime/include/errno.h", include_str!("../../../handlers/runtime/include/errno.h")),
    ("runtime/include/inttypes.h", include_str!("../../../handlers/runtime/include/inttypes.h")),
    ("runtime/include/math.h", include_str!("../../../handlers/runtime/include/math.h")),
    ("runtime/include/stdio.h", include_str!("../../../handlers/runtime/include/stdio.h")),
    ("runtime/include/stdlib.h", include_str!("../../../handlers/runtime/include/stdlib.h")),
    ("runtime/include/string.h", include_str!("../../../handlers/runtime/include/string.h")),
    ("runtime/include/strings.h", include_str!("../../../handlers/runtime/include/strings.h")),
    ("runtime/include/time.h", include_str!("../../../handlers/runtime/include/time.h")),
    ("runtime/integer.c", include_str!("../../../handlers/runtime/integer.c")),
    ("runtime/layout.ld", include_str!("../../../handlers/runtime/layout.ld")),
    ("runtime/math.zig", include_str!("../../../handlers/runtime/math.zig")),
    ("runtime/memory.c", include_str!("../../../handlers/runtime/memory.c")),
    ("runtime/output.c", include_str!("../../../handlers/runtime/output.c")),
    ("runtime/pspin.S", include_str!("../../../handlers/runtime/pspin.S")),
    ("runtime/pspin.ld", include_str!("../../../handlers/runtime/pspin.ld")),
    ("runtime/standard.c", include_str!("../../../handlers/runtime/standard.c")),
    ("runtime/start.c", include_str!("../../../handlers/runtime/start.c")),
    ("runtime/text.c", include_str!("../../../handlers/runtime/text.c")),
    ("runtime/xdp/check.c", include_str!("../../../handlers/runtime/xdp/check.c")),
    ("runtime/xdp/check.h", include_str!("../../../handlers/runtime/xdp/check.h")),
    ("runtime/xdp/frame.c", include_str!("../../../handlers/runtime/xdp/frame.c")),
    ("runtime/xdp/hash.c", include_str!("../../../handlers/runtime/xdp/hash.c")),
    ("runtime/xdp/helper.h", include_str!("../../../handlers/runtime/xdp/helper.h")),
    ("runtime/xdp/host.c", include_str!("../../../handlers/runtime/xdp/host.c")),
    ("runtime/xdp/lpm.c", include_str!("../../../handlers/runtime/xdp/lpm.c")),
    ("runtime/xdp/lru.c", include_str!("../../../handlers/runtime/xdp/lru.c")),
    ("runtime/xdp/map.h", include_str!("../../../handlers/runtime/xdp/map.h")),
    ("runtime/xdp/maps.c", include_str!("../../../handlers/runtime/xdp/maps.c")),
    ("runtime/xdp/other.c", include_str!("../../../handlers/runtime/xdp/other.c")),
    ("runtime/xdp/packet.c", include_str!("../../../handlers/runtime/xdp/packet.c")),
    ("runtime/xdp/queue.c", include_str!("../../../handlers/runtime/xdp/queue.c")),
    ("runtime/xdp/ring.c", include_str!("../../../handlers/runtime/xdp/ring.c")),
    ("runtime/xdp/task.c", include_str!("../../../handlers/runtime/xdp/task.c")),
    ("sink_store.c", include_str!("../../../handlers/sink_store.c")),
    ("sink_stream.c", include_str!("../../../handlers/sink_stream.c")),
    ("storage.c", include_str!("../../../handlers/storage.c")),
    ("xdp/balancer.c", include_str!("../../../handlers/xdp/balancer.c")),
    ("xdp/bucket.c", include_str!("../../../handlers/xdp/bucket.c")),
    ("xdp/counters.c", include_str!("../../../handlers/xdp/counters.c")),
    ("xdp/firewall.c", include_str!("../../../handlers/xdp/firewall.c")),
    ("xdp/queues.c", include_str!("../../../handlers/xdp/queues.c")),
    ("xdp/redirect.c", include_str!("../../../handlers/xdp/redirect.c")),
    ("xdp/router.c", include_str!("../../../handlers/xdp/router.c")),
    ("xdp/syncookie.c", include_str!("../../../handlers/xdp/syncookie.c")),
    ("xdp/too_long.c", include_str!("../../../handlers/xdp/too_long.c")),
    ("xdp/tunnel.c", include_str!("../../../handlers/xdp/tunnel.c")),
];

#[cfg(test)]
mod tests {
    use super::FILES;
    use std::path::Path;

    #[test]
    fn every_file_of_the_folder_is_embedded() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../handlers");
        let mut found = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => found.push(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned()),
                }
            }
        }
        found.sort();
        assert_eq!(found, FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}
