//! Programs of an object, told apart by the names of their sections.

use super::elf::Elf;
use super::function::Function;
use crate::error::ObjectError;
use crate::instruction::SLOT;

/// An XDP program of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of its function.
    pub name: String,
    /// The section.
    pub section: String,
    /// Where Linux attaches it.
    pub attach: Attach,
    /// Whether it takes packets in several fragments.
    pub fragments: bool,
    /// Whether tail calls alone reach it.
    pub jump: bool,
    pub(super) function: usize,
}

/// The place where Linux attaches a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attach {
    /// A device.
    #[default]
    Device,
    /// An entry of a device map.
    DeviceMap,
    /// An entry of a CPU map.
    CpuMap,
}

/// Types of programs other than XDP, by the first word of a section's name, as libbpf reads it.
const OTHER_TYPES: [&str; 41] = [
    "action",
    "cgroup",
    "cgroup_skb",
    "classifier",
    "fentry",
    "fexit",
    "flow_dissector",
    "fmod_ret",
    "freplace",
    "fsession",
    "iter",
    "kprobe",
    "kretprobe",
    "ksyscall",
    "kretsyscall",
    "lirc_mode2",
    "lsm",
    "lsm_cgroup",
    "lwt_in",
    "lwt_out",
    "lwt_seg6local",
    "lwt_xmit",
    "netkit",
    "perf_event",
    "raw_tp",
    "raw_tracepoint",
    "sk_lookup",
    "sk_msg",
    "sk_reuseport",
    "sk_skb",
    "socket",
    "sockops",
    "struct_ops",
    "syscall",
    "tc",
    "tcx",
    "tp",
    "tp_btf",
    "tracepoint",
    "uprobe",
    "uretprobe",
];

/// The type that a section's name gives to its programs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Xdp,
    /// A target of tail calls, which iproute2 puts into the map of this number at this key.
    Jump(u32, u32),
    Other,
    /// Any type: the loader of the object knows it.
    Open,
}

impl Type {
    fn of(section: &str) -> Type {
        let first = section.split(['/', '.']).next().unwrap_or_default();
        match section {
            // iproute2 attaches the section `prog` where its user names none.
            "prog" => Type::Xdp,
            _ if section.starts_with("xdp") => Type::Xdp,
            _ if OTHER_TYPES.contains(&first) => Type::Other,
            _ => match section.split_once('/').map(|(map, key)| (number(map), number(key))) {
                Some((Some(map), Some(key))) => Type::Jump(map, key),
                _ => Type::Open,
            },
        }
    }
}

/// A number as C writes it.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => u32::from_str_radix(&text[1..], 8).ok(),
        None => text.parse().ok(),
    }
}

/// The programs of a file.
pub(super) struct Programs {
    /// Those that their sections call XDP.
    pub programs: Vec<Entry>,
    /// Those of sections without a type, which the user may take as XDP.
    pub open: Vec<Entry>,
    /// Those of other types: section and name.
    pub others: Vec<(String, String)>,
    /// Targets of tail calls: numbers of the map and of its entry, and the program.
    pub jumps: Vec<(u32, u32, Entry)>,
}

pub(super) fn programs(elf: &Elf<'_>, functions: &[Function]) -> Programs {
    let mut found =
        Programs { programs: Vec::new(), open: Vec::new(), others: Vec::new(), jumps: Vec::new() };
    for (at, function) in functions.iter().enumerate() {
        let global = elf.symbols.iter().any(|s| {
            s.is_global
                && s.is_function
                && s.section == Some(function.section)
                && s.value == (function.first * SLOT) as u64
        });
        if function.section_name == ".text" || !global {
            continue;
        }
        // A question mark asks loaders to load the program on request only.
        let section = function.section_name.strip_prefix('?').unwrap_or(&function.section_name);
        match Type::of(section) {
            Type::Xdp => found.programs.push(entry(function, section, at)),
            Type::Open => found.open.push(entry(function, section, at)),
            Type::Other => found.others.push((section.to_owned(), function.name.clone())),
            Type::Jump(map, key) => {
                found.jumps.push((map, key, Entry { jump: true, ..entry(function, section, at) }));
            }
        }
    }
    found
}

fn entry(function: &Function, section: &str, at: usize) -> Entry {
    let attach = match section {
        _ if section.ends_with("/devmap") => Attach::DeviceMap,
        _ if section.ends_with("/cpumap") => Attach::CpuMap,
        _ => Attach::Device,
    };
    let fragments = section.starts_with("xdp.frags");
    Entry {
        name: function.name.clone(),
        section: section.to_owned(),
        attach,
        fragments,
        jump: false,
        function: at,
    }
}

/// The programs that an error names at most.
const MOST_NAMED: usize = 6;

impl Programs {
    /// Whether there is a program of any type.
    pub(super) const fn any(&self) -> bool {
        !(self.programs.is_empty() && self.open.is_empty() && self.others.is_empty() && self.jumps.is_empty())
    }

    /// The refusal of a file without programs that may be XDP.
    pub(super) fn none(&self) -> ObjectError {
        let mut named: Vec<String> = self
            .others
            .iter()
            .take(MOST_NAMED)
            .map(|(section, name)| format!("{name} ({section})"))
            .collect();
        if let Some(more) = self.others.len().checked_sub(MOST_NAMED).filter(|&more| more > 0) {
            named.push(format!("and {more} more"));
        }
        let problem = match named.is_empty() {
            true => "no program in it".to_owned(),
            false => format!("no XDP program; it has {}", named.join(", ")),
        };
        ObjectError::refused("the object", problem, "write a function with SEC(\"xdp\")")
    }
}
