//! The spec of XDP programs on microengines.

use nicety_spec::Reader;
use nicety_types::Gap;

/// The firmware that runs XDP programs, and its port. Durations are in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpSpec {
    /// Microengines of an island that run programs.
    pub workers: usize,
    /// Contexts of each of them.
    pub contexts: usize,
    /// Buffers for frames in the CTM of an island, and the bytes of each.
    pub buffers: usize,
    /// See `buffers`.
    pub buffer: u32,
    /// The place of a frame in its buffer.
    pub offset: u32,
    /// Bytes in front of a frame that a program may take.
    pub headroom: u32,
    /// Frames that wait for a buffer.
    pub queue: usize,
    /// The time of a byte on the wire.
    pub gap: Gap,
    /// Bytes of a frame on the wire beside its own.
    pub header: u64,
    /// The longest frame, without its check sequence.
    pub longest: u64,
    /// The firmware's instructions for a frame in front of the program.
    pub before: u64,
    /// Those behind it.
    pub behind: u64,
    /// Bytes of stack of a program.
    pub stack: u32,
    /// Instructions of a translated program.
    pub program: u32,
    /// Maps.
    pub maps: u32,
    /// Entries of all maps.
    pub entries: u64,
    /// Bytes of a key.
    pub key: u32,
    /// Bytes of a value.
    pub value: u32,
    /// Bytes of key and value together.
    pub entry: u32,
    /// Whether programs may update and delete entries.
    pub updates: bool,
}

/// Reads the section `xdp`, if the spec has one.
pub(super) fn read(reader: &Reader<'_>, island: usize, contexts: usize, ctm: u32) -> Option<XdpSpec> {
    let s = reader.section("xdp");
    if !s.has("workers") {
        return None;
    }
    let spec = XdpSpec {
        workers: s.count("workers", 1..=1024, "microengines of an island that run XDP programs") as usize,
        contexts: s.count("contexts", 1..=8, "contexts of each of them") as usize,
        buffers: s.count("buffers", 1..=4096, "buffers for frames in the CTM of an island") as usize,
        buffer: s.size("buffer", 256..=16 << 10, "a buffer") as u32,
        offset: s.size("offset", 64..=1024, "bytes from the start of a buffer to its frame") as u32,
        headroom: s.size("headroom", 0..=1024, "bytes before a frame that a program may use") as u32,
        queue: s.count("queue", 0..=1 << 20, "frames that wait for a buffer") as usize,
        gap: s.gap("gap", "bandwidth of the port with XDP programs"),
        header: s.size(
            "header",
            0..=64,
            "bytes of a frame on the wire in addition to its own: preamble, check sequence, gap",
        ),
        longest: s.size("longest", 60..=16 << 10, "the longest frame, without its check sequence"),
        before: s.count(
            "before",
            0..=1_000_000,
            "cycles of the firmware's instructions for a frame before the program",
        ),
        behind: s.count(
            "behind",
            0..=1_000_000,
            "cycles of the firmware's instructions for a frame after the program",
        ),
        stack: s.size("stack", 0..=4096, "stack of a program") as u32,
        program: s.count("program", 1..=1 << 20, "instructions of a translated program") as u32,
        maps: s.count("maps", 0..=65_535, "maps") as u32,
        entries: s.count("entries", 0..=1 << 32, "entries of all maps"),
        key: s.size("keys", 0..=56, "the longest key") as u32,
        value: s.size("values", 0..=1 << 20, "the longest value") as u32,
        entry: s.size("entry", 0..=1 << 20, "the longest key and value together, each filled up to 8 bytes")
            as u32,
        updates: s.flag("updates", "whether programs may update and delete entries of maps"),
    };
    let refuse = |key: &str, problem: &str, help: String| s.refuse(key, problem, &help);
    if spec.workers > island {
        refuse(
            "workers",
            "more than the microengines of an island (hpu.island)",
            format!("write {island} or less"),
        );
    }
    if spec.contexts > contexts {
        refuse(
            "contexts",
            "more than the contexts of a microengine (hpu.contexts)",
            format!("write {contexts} or less"),
        );
    }
    if spec.buffers as u64 * u64::from(spec.buffer) > u64::from(ctm) {
        let most = ctm / spec.buffer.max(1);
        refuse("buffers", "they do not fit into CTM (memory.ctm.size)", format!("write {most} or less"));
    }
    if u64::from(spec.offset) + spec.longest > u64::from(spec.buffer) {
        let most = u64::from(spec.buffer).saturating_sub(spec.offset.into());
        refuse(
            "longest",
            "such a frame does not fit into a buffer (xdp.buffer)",
            format!("write {most} B or less"),
        );
    }
    if spec.headroom > spec.offset {
        refuse(
            "headroom",
            "it is more than the bytes before a frame in a buffer (xdp.offset)",
            format!("write {} B or less", spec.offset),
        );
    }
    Some(spec)
}
