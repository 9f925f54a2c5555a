//! Captures of packets, pcap and pcapng, read as they come: in constant memory, and as far as they are whole.
//!
//! - `input.rs`: bytes of a file, one record at a time.
//! - `record.rs`: where a packet's bytes are, its lengths and its time.
//! - `pcap.rs`, `pcapng.rs`: the two formats.
//! - `reader.rs`: [`Capture`], the packets of either.
//! - `file.rs`: [`open`] and [`reading`], of a file that may be compressed.
//! - `source.rs`: [`source_of`], where a packet of a link type comes from.
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

pub use file::{open, reading};
pub use reader::{Capture, Damage, Packet};
pub use source::{Skipped, Source, ip_of, link_name, source_of};
