//! Captures of packets in the formats pcap and pcapng. The reader needs constant memory, and reads packets up to the
//! first damage.
//!
//! - `input.rs`: bytes of a file, one record at a time.
//! - `record.rs`: the record of a packet in either format.
//! - `pcap.rs`, `pcapng.rs`: the two formats.
//! - `reader.rs`: [`Capture`], the packets of either format.
//! - `file.rs`: [`open`] and [`reading`], for plain and compressed files.
//! - `source.rs`: [`source_of`], the source address of a packet of a link type.
//!
//! Formats: <https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-05.html> and
//! <https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-03.html>.

mod file;
mod input;
mod pcap;
mod pcapng;
mod reader;
mod record;
mod source;

#[cfg(test)]
mod tests;

pub use file::{begins_as_file, in_memory, open, reading};
pub use reader::{Capture, Damage, Packet};
pub use source::{Skipped, Source, ip_of, link_name, source_of};
