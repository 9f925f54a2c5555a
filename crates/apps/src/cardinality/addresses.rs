//! Addresses or packets of a capture. A separate thread reads them in blocks.

use super::distinct::Distinct;
use nicety_traffic::capture::{Capture, Damage, Skipped, Source, source_of};
use schemars::JsonSchema;
use serde::Serialize;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

/// Maximum number of blocks that have been read and not yet counted.
const AHEAD: usize = 4;

/// The contents of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Contents {
    /// The file format: `pcap` or `pcapng`.
    pub format: &'static str,
    /// Number of bytes read. If the file is compressed, this is the number of decompressed bytes.
    pub bytes: u64,
    /// Number of packets read.
    pub packets: u64,
    /// Number of packets of IP version 4.
    pub ipv4_packets: u64,
    /// Number of packets of IP version 6.
    pub ipv6_packets: u64,
    /// Number of packets that are not IP.
    pub other_packets: u64,
    /// Number of packets that the capture truncated before the end of their source address.
    pub truncated_packets: u64,
    /// Number of packets of unsupported link types.
    pub unknown_link_packets: u64,
    /// Number of packets that were damaged on their link, according to their flags. They are not replayed.
    pub damaged_packets: u64,
    /// Number of packets that were longer than the maximum frame of the card's port. They were truncated.
    pub oversized_packets: u64,
    /// The exact number of distinct source addresses.
    pub distinct: u64,
}

impl Contents {
    /// Returns the number of packets with a source address.
    pub fn counted(&self) -> u64 {
        self.ipv4_packets + self.ipv6_packets
    }
}

/// The bytes of a capture.
pub(super) type File = Box<dyn io::Read + Send>;

/// A capture that is being read. Blocks of items, which are made from its packets, arrive from the reader.
pub(super) struct Addresses<T> {
    blocks: Receiver<Vec<T>>,
    /// Gives empty blocks back to the reader.
    empty: Sender<Vec<T>>,
}

/// A captured packet, and its source address or the reason why it has none.
pub(super) struct CapturedPacket<'p> {
    pub(super) link: u32,
    pub(super) bytes: &'p [u8],
    pub(super) source: Result<Source, Skipped>,
}

/// The result of reading a capture.
pub(super) struct Read {
    pub(super) contents: Contents,
    pub(super) damage: Option<Damage>,
}

/// Returns an address as a word for the card. An IPv4 address has its bytes in wire order, for the card's CRC. An IPv6 address is
/// hashed by MurmurHash3. A CRC would not do for this, because it keeps the distances between neighbouring addresses.
pub(super) fn folded(source: Source) -> u32 {
    match source {
        Source::V4(address) => u32::from_le_bytes(address),
        Source::V6(address) => murmur3(&address),
    }
}

/// Returns the 32-bit MurmurHash3 (x86 variant) with seed 0.
fn murmur3(bytes: &[u8; 16]) -> u32 {
    let mix = |hash: u32, word: &[u8]| {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        let block = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        (hash ^ block).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    };
    let mut hash = bytes.chunks_exact(4).fold(0, mix) ^ 16;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

impl<T: Send + 'static> Addresses<T> {
    /// Starts to read, in blocks of `block` items. `take` makes an item from a packet or returns none, and it may update the
    /// counts.
    pub(super) fn read(
        mut capture: Capture<File>,
        block: usize,
        take: impl Fn(&CapturedPacket<'_>, &mut Contents) -> Option<T> + Send + 'static,
    ) -> (Addresses<T>, JoinHandle<Read>) {
        let (fill, blocks) = sync_channel(AHEAD);
        let (empty, emptied) = channel();
        let reader = thread::spawn(move || {
            let (mut contents, mut distinct) = (Contents::default(), Distinct::default());
            let damage = sort(&mut capture, block, (&fill, &emptied), &take, (&mut contents, &mut distinct));
            contents.format = capture.format();
            contents.bytes = capture.position();
            contents.packets = capture.packets();
            contents.distinct = distinct.count();
            Read { contents, damage }
        });
        (Addresses { blocks, empty }, reader)
    }

    /// Replaces `block` by the next block. An empty block means the end of the capture.
    pub(super) fn next(&self, block: &mut Vec<T>) {
        let full = self.blocks.recv().unwrap_or_default();
        let used = std::mem::replace(block, full);
        // At the end of the capture, no reader receives the block.
        let _ = self.empty.send(used);
    }
}

/// Reads until the end, until the first damage, or until nobody receives the blocks.
fn sort<T>(
    capture: &mut Capture<File>,
    size: usize,
    (full, emptied): (&SyncSender<Vec<T>>, &Receiver<Vec<T>>),
    take: &impl Fn(&CapturedPacket<'_>, &mut Contents) -> Option<T>,
    (contents, distinct): (&mut Contents, &mut Distinct),
) -> Option<Damage> {
    let mut block = Vec::with_capacity(size);
    loop {
        let packet = match capture.next_packet() {
            None => break,
            Some(Err(damage)) => {
                let _ = full.send(block);
                return Some(damage);
            }
            Some(Ok(packet)) => packet,
        };
        if packet.fault.is_some() {
            contents.damaged_packets += 1;
            continue;
        }
        let seen = CapturedPacket {
            link: packet.link,
            bytes: packet.bytes,
            source: source_of(packet.link, packet.bytes),
        };
        match seen.source {
            Ok(source) => {
                *match source {
                    Source::V4(_) => &mut contents.ipv4_packets,
                    Source::V6(_) => &mut contents.ipv6_packets,
                } += 1;
                distinct.see(source);
            }
            Err(Skipped::NotIp) => contents.other_packets += 1,
            Err(Skipped::Cut) => contents.truncated_packets += 1,
            Err(Skipped::Link) => contents.unknown_link_packets += 1,
        }
        block.extend(take(&seen, contents));
        if block.len() == size {
            let mut next = emptied.try_recv().unwrap_or_default();
            next.clear();
            if full.send(std::mem::replace(&mut block, next)).is_err() {
                return None;
            }
        }
    }
    if !block.is_empty() {
        let _ = full.send(block);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_words() {
        assert_eq!(folded(Source::V4([1, 2, 3, 4])), 0x0403_0201);
        // The hashes of sixteen zeros, and of the bytes from 0 to 15.
        assert_eq!(murmur3(&[0; 16]), 0x8134_cdf8);
        let counting: Vec<u8> = (0..16).collect();
        assert_eq!(murmur3(counting[..].try_into().unwrap()), 0x1915_73dd);
    }
}
