//! Addresses or packets from a capture, in blocks, read by a thread of their own.

use super::distinct::Distinct;
use nicety_traffic::capture::{Capture, Damage, Skipped, Source, source_of};
use schemars::JsonSchema;
use serde::Serialize;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

/// Blocks that have been read and not yet counted, at most.
const AHEAD: usize = 4;

/// The contents of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Contents {
    /// `pcap` or `pcapng`.
    pub format: &'static str,
    /// Bytes read, of what was compressed where the file is.
    pub bytes: u64,
    /// Packets read.
    pub packets: u64,
    /// Packets of IP version 4.
    pub ipv4_packets: u64,
    /// Packets of IP version 6.
    pub ipv6_packets: u64,
    /// Packets that are not of IP.
    pub other_packets: u64,
    /// Packets of which too little was captured for a source address.
    pub cut_packets: u64,
    /// Packets of link types that are not supported.
    pub unknown_link_packets: u64,
    /// Packets that were damaged on their link, as their flags say, and are not replayed.
    pub damaged_packets: u64,
    /// Packets longer than a frame of the card's port carries, which were truncated.
    pub shortened_packets: u64,
    /// Source addresses that differ, counted one by one.
    pub distinct: u64,
}

impl Contents {
    /// Packets with a source address.
    pub fn counted(&self) -> u64 {
        self.ipv4_packets + self.ipv6_packets
    }
}

/// The bytes of a capture.
pub(super) type File = Box<dyn io::Read + Send>;

/// A capture that is being read, and the items made of its packets.
pub(super) struct Addresses<T> {
    blocks: Receiver<Vec<T>>,
    /// Returns blocks to be filled again.
    empty: Sender<Vec<T>>,
}

/// A packet as it was captured, and its source address or why it has none.
pub(super) struct Seen<'p> {
    pub(super) link: u32,
    pub(super) bytes: &'p [u8],
    pub(super) source: Result<Source, Skipped>,
}

/// The result of reading a capture.
pub(super) struct Read {
    pub(super) contents: Contents,
    pub(super) damage: Option<Damage>,
}

/// The address as a word for the card: its CRC takes the bytes in the order of the wire. An address of IP
/// version 6 is folded by MurmurHash3. Another CRC would not do: it keeps the distances between neighbours.
pub(super) fn folded(source: Source) -> u32 {
    match source {
        Source::V4(address) => u32::from_le_bytes(address),
        Source::V6(address) => murmur3(&address),
    }
}

/// MurmurHash3 of 32 bits for a small machine, from seed 0.
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
    /// Begins to read, in blocks of so many; `take` makes an item of a packet or none, and may count it.
    pub(super) fn read(
        mut capture: Capture<File>,
        block: usize,
        take: impl Fn(&Seen<'_>, &mut Contents) -> Option<T> + Send + 'static,
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

    /// Swaps `block` for the next one, which is empty at the end.
    pub(super) fn next(&self, block: &mut Vec<T>) {
        let full = self.blocks.recv().unwrap_or_default();
        let used = std::mem::replace(block, full);
        // At the end the reader is gone.
        let _ = self.empty.send(used);
    }
}

/// Reads to the end, to damage, or until the blocks have no receiver.
fn sort<T>(
    capture: &mut Capture<File>,
    size: usize,
    (full, emptied): (&SyncSender<Vec<T>>, &Receiver<Vec<T>>),
    take: &impl Fn(&Seen<'_>, &mut Contents) -> Option<T>,
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
        let seen =
            Seen { link: packet.link, bytes: packet.bytes, source: source_of(packet.link, packet.bytes) };
        match seen.source {
            Ok(source) => {
                *match source {
                    Source::V4(_) => &mut contents.ipv4_packets,
                    Source::V6(_) => &mut contents.ipv6_packets,
                } += 1;
                distinct.see(source);
            }
            Err(Skipped::NotIp) => contents.other_packets += 1,
            Err(Skipped::Cut) => contents.cut_packets += 1,
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
        // Of sixteen zeros, and of the bytes from 0 to 15.
        assert_eq!(murmur3(&[0; 16]), 0x8134_cdf8);
        let counting: Vec<u8> = (0..16).collect();
        assert_eq!(murmur3(counting[..].try_into().unwrap()), 0x1915_73dd);
    }
}
