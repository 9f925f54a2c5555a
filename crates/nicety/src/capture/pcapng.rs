//! Blocks of a pcapng file (draft-ietf-opsawg-pcapng), little-endian.

/// The resolution of timestamps: 10^-9 seconds.
const NANOSECONDS: u8 = 9;
/// Numbers of options. The meaning of a number depends on the kind of block.
const COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

/// The options of a block.
#[derive(Default)]
struct Options(Vec<u8>);

impl Options {
    fn with(mut self, code: u16, value: &[u8]) -> Options {
        // The options of nicety are far shorter than 64 KiB, but a name may come from the user.
        let value = &value[..value.len().min(u16::MAX as usize - 3)];
        self.0.extend(code.to_le_bytes());
        self.0.extend((value.len() as u16).to_le_bytes());
        self.0.extend(value);
        pad(&mut self.0);
        self
    }

    fn end(mut self) -> Vec<u8> {
        if !self.0.is_empty() {
            self.0.extend([0; 4]);
        }
        self.0
    }
}

/// Pads to a multiple of four bytes.
fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn block(kind: u32, parts: &[&[u8]]) -> Vec<u8> {
    let mut block = [kind, 0].map(u32::to_le_bytes).concat();
    for part in parts {
        block.extend_from_slice(part);
        pad(&mut block);
    }
    let length = (block.len() as u32 + 4).to_le_bytes();
    block[4..8].copy_from_slice(&length);
    block.extend(length);
    block
}

/// Returns a timestamp as two 32-bit halves, the high half first.
fn halves(ticks: u64) -> [u8; 8] {
    let [high, low] = [(ticks >> 32) as u32, ticks as u32].map(u32::to_le_bytes);
    [high, low].concat().try_into().expect("two halves")
}

/// Returns the section header block, which names the application.
pub(super) fn section(application: &str) -> Vec<u8> {
    let mut fixed = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    fixed.extend([1_u16, 0].map(u16::to_le_bytes).concat());
    fixed.extend(u64::MAX.to_le_bytes());
    block(0x0a0d_0d0a, &[&fixed, &Options::default().with(SHB_USERAPPL, application.as_bytes()).end()])
}

/// Returns the block of the next interface. A packet of this interface has at most `longest` bytes in the file.
pub(super) fn interface(link_type: u16, longest: u32, name: &str, description: &str) -> Vec<u8> {
    let mut fixed = [link_type, 0].map(u16::to_le_bytes).concat();
    fixed.extend(longest.to_le_bytes());
    let options = Options::default()
        .with(IF_NAME, name.as_bytes())
        .with(IF_DESCRIPTION, description.as_bytes())
        .with(IF_TSRESOL, &[NANOSECONDS]);
    block(1, &[&fixed, &options.end()])
}

/// Returns the block of a packet. `bytes` are the first bytes of a packet of `length` bytes.
pub(super) fn packet(interface: u32, ns: u64, length: u64, bytes: &[u8], comment: &str) -> Vec<u8> {
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    let captured = (bytes.len() as u32).to_le_bytes();
    let fixed = [&interface.to_le_bytes()[..], &halves(ns), &captured, &length].concat();
    block(6, &[&fixed, bytes, &Options::default().with(COMMENT, comment.as_bytes()).end()])
}

/// Returns the statistics block of an interface at time `ns`: the number of its packets, and the number of packets that are not
/// in the file.
pub(super) fn statistics(interface: u32, ns: u64, packets: u64, left_out: u64) -> Vec<u8> {
    let options =
        Options::default().with(ISB_IFRECV, &packets.to_le_bytes()).with(ISB_IFDROP, &left_out.to_le_bytes());
    block(5, &[&interface.to_le_bytes(), &halves(ns), &options.end()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
    use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
    use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
    use pcap_file::pcapng::{Block, PcapNgReader};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_are_read_back_as_they_were_written(
            (name, description, comment) in (".{0,40}", ".{0,40}", ".{0,40}"),
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            (ns, missing, packets, left_out) in (any::<u64>(), 0u64..1 << 33, any::<u64>(), any::<u64>()),
        ) {
            let length = bytes.len() as u64 + missing;
            let file = [
                section("a test"),
                interface(147, 1 << 18, &name, &description),
                packet(0, ns, length, &bytes, &comment),
                statistics(0, ns, packets, left_out),
            ];
            prop_assert!(file.iter().all(|block| block.len() % 4 == 0));
            let file = file.concat();
            let mut reader = PcapNgReader::new(&*file).unwrap();
            let Block::InterfaceDescription(found) = reader.next_block().unwrap().unwrap() else { panic!() };
            prop_assert_eq!(found.options, [
                InterfaceDescriptionOption::IfName(name.into()),
                InterfaceDescriptionOption::IfDescription(description.into()),
                InterfaceDescriptionOption::IfTsResol(9),
            ]);
            let Block::EnhancedPacket(found) = reader.next_block().unwrap().unwrap() else { panic!() };
            prop_assert_eq!((found.interface_id, found.timestamp.as_nanos()), (0, u128::from(ns)));
            prop_assert_eq!((&*found.data, u64::from(found.original_len)), (&*bytes, length.min(u64::from(u32::MAX))));
            prop_assert_eq!(found.options, [EnhancedPacketOption::Comment(comment.into())]);
            let Block::InterfaceStatistics(found) = reader.next_block().unwrap().unwrap() else { panic!() };
            prop_assert_eq!(found.options, [
                InterfaceStatisticsOption::IsbIfRecv(packets),
                InterfaceStatisticsOption::IsbIfDrop(left_out),
            ]);
            prop_assert!(reader.next_block().is_none());
        }
    }
}
