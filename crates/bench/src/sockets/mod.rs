//! Benchmarks of sockets. One measures streams on many connections, as iperf3 does. The other measures requests and their
//! replies, as netperf does.
//!
//! Rank 0 has the measured card. Rank 1 is its peer, with the same card unless the request names another. In a row, all figures
//! of CPUs, of the card and of TCP belong to rank 0, in the measured time.

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

/// The port on which a rank listens for connections.
const PORT: u16 = 5001;

/// The inputs that reproduce a report of a benchmark of sockets.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "SocketsManifest")]
pub struct Manifest {
    /// The cards, by name.
    pub specs: BTreeMap<String, CardManifest>,
    /// The card of the peer, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerManifest>,
    /// `--set` overrides, as given. They do not apply to the card in `peer`.
    pub overrides: Vec<String>,
    /// The topology.
    pub topology: String,
    /// The flow control of the network, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_control: Option<String>,
    /// The faults of the network, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<String>,
    /// Virtual time from the first byte to the begin of the measured time.
    pub warmup_ns: f64,
    /// Length of the measured time.
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

/// Converts the error of a run. An error of a socket call counts as an error of the program.
fn failed(error: Error) -> Error {
    match error {
        Error::System { text, .. } => Error::Program(text),
        error => error,
    }
}

/// Returns the error of a point in which nothing arrived in the measured time. Either packets were lost, or the measured time is
/// too short.
fn nothing_came(what: &str, usage: &Usage, faults: Option<&str>) -> Error {
    let (resent, dropped) = (usage.retransmissions, usage.dropped);
    if resent + dropped == 0 && faults.is_none() {
        return Error::Input(format!("no {what} came in the measured time; write a longer --duration"));
    }
    let faults = faults.map_or(String::new(), |faults| format!(" under faults {faults}"));
    Error::Undelivered(format!(
        "no {what} came in the measured time{faults}: {resent} segments were retransmitted, and {dropped} \
         frames were dropped; a connection waits for retransmissions, so write a longer --duration"
    ))
}

/// The bytes of a connection's stream. Byte i depends only on i. So every receiver can check the bytes, whatever the sizes
/// of calls are.
struct Bytes(Vec<u8>);

impl Bytes {
    /// The bytes repeat after this number. It is prime, so it is no multiple of a call's size.
    const PERIOD: usize = 65_521;

    /// Returns enough bytes for calls of up to `most` bytes.
    fn new(most: usize) -> Bytes {
        let byte = |at: usize| ((at % Bytes::PERIOD).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as u8;
        Bytes((0..Bytes::PERIOD + most).map(byte).collect())
    }

    /// Returns `length` bytes of the stream, from `position` on.
    fn at(&self, position: u64, length: usize) -> &[u8] {
        let from = (position % Bytes::PERIOD as u64) as usize;
        &self.0[from..from + length]
    }

    /// Whether `bytes` are the bytes of the stream from `position` on.
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
        // The check detects lost and repeated bytes.
        assert_ne!(bytes.at(0, 64), bytes.at(1448, 64));
    }
}
