//! Options in the requests of all runs with a network: their documentation and their defaults.

/// The documentation of `topology` in requests.
pub const TOPOLOGY: &str = "Topology of the network: `pair`; `star`: hosts around a switch; `fat-tree:PORTS`, as in \
    fat-tree:36, or `fat-tree:PORTS:LEVELS:ROUTING`; `torus:XxYxZ`, as in torus:4x4x4; or `ring:SWITCHES`. Default: by the number \
    of hosts.";
/// The documentation of `flow_control` in requests.
pub const FLOW: &str = "Flow control of switches: `credits`; `none`: switches drop \
    packets; or `pfc`: they pause senders. Options as in none,buffer=1Mi,per=shared,alpha=1/2 or \
    pfc,buffer=256Ki,xoff=128Ki,xon=120Ki,headroom=40Ki,quanta=65535. Default: credits.";
/// The documentation of `noise` in requests.
pub const NOISE: &str = "Background noise on the hosts' CPUs, as in 1ms,25us; add ,fixed for a fixed period, and \
    ,rank=N for one host; or a file with a trace of it.";
/// The documentation of `faults` in requests.
pub const FAULTS: &str = "Faults of the network: a TOML file, or a line such as \
    loss=1e-3,corrupt=1e-4,duplicate=1e-3,reorder=1e-3:5us,burst=4,seed=7,fail=hosts.1@2ms.";
/// The documentation of `seed` in requests.
pub const SEED: &str = "Of every random stream: the same seed gives the same report to the last byte.";

/// The default of every seed.
pub const fn default_seed() -> u64 {
    1
}

/// Maximum number of threads. More are no gain on any machine.
pub const MOST_THREADS: u32 = 1024;

/// The default of every number of threads.
pub const fn one_thread() -> u32 {
    1
}
