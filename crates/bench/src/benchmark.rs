//! The benchmarks between hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "MessagesBenchmark")]
pub enum Benchmark {
    /// Half a round trip.
    Latency,
    /// A window of messages in one direction, in bytes per second.
    Bandwidth,
    /// A window of messages in one direction, in messages per second.
    MessageRate,
}

impl Benchmark {
    /// The name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Benchmark::Latency => "latency",
            Benchmark::Bandwidth => "bandwidth",
            Benchmark::MessageRate => "message-rate",
        }
    }

    /// Returns the default number of iterations. Large messages have fewer iterations.
    pub(super) const fn default_iterations(self, size: u64) -> u64 {
        match self {
            Benchmark::Latency => 10,
            _ if size <= 64 << 10 => 10,
            _ => 2,
        }
    }
}
