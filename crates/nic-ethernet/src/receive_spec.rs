//! The spec of the receive rings.

use crate::driver_spec::MOST_PACKET;
use crate::flows::FlowHash;
use nicety_spec::{Reader, Section};
use nicety_types::Duration;

/// Number of bytes of a frame before its IP packet: the headers of Ethernet and of 802.1Q.
pub(super) const HEADERS: u64 = 18;

/// The receive rings in host memory.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveSpec {
    /// Number of DMA channels, each with a ring. A hash distributes frames to them.
    pub channels: usize,
    /// The hash that distributes frames to the channels.
    pub hash: FlowHash,
    /// Number of entries per ring. An entry is a block of buffers, or a single buffer.
    pub entries: u64,
    /// Size of a buffer in bytes.
    pub buffer: u64,
    /// Number of buffers of an entry.
    pub block: u64,
    /// Size in bytes of the buffers in blocks for short frames. 0 if short frames take full buffers.
    pub small: u64,
    /// Size in bytes of the buffers in blocks for frames of medium length. 0 if these frames take full buffers.
    pub medium: u64,
    /// Size in bytes of the pages that map the buffers. 0 if the pages are always in the TLB.
    pub page: u64,
    /// Number of entries of the ring of completions. 0 stands for one entry per buffer.
    pub completions: u64,
    /// Number of completions that the card writes at a time. It writes fewer at the end of the interrupt's timer.
    pub batch: u64,
    /// Size of a completion in bytes.
    pub completion: u64,
    /// Length in bytes of the longest IP packet that the card joins from frames of a connection (LRO). 0 without LRO.
    pub lro: u64,
    /// The longest time for which a frame waits to be joined with others.
    pub lro_time: Duration,
    /// The maximum number of connections of a channel with waiting frames.
    pub lro_connections: usize,
}

/// Reads the section. `mtu` is the longest IP packet in bytes, and `checksums` whether the card computes them.
pub(super) fn read_receive(reader: &Reader<'_>, mtu: u64, checksums: bool) -> ReceiveSpec {
    let s = reader.section("receive");
    let entries =
        s.count("entries", 2..=1 << 16, "entries of a receive ring, each a buffer or a block of them");
    let buffer = s.size("buffer", 64..=16 << 10, "a receive buffer");
    let block = s.size_or(
        "block",
        0..=1 << 20,
        "0 B",
        "buffers that an entry has, in bytes, posted when the last of them is free; 0 B for one buffer",
    );
    let receive = ReceiveSpec {
        channels: s.count("channels", 1..=256, "receive DMA channels") as usize,
        hash: FlowHash::read(&s, &["toeplitz", "crc"], "hash of a connection that chooses its channel"),
        entries,
        buffer,
        block: (block / buffer).max(1),
        small: s.size_or(
            "small",
            0..=16 << 10,
            "0 B",
            "buffers of blocks for frames that fit into them; 0 B if such frames have blocks of full buffers",
        ),
        medium: s.size_or(
            "medium",
            0..=16 << 10,
            "0 B",
            "the same, for frames that do not fit into receive.small",
        ),
        page: s.size_or(
            "page",
            0..=1 << 30,
            "0 B",
            "pages that map the buffers; 0 B if they are always in the TLB (threads.data_tlb)",
        ),
        completions: s.count_or(
            "completions",
            0..=1 << 20,
            0,
            "completions that a ring has room for; with 0 one for each buffer",
        ),
        completion: s.size("completion", 4..=256, "bytes that the card writes after a frame"),
        batch: s.count_or(
            "batch",
            1..=64,
            1,
            "completions that the card writes at a time, or fewer at the timer's end",
        ),
        lro: s.size_or(
            "lro",
            0..=MOST_PACKET,
            "0 B",
            "longest packet that the card joins from frames; 0 B without LRO",
        ),
        lro_time: s.time_or("lro_time", "0 s", "time that a frame waits for frames to join"),
        lro_connections: s.count_or(
            "lro_connections",
            1..=1024,
            16,
            "connections of a channel with waiting frames, at a time",
        ) as usize,
    };
    check_receive(&s, &receive, checksums);
    check_sizes(&s, &receive);
    check_buffer(reader, mtu, receive.buffer);
    receive
}

/// Rejects combinations of values that no card can have.
fn check_receive(s: &Section<'_>, receive: &ReceiveSpec, checksums: bool) {
    if receive.lro > 0 && !checksums {
        let help = "write frames.checksums = \"card\", or leave lro out";
        s.refuse("lro", "a card that joins frames verifies their checksums", help);
    }
    if receive.lro + HEADERS > receive.buffer * receive.entries {
        s.refuse("lro", "a ring has no room for such a packet", "raise receive.entries");
    }
    if receive.lro > 0 && receive.block > 1 {
        s.refuse(
            "block",
            "a joined packet needs buffers in a row, and blocks have one for each frame",
            "leave lro out",
        );
    }
}

/// Rejects sizes of buffers for shorter frames if entries are not blocks, or if these buffers are not smaller.
fn check_sizes(s: &Section<'_>, receive: &ReceiveSpec) {
    for (key, size, next) in
        [("small", receive.small, receive.medium), ("medium", receive.medium, receive.buffer)]
    {
        let next = if next == 0 { receive.buffer } else { next };
        if size > 0 && receive.block == 1 {
            s.refuse(key, "an entry is a single buffer, and shorter ones need blocks", "set receive.block");
        } else if size > 0 && (size < 64 || size >= next) {
            let message = format!("{size} B is not between 64 B and the next larger buffer, {next} B");
            s.refuse(key, &message, "write less, or 0 B");
        }
    }
}

/// Rejects a receive buffer without room for the longest frame.
fn check_buffer(reader: &Reader<'_>, mtu: u64, buffer: u64) {
    if buffer >= mtu + HEADERS {
        return;
    }
    let s = reader.section("receive");
    let longest = mtu + HEADERS;
    let message = format!(
        "a frame of {longest} bytes, with {} of frames.mtu, does not fit into a receive buffer of {buffer} bytes (receive.buffer)",
        mtu
    );
    // The correction depends on the cause. If a longer MTU was requested, the buffer has to grow with it.
    match reader.section("frames") {
        of if of.change("mtu") > s.change("buffer") => {
            of.refuse("mtu", &message, &format!("write receive.buffer = \"{longest} B\" or more, too"));
        }
        _ => s.refuse("buffer", &message, &s.example("buffer", &format!("{longest} B"))),
    }
}
