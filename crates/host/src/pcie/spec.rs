//! The specification of a PCI Express link, with the constants of the PCI Express Base Specification.

use super::access::AccessSpec;
use super::iommu::IommuSpec;
use super::root::RootSpec;
use nicety_types::{Duration, Gap};

/// The lane counts of the Base Specification. No connector has x12 or x32, but root ports and on-board links may have
/// them.
pub const LANES: [u32; 7] = [1, 2, 4, 8, 12, 16, 32];

/// Size in bytes of a flow-control credit for data: four doublewords (Base Specification, Transaction Layer, Flow
/// Control).
pub(super) const CREDIT_BYTES: u64 = 16;

/// No memory request crosses a boundary of 4 KiB (Transaction Layer, TLPs with Data Payloads and Memory Requests).
pub(super) const BOUNDARY: u64 = 4096;

/// Size in bytes of a data link layer packet on the wire: type and content 4, CRC 2 and framing 2. The framing consists
/// of the SDP and END symbols with 8b/10b, or of the SDP token with 128b/130b.
pub(super) const DLLP: u64 = 8;

/// Size in bytes of a TLP's framing and data link layer fields. With 8b/10b: STP 1, sequence number 2, LCRC 4, END 1
/// (Physical Layer, Framing; Data Link Layer, TLP format). With 128b/130b: LCRC 4, and an STP token of 4. The token
/// holds the sequence number, and there is no END.
pub(super) const TLP_FRAMING: u64 = 8;

/// Size in bytes of a completion's header: three doublewords, since it is routed by ID (Transaction Layer, Completion
/// Rules).
pub(super) const COMPLETION_HEADER: u64 = 12;

/// Size in bytes of the TLP digest, which has the end-to-end CRC: one doubleword (Transaction Layer, TLP Digest Rules).
pub(super) const DIGEST: u64 = 4;

/// Maximum credits that a receiver may have advertised and outstanding without scaling (Transaction Layer, Flow Control
/// Rules). They are half of the range of the 8-bit header counter and of the 12-bit data counter. With scaling, from 16
/// GT/s on, the maximum is 16 times as high.
pub const UNSCALED: Credits = Credits { headers: 127, data: 2047 };
const SCALE: u64 = 16;

/// A generation of PCI Express: the rate of a lane and its encoding.
///
/// | generation | a lane, GT/s | encoding | x1 | x2 | x4 | x8 | x16 | x32 |
/// |---|---|---|---|---|---|---|---|---|
/// | 1 | 2.5 | 8b/10b | 2.000 | 4.000 | 8.000 | 16.000 | 32.000 | 64.000 |
/// | 2 | 5 | 8b/10b | 4.000 | 8.000 | 16.000 | 32.000 | 64.000 | 128.000 |
/// | 3 | 8 | 128b/130b | 7.877 | 15.754 | 31.508 | 63.015 | 126.031 | 252.062 |
/// | 4 | 16 | 128b/130b | 15.754 | 31.508 | 63.015 | 126.031 | 252.062 | 504.123 |
/// | 5 | 32 | 128b/130b | 31.508 | 63.015 | 126.031 | 252.062 | 504.123 | 1008.246 |
///
/// The rates are raw, in Gb/s per direction: after the encoding, before packet overhead.
///
/// Generation 6 sends flits of 256 bytes, with another header format and shared credits. It needs another model, not
/// only a higher rate, so it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// 2.5 GT/s.
    Gen1 = 1,
    /// 5 GT/s.
    Gen2,
    /// 8 GT/s.
    Gen3,
    /// 16 GT/s.
    Gen4,
    /// 32 GT/s.
    Gen5,
}

impl Generation {
    /// All modelled generations.
    pub const ALL: [Generation; 5] =
        [Generation::Gen1, Generation::Gen2, Generation::Gen3, Generation::Gen4, Generation::Gen5];

    /// Returns the generation with this number, if it is modelled.
    pub fn from_number(number: u64) -> Option<Generation> {
        Generation::ALL.into_iter().find(|g| *g as u64 == number)
    }

    /// Millions of transfers per second and lane (Physical Layer, Electrical).
    pub const fn megatransfers(self) -> u64 {
        match self {
            Generation::Gen1 => 2_500,
            Generation::Gen2 => 5_000,
            Generation::Gen3 => 8_000,
            Generation::Gen4 => 16_000,
            Generation::Gen5 => 32_000,
        }
    }

    /// Number of data bits, and number of wire bits that encode them (Physical Layer, Logical). 8b/10b below 8 GT/s,
    /// and 128b/130b from 8 GT/s on.
    pub const fn encoding(self) -> (u64, u64) {
        match self {
            Generation::Gen1 | Generation::Gen2 => (8, 10),
            _ => (128, 130),
        }
    }

    /// Time per byte on the wire with `lanes` lanes.
    pub const fn gap(self, lanes: u32) -> Gap {
        let (data, wire) = self.encoding();
        // A byte has 8 bits. A bit takes 10^6 / megatransfers ps.
        Gap::new(8 * wire * 1_000_000, data * self.megatransfers() * lanes as u64)
    }

    /// Symbol time in ps: 10 bit times with 8b/10b, and 8 bit times from 8 GT/s on.
    const fn symbol_ps(self) -> u64 {
        let bits = if self.encoding().0 == 8 { 10 } else { 8 };
        bits * 1_000_000 / self.megatransfers()
    }

    /// The InternalDelay of the latency limits in symbol times: 19, 70, and 115 for 8 GT/s and higher rates. Source:
    /// Data Link Layer, LCRC and Sequence Number Rules, Maximum Ack Latency Limits.
    const fn internal_delay(self) -> u64 {
        match self {
            Generation::Gen1 => 19,
            Generation::Gen2 => 70,
            _ => 115,
        }
    }

    /// The size of a SKP ordered set in symbols, and the maximum number of symbol times between two sets (Physical
    /// Layer, Clock Tolerance Compensation). SKP ordered sets go on every lane between TLPs and compensate for
    /// different clocks. With 8b/10b: a COM and three SKP every 1180 to 1538 symbol times. With 128b/130b: a block of
    /// 16 symbols every 370 to 375 blocks.
    const fn skip(self) -> (u64, u64) {
        if self.encoding().0 == 8 { (4, 1538) } else { (16, 375 * 16) }
    }

    /// The time within which a receiver must send an Ack or return credits. The specification has (MPS + 28) x factor /
    /// lanes + InternalDelay, in symbol times rounded down as in its tables.
    ///
    /// The Ack limits (Data Link Layer) and the UpdateFC guidelines (Transaction Layer) have the same factors. Up to an
    /// MPS of 256 B: 1.4 on one to four lanes, 2.5 on eight lanes, 3 on more lanes. From 512 B on: 1 on up to eight
    /// lanes, 2 on more lanes.
    pub const fn latency_limit(self, lanes: u32, mps: u64) -> Duration {
        let tenths = match (mps <= 256, lanes) {
            (true, 0..=4) => 14,
            (true, 5..=8) => 25,
            (true, _) => 30,
            (false, 0..=8) => 10,
            (false, _) => 20,
        };
        let symbols = (mps + 28) * tenths / (10 * lanes as u64) + self.internal_delay();
        Duration::from_ps(symbols * self.symbol_ps())
    }
}

/// The address size of memory requests. A request's header has three doublewords with 32-bit addresses, and four with
/// 64-bit addresses (Transaction Layer, Memory Request headers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// Addresses below 4 GiB: a header of 12 bytes.
    Bits32,
    /// All addresses: a header of 16 bytes.
    Bits64,
}

impl Addressing {
    /// Size of a memory request's header in bytes.
    pub const fn header(self) -> u64 {
        match self {
            Addressing::Bits32 => 12,
            Addressing::Bits64 => 16,
        }
    }
}

/// The rule by which a root complex cuts the answer to a read into completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Into completions as large as the MPS allows. Each completion except the last ends at a multiple of the RCB.
    Payload,
    /// At every multiple of the RCB.
    Boundary,
}

/// Flow-control credits of one class that a receiver advertises. Zero means no limit, as in InitFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credits {
    /// Maximum number of TLPs.
    pub headers: u64,
    /// Maximum payload, in units of 16 bytes.
    pub data: u64,
}

impl Credits {
    /// No limit.
    pub const INFINITE: Credits = Credits { headers: 0, data: 0 };
}

/// The specification of a PCI Express link between host and card.
#[derive(Clone, Copy, Debug)]
pub struct PcieSpec {
    /// Rate and encoding of a lane.
    pub generation: Generation,
    /// Number of lanes.
    pub lanes: u32,
    /// Max_Payload_Size: the maximum payload of a TLP, in bytes.
    pub mps: u64,
    /// Max_Read_Request_Size: the maximum number of bytes of a read request.
    pub mrrs: u64,
    /// Read Completion Boundary, in bytes: 64 or 128.
    pub rcb: u64,
    /// The rule by which the root complex cuts completions.
    pub cut: Cut,
    /// The address size of requests.
    pub addressing: Addressing,
    /// Whether every TLP carries an end-to-end CRC.
    pub ecrc: bool,
    /// Maximum number of read requests that the card may have in flight.
    pub tags: u64,
    /// Latency from host to card: from the departure of a TLP's last byte until the TLP has its effect.
    pub latency_to_card: Duration,
    /// Latency from card to host: from the departure of a TLP's last byte until the TLP has its effect.
    pub latency_to_host: Duration,
    /// The part of this latency, in either direction, after which a TLP is in the receiver's buffer.
    pub port_latency: Duration,
    /// Time from the arrival of a request at the host to the departure of its first completion.
    pub read_latency: Duration,
    /// Time from the arrival of a TLP in the receiver's buffer to its Ack. TLPs that arrive before the Ack share it.
    pub ack_delay: Duration,
    /// Time from free room in the receiver's buffer to the UpdateFC that returns the credits.
    pub update_delay: Duration,
    /// Credits for posted writes, at either receiver.
    pub posted: Credits,
    /// Header credits for read requests, at the host. Zero means no limit.
    pub non_posted_headers: u64,
    /// Credits for completions, at the card.
    pub completion: Credits,
    /// Size in bytes of the command that the host pushes before a payload.
    pub command: u64,
    /// Maximum payload of a TLP that the host pushes, in bytes.
    pub push_payload: u64,
    /// Size in bytes of an event that the card writes to the host.
    pub event: u64,
    /// Size in bytes of a counter that the card writes to the host.
    pub counter: u64,
    /// One crossing between the card's socket and that of the memory. Zero: the card is at the memory's socket.
    pub remote: Duration,
    /// The IOMMU, if it is on.
    pub iommu: Option<IommuSpec>,
    /// The last-level cache behind the root complex, if its cost is known.
    pub root: Option<RootSpec>,
    /// The card's end of the link, if its cost is known.
    pub access: Option<AccessSpec>,
}

/// An invalid key of a link's specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key of `[bus.pcie]`.
    pub key: &'static str,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub help: String,
}

impl PcieSpec {
    /// Returns a link with the PCI Express specification's defaults and limits.
    ///
    /// MPS 256 B and MRRS 512 B, as on servers (Neugebauer et al., SIGCOMM 2018). RCB 64 B, 64-bit addresses, no ECRC,
    /// 8-bit tags, and the maximum credits without scaling. Ack and UpdateFC delays are at the specification's limits.
    /// `latency` is the latency of either direction.
    pub fn new(generation: Generation, lanes: u32, latency: Duration) -> PcieSpec {
        let mps = 256;
        let limit = generation.latency_limit(lanes, mps);
        PcieSpec {
            generation,
            lanes,
            mps,
            mrrs: 512,
            rcb: 64,
            cut: Cut::Payload,
            addressing: Addressing::Bits64,
            ecrc: false,
            tags: 256,
            latency_to_card: latency,
            latency_to_host: latency,
            port_latency: latency.min(Duration::from_ns(50)),
            read_latency: Duration::ZERO,
            ack_delay: limit,
            update_delay: limit,
            posted: UNSCALED,
            non_posted_headers: UNSCALED.headers,
            completion: Credits::INFINITE,
            command: 64,
            push_payload: mps,
            event: 64,
            counter: 16,
            remote: Duration::ZERO,
            iommu: None,
            root: None,
            access: None,
        }
    }

    /// Returns all violations of the PCI Express specification. A link needs a specification without problems.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |key, message: String, help: &str| {
            problems.push(Problem { key, message, help: help.to_owned() });
        };
        if !LANES.contains(&self.lanes) {
            refuse("lanes", format!("a link has no {} lanes", self.lanes), "write 1, 2, 4, 8, 12, 16 or 32");
        }
        for (key, size) in [("mps", self.mps), ("mrrs", self.mrrs)] {
            if !size.is_power_of_two() || !(128..=4096).contains(&size) {
                let help = "write 128 B, 256 B, 512 B, 1 KiB, 2 KiB or 4 KiB";
                refuse(key, format!("{size} B is not among the sizes of the specification"), help);
            }
        }
        if ![64, 128].contains(&self.rcb) {
            refuse("rcb", format!("a read completion boundary is not {} B", self.rcb), "write 64 B or 128 B");
        }
        // Rev. 4.0 introduced 10-bit tags. Tags in which the upper two bits are zero are not used, so 768 tags are
        // left.
        let tags = if self.generation >= Generation::Gen4 { 768 } else { 256 };
        if self.tags == 0 || self.tags > tags {
            let message = format!("generation {} has tags for 1 to {tags} requests", self.generation as u8);
            refuse("tags", message, "write a number in that range; 32 without extended tags, 256 with");
        }
        let shortest = self.latency_to_card.min(self.latency_to_host);
        if self.port_latency > shortest {
            let message = "the port latency is a part of a crossing, so it cannot be longer".to_owned();
            refuse("port_latency", message, "write at most the shorter latency of the two directions");
        }
        if self.push_payload > self.mps || !self.push_payload.is_power_of_two() || self.push_payload < 4 {
            let message = format!("a TLP of the host cannot carry {} B", self.push_payload);
            refuse("push_payload", message, "write a power of two from 4 B to the mps");
        }
        let scale = if self.generation >= Generation::Gen4 { SCALE } else { 1 };
        let most = Credits { headers: UNSCALED.headers * scale, data: UNSCALED.data * scale };
        // A receiver advertises credits for at least one TLP with the maximum payload (Transaction Layer, Flow Control
        // Rules).
        let least = self.mps / CREDIT_BYTES;
        for (key, value, least, most) in [
            ("posted_headers", self.posted.headers, 1, most.headers),
            ("posted_data", self.posted.data, least, most.data),
            ("non_posted_headers", self.non_posted_headers, 1, most.headers),
            ("completion_headers", self.completion.headers, 1, most.headers),
            ("completion_data", self.completion.data, least, most.data),
        ] {
            if value != 0 && !(least..=most).contains(&value) {
                let generation = self.generation as u8;
                let message =
                    format!("generation {generation} with this mps allows {least} to {most} credits");
                refuse(key, message, "write a number in that range, or 0 for no limit");
            }
        }
        problems
    }

    /// Time per byte on the wire.
    pub const fn gap(&self) -> Gap {
        self.generation.gap(self.lanes)
    }

    /// Returns the duration of a SKP ordered set, and the interval between two sets.
    pub fn skip(&self) -> (Duration, Duration) {
        let (symbols, interval) = self.generation.skip();
        let lanes = self.lanes as u64;
        (self.gap().cover(symbols * lanes), self.gap().cover(interval * lanes))
    }

    const fn digest(&self) -> u64 {
        if self.ecrc { DIGEST } else { 0 }
    }

    /// Size on the wire, in bytes, of a memory write. `doublewords` is its payload in bytes, padded to doublewords.
    pub const fn write_bytes(&self, doublewords: u64) -> u64 {
        TLP_FRAMING + self.addressing.header() + doublewords + self.digest()
    }

    /// Size on the wire, in bytes, of a memory read request.
    pub const fn request_bytes(&self) -> u64 {
        TLP_FRAMING + self.addressing.header() + self.digest()
    }

    /// Size on the wire, in bytes, of a completion. `doublewords` is its payload in bytes, padded to doublewords.
    pub const fn completion_bytes(&self, doublewords: u64) -> u64 {
        TLP_FRAMING + COMPLETION_HEADER + doublewords + self.digest()
    }
}
