//! Checks the memory of the simulating machine. A cluster that cannot fit is refused before the build. During the build
//! of a large cluster, a gauge measures memory, and refuses the cluster before the memory is exhausted.

use crate::Error;
use std::cell::Cell;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Minimum memory that the simulation of a host with its card takes, in bytes. The smallest measured value is 14 KiB.
const LEAST: u64 = 12 << 10;
/// Minimum number of hosts for the check. Fewer hosts take at most a few hundred MiB.
const FEW: u64 = 128;
/// Minimum growth of memory, in bytes, for a prediction by the gauge. A smaller growth is imprecise, because memory may
/// grow by large pages of 2 MiB.
const PRECISE: u64 = 32 << 20;
/// Minimum predicted memory of a cluster that is announced as large, in bytes.
const MUCH: u64 = 2 << 30;

/// The memory of a large cluster on the simulating machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeCluster {
    /// Number of hosts.
    pub hosts: u64,
    /// Names of the hosts' cards.
    pub card: String,
    /// Predicted memory of the built cluster, in bytes.
    pub bytes: u64,
}

impl fmt::Display for LargeCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LargeCluster { hosts, card, bytes } = self;
        write!(f, "{hosts} hosts with {card} need about {} of memory at the start", gibibytes(*bytes))
    }
}

/// Returns the memory of this process, and the memory still available to it. `None` if the system does not report them.
pub(crate) fn memory() -> Option<Memory> {
    read(Path::new("/"))
}

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Resident bytes now.
    pub(crate) resident: u64,
    /// Additional bytes that the process can allocate. The machine, the process's control groups and the address-space
    /// limit each set a limit; this is the lowest.
    pub(crate) available: u64,
}

/// Reads the files of Linux below `root`.
fn read(root: &Path) -> Option<Memory> {
    let text = |path: &str| fs::read_to_string(root.join(path)).ok();
    let status = text("proc/self/status")?;
    let resident = field(&status, "VmRSS:")?;
    let mut available = field(&text("proc/meminfo")?, "MemAvailable:")?;
    if let Some(limit) = text("proc/self/limits").as_deref().and_then(address_limit) {
        available = available.min(limit.saturating_sub(field(&status, "VmSize:")?));
    }
    for group in control_groups(root, &text("proc/self/cgroup").unwrap_or_default()) {
        if let Some(rest) = left_in(&group) {
            available = available.min(rest);
        }
    }
    Some(Memory { resident, available })
}

/// Returns a field of `/proc/meminfo` or `/proc/self/status`, converted from KiB to bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// The limit of a process's address space, if any.
fn address_limit(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the folders of a process's control groups and their parents, if any. Supports cgroup version 2, and the memory
/// controller of version 1.
fn control_groups(root: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let base = match controllers {
            "" => root.join("sys/fs/cgroup"),
            names if names.split(',').any(|name| name == "memory") => root.join("sys/fs/cgroup/memory"),
            _ => continue,
        };
        // In a container, the path may be the path on the host machine. The container's own group is then at the root.
        let own = base.join(path.trim_start_matches('/'));
        let around = own.ancestors().take_while(|folder| folder.starts_with(&base));
        found.extend(around.filter(|folder| folder.is_dir()).map(Path::to_path_buf));
    }
    found
}

/// Returns the free memory below the limit of a control group; `None` without a limit. Inactive file pages count as free, because
/// the kernel reclaims them when memory is short.
fn left_in(group: &Path) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let idle = |name: &str| {
        let text = fs::read_to_string(group.join("memory.stat")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    let (limit, used, idle) = match number("memory.max") {
        Some(limit) => (limit, number("memory.current")?, idle("inactive_file")),
        None => {
            let limit = number("memory.limit_in_bytes")?;
            (limit, number("memory.usage_in_bytes")?, idle("total_inactive_file"))
        }
    };
    Some(limit.saturating_sub(used.saturating_sub(idle.unwrap_or(0))))
}

/// Measures memory during the build of a cluster.
pub(crate) struct Gauge {
    hosts: u64,
    card: String,
    read: fn() -> Option<Memory>,
    tell: fn(&LargeCluster),
    told: Cell<bool>,
    /// Memory before the build.
    before: Option<Memory>,
    /// Resident bytes at the previous measurement, with half the hosts.
    half: Cell<u64>,
}

impl Gauge {
    /// Starts to measure before the build. `tell` is called at most once, for a large cluster.
    ///
    /// # Errors
    /// When the memory is too small even for hosts with the smallest known card.
    pub(crate) fn new(hosts: u32, card: &str, tell: fn(&LargeCluster)) -> Result<Gauge, Error> {
        Gauge::with(hosts, card, memory, tell)
    }

    fn with(
        hosts: u32,
        card: &str,
        read: fn() -> Option<Memory>,
        tell: fn(&LargeCluster),
    ) -> Result<Gauge, Error> {
        let hosts = u64::from(hosts);
        let before = if hosts < FEW { None } else { read() };
        let (card, told) = (card.to_owned(), Cell::new(false));
        let gauge = Gauge { hosts, card, read, tell, told, before, half: Cell::new(0) };
        match before {
            Some(memory) if hosts * LEAST > memory.available => {
                Err(gauge.refusal(hosts * LEAST, "at least "))
            }
            _ => Ok(gauge),
        }
    }

    /// Reports that `hosts` hosts are built. The gauge measures memory when that number is a power of two. From the
    /// growth by the second half of these hosts, it predicts the growth by the remaining hosts. The growth by the first
    /// half is not used. It includes memory that is allocated only once, and memory that was already free in this
    /// process may hide it.
    ///
    /// # Errors
    /// When all hosts need more memory than the machine has.
    pub(crate) fn built(&self, hosts: u32) -> Result<(), Error> {
        let hosts = u64::from(hosts);
        let Some(before) = self.before.filter(|_| hosts >= FEW / 4 && hosts.is_power_of_two()) else {
            return Ok(());
        };
        let Some(now) = (self.read)() else { return Ok(()) };
        let half = self.half.replace(now.resident);
        if hosts == FEW / 4 {
            return Ok(());
        }
        let taken = now.resident.saturating_sub(before.resident);
        let rest = self.hosts.saturating_sub(hosts);
        let second = now.resident.saturating_sub(half);
        if second < PRECISE.min(before.available / 16) {
            return Ok(());
        }
        let needed = taken + (u128::from(second) * u128::from(rest) / u128::from(hosts / 2)) as u64;
        if needed > before.available {
            return Err(self.refusal(needed, "about "));
        }
        if needed >= MUCH && !self.told.replace(true) {
            (self.tell)(&LargeCluster { hosts: self.hosts, card: self.card.clone(), bytes: needed });
        }
        Ok(())
    }

    fn refusal(&self, needed: u64, about: &str) -> Error {
        let available = self.before.map_or(0, |memory| memory.available);
        Error::Input(format!(
            "{} hosts with {} need {about}{} of this machine's memory at the start, but it has {} available; \
             name fewer hosts, or use a machine with more memory",
            self.hosts,
            self.card,
            gibibytes(needed),
            gibibytes(available)
        ))
    }
}

fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MI: u64 = 1 << 20;

    /// The files of a simulated machine, in a folder of the test.
    struct Machine(PathBuf);

    impl Machine {
        fn new(name: &str, files: &[(&str, &str)]) -> Machine {
            let root = std::env::temp_dir().join(format!("nicety-machine-{}-{name}", std::process::id()));
            let machine = Machine(root);
            for (path, text) in files {
                let path = machine.0.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            machine
        }

        fn available(&self) -> Option<u64> {
            read(&self.0).map(|memory| memory.available)
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    const STATUS: (&str, &str) = ("proc/self/status", "Name:\tx\nVmSize:\t  2048 kB\nVmRSS:\t  1024 kB\n");
    const MEMINFO: (&str, &str) =
        ("proc/meminfo", "MemTotal: 9999999 kB\nMemAvailable:   8388608 kB\nSwapFree: 1 kB\n");

    #[test]
    fn the_least_of_what_machine_limits_and_groups_leave() {
        assert_eq!(Machine::new("none", &[("proc/other", "")]).available(), None);
        let plain = Machine::new("plain", &[STATUS, MEMINFO]);
        assert_eq!(read(&plain.0), Some(Memory { resident: MI, available: 8 << 30 }));
        let limits =
            "Limit  Soft Limit  Hard Limit  Units\nMax address space         1073741824  unlimited  bytes\n";
        let limited = Machine::new("limited", &[STATUS, MEMINFO, ("proc/self/limits", limits)]);
        assert_eq!(limited.available(), Some((1 << 30) - 2 * MI));
        let unlimited = limits.replace("1073741824", "unlimited ");
        let machine = Machine::new("unlimited", &[STATUS, MEMINFO, ("proc/self/limits", &unlimited)]);
        assert_eq!(machine.available(), Some(8 << 30));
    }

    #[test]
    fn groups_of_both_versions_and_those_around_them() {
        let group = ("proc/self/cgroup", "0::/outer/inner\n");
        let two = |outer: &str, inner: &str| {
            Machine::new(
                &format!("two-{outer}-{inner}"),
                &[
                    STATUS,
                    MEMINFO,
                    group,
                    ("sys/fs/cgroup/outer/memory.max", outer),
                    ("sys/fs/cgroup/outer/memory.current", "104857600\n"),
                    ("sys/fs/cgroup/outer/inner/memory.max", inner),
                    ("sys/fs/cgroup/outer/inner/memory.current", "104857600\n"),
                    ("sys/fs/cgroup/outer/inner/memory.stat", "anon 5\ninactive_file 52428800\n"),
                ],
            )
            .available()
        };
        assert_eq!(two("max\n", "max\n"), Some(8 << 30));
        assert_eq!(two("max\n", "524288000\n"), Some(450 * MI));
        assert_eq!(two("209715200\n", "524288000\n"), Some(100 * MI));
        // In a container, the path of the control group is that of the machine, and the limit is at the root.
        let container = [
            STATUS,
            MEMINFO,
            ("proc/self/cgroup", "0::/docker/abc\n"),
            ("sys/fs/cgroup/memory.max", "314572800"),
            ("sys/fs/cgroup/memory.current", "104857600"),
        ];
        assert_eq!(Machine::new("container", &container).available(), Some(200 * MI));
        let one = [
            STATUS,
            MEMINFO,
            ("proc/self/cgroup", "12:cpu,cpuacct:/a\n4:memory:/a\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "209715200\n"),
            ("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "104857600\n"),
            ("sys/fs/cgroup/memory/a/memory.stat", "total_inactive_file 1048576\n"),
        ];
        assert_eq!(Machine::new("one", &one).available(), Some(101 * MI));
    }

    thread_local! {
        static RESIDENT: Cell<u64> = const { Cell::new(0) };
        static TOLD: Cell<Vec<String>> = const { Cell::new(Vec::new()) };
    }

    /// Returns a machine with 1 GiB available.
    fn small() -> Option<Memory> {
        Some(Memory { resident: RESIDENT.get(), available: 1 << 30 })
    }

    fn tell(large: &LargeCluster) {
        let mut told = TOLD.take();
        told.push(large.to_string());
        TOLD.set(told);
    }

    #[test]
    fn a_large_cluster_is_announced_once_and_early() {
        let large = || Some(Memory { resident: RESIDENT.get(), available: 16 << 30 });
        let build = |hosts: u32, each: u64, free: u64| {
            RESIDENT.set(0);
            let gauge = Gauge::with(hosts, "a card", large, tell).unwrap();
            let mut when = 0;
            for built in 1..=hosts {
                RESIDENT.set((u64::from(built) * each).saturating_sub(free).next_multiple_of(2 * MI));
                gauge.built(built).unwrap();
                let told = TOLD.take();
                if when == 0 && !told.is_empty() {
                    when = built;
                }
                TOLD.set(told);
            }
            (TOLD.take(), when)
        };
        assert_eq!(build(2047, MI, 0), (Vec::new(), 0));
        let text = "3072 hosts with a card need about 3.0 GiB of memory at the start".to_owned();
        assert_eq!(build(3072, MI, 0), (vec![text], 64));
        // Memory that was already free hides the growth at first.
        let (told, when) = build(3072, MI, 100 * MI);
        assert_eq!((told.len(), when), (1, 256));
        // A growth by single large pages is too imprecise for small hosts.
        assert_eq!(build(16_000, 20 << 10, 0), (Vec::new(), 0));
        let (told, when) = build(150_000, 20 << 10, 0);
        assert_eq!((told[0].contains("about 2.9 GiB"), when), (true, 4096));
        assert_eq!(build(127, 1 << 30, 0), (Vec::new(), 0));
    }

    #[test]
    fn a_cluster_that_will_not_fit_is_refused_early() {
        let gauge = |hosts: u32| Gauge::with(hosts, "a card", small, tell);
        let build_after = |once: u64, hosts: u32, each: u64, free: u64| {
            RESIDENT.set(0);
            let gauge = gauge(hosts)?;
            (1..=hosts).try_for_each(|built| {
                RESIDENT.set(once + (u64::from(built) * each).saturating_sub(free));
                gauge.built(built)
            })
        };
        let build = |hosts, each, free| build_after(10 * MI, hosts, each, free);
        assert_eq!(build(1000, MI, 0), Ok(()));
        let refused = build(2000, MI, 0).unwrap_err();
        let text = "2000 hosts with a card need about 2.0 GiB of this machine's memory at the start, but it has 1.0 \
                    GiB available; name fewer hosts, or use a machine with more memory";
        assert_eq!(refused, Error::Input(text.to_owned()));
        assert_eq!(RESIDENT.get(), (10 + 64) * MI);
        // The network is built only once, so its memory does not grow with the hosts.
        assert_eq!(build_after(600 * MI, 400, MI, 0), Ok(()));
        assert!(build_after(600 * MI, 500, MI, 0).is_err());
        // Memory that was already free hides only the first hosts.
        assert!(build(2000, MI, 100 * MI).is_err());
        assert!(RESIDENT.get() < 512 * MI);
        // Too many hosts for any card are refused before the build. Few hosts are not checked.
        assert!(gauge(100_000).is_err_and(|error| error.to_string().contains("at least 1.1 GiB")));
        assert_eq!(build(127, 10 * MI, 0), Ok(()));
    }
}
