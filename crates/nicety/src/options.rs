//! Options of all requests with a network: their documentation, defaults and values.

use crate::{Error, faults, flow};
use nicety_fabric::{Faults, FlowControl, Topology};
use schemars::JsonSchema;
use serde::Deserialize;

/// The documentation of `noise` in requests.
pub const NOISE: &str = "Background noise on the hosts' CPUs, as in 1ms,25us; add ,fixed for a fixed period, and \
    ,rank=N for one host; or a file with a trace of it.";
/// The documentation of `seed` in requests.
pub const SEED: &str = "Seed of all random streams: the same seed gives the same report to the last byte.";

/// The network of a run, and its seed. Requests of runs with a network include these fields (by `serde(flatten)`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct NetworkOptions {
    /// Topology of the network: `pair`; `star`: hosts around a switch; `fat-tree:PORTS`, as in fat-tree:36, or
    /// `fat-tree:PORTS:LEVELS:ROUTING`; `torus:XxYxZ`, as in torus:4x4x4; or `ring:SWITCHES`. The default depends on the number
    /// of hosts.
    #[serde(default)]
    #[schemars(extend("metavar" = "NAME"))]
    pub topology: Option<String>,
    /// Flow control of switches: `credits`; `none`: switches drop packets; or `pfc`: they pause senders. Options as
    /// in none,buffer=1Mi,per=shared,alpha=1/2 or pfc,buffer=256Ki,xoff=128Ki,xon=120Ki,headroom=40Ki,quanta=65535.
    /// Default: credits.
    #[serde(default)]
    #[schemars(extend("metavar" = "credits|none|pfc[,KEY=VALUE]"))]
    pub flow_control: Option<String>,
    /// Faults of the network: a TOML file, or a line such as
    /// loss=1e-3,corrupt=1e-4,duplicate=1e-3,reorder=1e-3:5us,burst=4,seed=7,fail=hosts.1@2ms.
    #[serde(default)]
    #[schemars(extend("metavar" = "FILE.toml|LINE", "format" = "faults"))]
    pub faults: Option<String>,
    /// The seed of every random stream.
    #[serde(default = "default_seed")]
    #[schemars(extend("description" = SEED))]
    pub seed: u64,
}

impl Default for NetworkOptions {
    /// The options of a request without network options.
    fn default() -> NetworkOptions {
        NetworkOptions { topology: None, flow_control: None, faults: None, seed: default_seed() }
    }
}

impl NetworkOptions {
    /// Returns the requested topology, if any.
    ///
    /// # Errors
    /// [`Error::Input`] when there is no such topology.
    pub fn topology(&self) -> Result<Option<Topology>, Error> {
        Ok(self.topology.as_deref().map(str::parse).transpose()?)
    }

    /// Returns the flow control.
    ///
    /// # Errors
    /// [`Error::Input`] with the key and a correction.
    pub fn flow_control(&self) -> Result<FlowControl, Error> {
        Ok(self.flow_control.as_deref().map(flow::parse).transpose()?.unwrap_or_default())
    }

    /// Returns the faults.
    ///
    /// # Errors
    /// [`Error::Input`] with the key and a correction.
    pub fn faults(&self) -> Result<Faults, Error> {
        Ok(self.faults.as_deref().map(faults::parse).transpose()?.unwrap_or_default())
    }
}

/// The threads of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Threads {
    /// The number of threads, each with a block of hosts. The result does not depend on it. With cards, each thread takes the
    /// memory of a run in one thread.
    #[serde(default = "one_thread")]
    #[schemars(range(min = 1, max = MOST_THREADS))]
    pub threads: u32,
}

impl Default for Threads {
    fn default() -> Threads {
        Threads { threads: one_thread() }
    }
}

/// The seed of a request without a seed.
pub const fn default_seed() -> u64 {
    1
}

/// Maximum number of threads. No known machine runs faster with more.
pub const MOST_THREADS: u32 = 1024;

/// The number of threads of a request without this number.
const fn one_thread() -> u32 {
    1
}
