//! Benchmarks of sockets, in the manner of iperf3 and netperf: streams of many connections, and requests with their replies.
//!
//! Rank 0 has the measured card. Rank 1 is its peer, with the same card unless another one is named. A row's figures of CPUs, of
//! a card and of TCP are rank 0's, in the measured time.

mod exchange;
mod request;
mod setup;
mod stream;
mod usage;

pub use exchange::{Row as ExchangeRow, run as run_exchanges};
pub use request::{Direction, ExchangeRequest, StreamRequest};
pub use stream::{Row as StreamRow, run as run_streams};
pub use usage::{GroupUsage, Usage};

use crate::{FailedPoint, PeerManifest};
use nicety::{CardManifest, Error};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The port at which rank 0 or its peer listens.
const PORT: u16 = 5001;

/// The inputs that reproduce a report of a benchmark of sockets.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "SocketsManifest")]
pub struct Manifest {
    /// The cards, by name.
    pub specs: BTreeMap<String, CardManifest>,
    /// The peer's card, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerManifest>,
    /// `--set` overrides, as given. They do not change the peer's card.
    pub overrides: Vec<String>,
    /// The topology.
    pub topology: String,
    /// The flow control of the network, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_control: Option<String>,
    /// The faults of the network, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<String>,
    /// The time before the measured one.
    pub warmup_ns: f64,
    /// The measured time.
    pub duration_ns: f64,
}

/// The benchmark's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "SocketsBenchmark")]
pub enum Benchmark {
    /// `stream`.
    Stream,
    /// `request-response`.
    RequestResponse,
}

/// The report of a benchmark of sockets.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report<R> {
    /// The benchmark.
    pub benchmark: Benchmark,
    /// The version of nicety.
    pub version: &'static str,
    /// The seed.
    pub seed: u64,
    /// The inputs.
    pub manifest: Manifest,
    /// One row for each card and point.
    pub rows: Vec<R>,
    /// The points with a failed run, if any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_points: Vec<FailedPoint>,
}

/// Converts the error of a run: the error of a socket's call is the program's.
fn failed(error: Error) -> Error {
    match error {
        Error::System { text, .. } => Error::Program(text),
        error => error,
    }
}

/// Returns the error of a point without arrivals in the measured time, because of a loss or because it is too short.
fn nothing_came(what: &str, usage: &Usage, faults: Option<&str>) -> Error {
    let (resent, dropped) = (usage.retransmissions, usage.dropped);
    if resent + dropped == 0 && faults.is_none() {
        return Error::Input(format!("no {what} came in the measured time; write a longer --duration"));
    }
    let faults = faults.map_or(String::new(), |faults| format!(" under faults {faults}"));
    Error::Undelivered(format!(
        "no {what} came in the measured time{faults}: in it {resent} segments were sent again, and {dropped} frames dropped; \
         a connection waits for what is lost, so write a longer --duration"
    ))
}

/// The bytes of a connection's stream. Byte i is that of position i for any sizes of calls, so that every receiver can check its
/// bytes.
struct Bytes(Vec<u8>);

impl Bytes {
    /// A prime, so that no call's size divides it.
    const PERIOD: usize = 65_521;

    /// Returns the bytes for calls of up to `most` bytes.
    fn new(most: usize) -> Bytes {
        let byte = |at: usize| ((at % Bytes::PERIOD).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as u8;
        Bytes((0..Bytes::PERIOD + most).map(byte).collect())
    }

    /// Returns `length` bytes from a position on.
    fn at(&self, position: u64, length: usize) -> &[u8] {
        let from = (position % Bytes::PERIOD as u64) as usize;
        &self.0[from..from + length]
    }

    /// Whether these are the bytes from a position on.
    fn are(&self, position: u64, bytes: &[u8]) -> bool {
        self.at(position, bytes.len()) == bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streams_bytes_do_not_depend_on_the_sizes_of_calls() {
        let bytes = Bytes::new(1000);
        let (mut one, mut many) = (Vec::<u8>::new(), Vec::<u8>::new());
        for position in 0..100_000 {
            one.extend(bytes.at(position, 1));
        }
        for call in 0..100 {
            many.extend(bytes.at(call * 1000, 1000));
        }
        assert!(one == many && bytes.are(99_000, &one[99_000..]) && !bytes.are(99_001, &one[99_000..]));
        // Lost and repeated bytes are detected.
        assert_ne!(bytes.at(0, 64), bytes.at(1448, 64));
    }
}
