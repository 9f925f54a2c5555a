//! CO-RE relocations against `struct xdp_md` and the program's own types.
//!
//! A modelled machine has no kernel, so a fact about a kernel's type has no answer and is refused. Types of packets and of the
//! program itself have the same layout everywhere.

use super::btf::{Btf, DEEPEST, Kind, Member};
use super::btf_ext::CoreRelocation;
use crate::helper::Helper;
use crate::instruction::*;
use crate::map::MapKind;

/// A refused relocation.
pub(crate) struct Refusal {
    pub problem: String,
    pub advice: String,
}

const MEMBERS: [&str; 6] =
    ["data", "data_end", "data_meta", "ingress_ifindex", "rx_queue_index", "egress_ifindex"];

/// Types inside the kernel that programs read with CO-RE.
const KERNEL: [&str; 40] = [
    "task_struct",
    "sk_buff",
    "net_device",
    "xdp_buff",
    "xdp_frame",
    "xdp_rxq_info",
    "xdp_txq_info",
    "xdp_mem_info",
    "netdev_rx_queue",
    "net",
    "sock",
    "sock_common",
    "socket",
    "tcp_sock",
    "udp_sock",
    "inet_sock",
    "request_sock",
    "inet_connection_sock",
    "nf_conn",
    "file",
    "inode",
    "dentry",
    "path",
    "cred",
    "mm_struct",
    "vm_area_struct",
    "bpf_map",
    "bpf_prog",
    "bpf_array",
    "bpf_htab",
    "pt_regs",
    "cgroup",
    "css_set",
    "kernfs_node",
    "nsproxy",
    "pid",
    "signal_struct",
    "skb_shared_info",
    "neighbour",
    "dst_entry",
];

/// Types with answers that a program may give a suffix behind `___`.
const ANSWERED: [&str; 3] = ["xdp_md", "bpf_func_id", "bpf_map_type"];

/// Whether a type is the kernel's. Only for such a type a program has several definitions, told apart by suffixes.
fn is_kernel(name: &str, essential: &str) -> bool {
    KERNEL.contains(&essential) || name != essential && !ANSWERED.contains(&essential)
}

fn refusal(problem: String, advice: &str) -> Refusal {
    Refusal { problem, advice: advice.to_owned() }
}

/// Numbers of kinds, as in `enum bpf_core_relo_kind`.
mod kind {
    pub const OFFSET: u32 = 0;
    pub const SIZE: u32 = 1;
    pub const EXISTS: u32 = 2;
    pub const SIGNED: u32 = 3;
    pub const LEFT: u32 = 4;
    pub const RIGHT: u32 = 5;
    pub const TYPE_LOCAL: u32 = 6;
    pub const TYPE_TARGET: u32 = 7;
    pub const TYPE_EXISTS: u32 = 8;
    pub const TYPE_SIZE: u32 = 9;
    pub const VALUE_EXISTS: u32 = 10;
    pub const VALUE: u32 = 11;
    pub const TYPE_MATCHES: u32 = 12;
}

/// The value of a relocation.
pub(crate) fn value(btf: &Btf, relocation: &CoreRelocation) -> Result<u64, Refusal> {
    let name = btf.plain(relocation.type_id).map_or("", |found| found.name.as_str());
    let essential = name.split("___").next().unwrap_or_default();
    let places: Option<Vec<usize>> = relocation.access.split(':').map(|word| word.parse().ok()).collect();
    let damaged = || refusal(format!("a CO-RE relocation of {name} is damaged"), "compile the object again");
    let places = places.ok_or_else(damaged)?;
    if is_kernel(name, essential) && relocation.kind != kind::TYPE_LOCAL {
        let problem = format!(
            "{} belongs to the kernel, which is not modelled",
            described(btf, relocation.type_id, &places)
        );
        return Err(refusal(problem, "read only the packet, the context and maps"));
    }
    match relocation.kind {
        kind::TYPE_LOCAL | kind::TYPE_TARGET => Ok(u64::from(relocation.type_id)),
        kind::TYPE_EXISTS | kind::TYPE_MATCHES => Ok(1),
        kind::VALUE_EXISTS => {
            let value = enum_value(btf, relocation.type_id, &places).ok_or_else(damaged)?;
            Ok(u64::from(has_value(essential, value.0)))
        }
        kind::TYPE_SIZE if essential == "xdp_md" => Ok(4 * MEMBERS.len() as u64),
        kind::TYPE_SIZE => btf.size(relocation.type_id).map(u64::from).ok_or_else(damaged),
        kind::VALUE => {
            let value = enum_value(btf, relocation.type_id, &places).ok_or_else(damaged)?;
            Ok(value.1 as u64)
        }
        kind::OFFSET..=kind::RIGHT => {
            let field = field(btf, relocation.type_id, &places).ok_or_else(damaged)?;
            field_value(btf, relocation.kind, essential == "xdp_md", &field).ok_or_else(damaged)
        }
        other => Err(refusal(format!("a CO-RE relocation of kind {other}"), "use one of kinds 0 to 12")),
    }
}

/// The name and the number of a value.
fn enum_value<'b>(btf: &'b Btf, type_id: u32, places: &[usize]) -> Option<(&'b str, i64)> {
    let Kind::Enum { values, .. } = btf.kind(type_id)? else { return None };
    values.get(*places.first()?).map(|(name, value)| (name.as_str(), *value))
}

/// Whether the modelled machine has a value of an enumeration. Programs ask so for helpers and for types of maps.
fn has_value(enumeration: &str, value: &str) -> bool {
    let name = value.split("___").next().unwrap_or_default();
    match enumeration {
        "bpf_func_id" => name.strip_prefix("BPF_FUNC_").is_some_and(|name| {
            Helper::ALL.into_iter().any(|helper| helper.name().strip_prefix("bpf_") == Some(name))
        }),
        "bpf_map_type" => name
            .strip_prefix("BPF_MAP_TYPE_")
            .is_some_and(|name| MapKind::ALL.into_iter().any(|kind| kind.name().eq_ignore_ascii_case(name))),
        _ => true,
    }
}

/// A field: bits from the begin, its type, the bits of a bit field, and the name of its first member.
struct Field {
    bit: u64,
    type_id: u32,
    bits: u32,
    first: String,
}

fn field(btf: &Btf, type_id: u32, places: &[usize]) -> Option<Field> {
    let (&index, rest) = places.split_first()?;
    let mut bit =
        if index == 0 { 0 } else { (index as u64).checked_mul(8 * u64::from(btf.size(type_id)?))? };
    let (mut type_id, mut bits, mut first) = (type_id, 0, String::new());
    for &place in rest.iter().take(DEEPEST) {
        match btf.kind(type_id)? {
            Kind::Composite { members, .. } => {
                let member: &Member = members.get(place)?;
                bit = bit.checked_add(u64::from(member.bit))?;
                (type_id, bits) = (member.type_id, member.bits);
                if first.is_empty() {
                    first.clone_from(&member.name);
                }
            }
            Kind::Array { element, .. } => {
                let size = 8 * u64::from(btf.size(*element)?);
                bit = bit.checked_add(size.checked_mul(place as u64)?)?;
                (type_id, bits) = (*element, 0);
            }
            _ => return None,
        }
    }
    Some(Field { bit, type_id, bits, first })
}

fn field_value(btf: &Btf, asked: u32, context: bool, field: &Field) -> Option<u64> {
    let known = MEMBERS.iter().position(|name| *name == field.first);
    if context && asked == kind::EXISTS {
        return Some(u64::from(known.is_some()));
    }
    let mut size = u64::from(btf.size(field.type_id)?);
    let mut begin = field.bit / 8;
    if field.bits != 0 {
        // The smallest access that covers the bit field, from the type's own size on.
        begin = field.bit / 8 / size * size;
        while size < 8 && field.bit + u64::from(field.bits) > 8 * (begin + size) {
            size *= 2;
            begin = field.bit / 8 / size * size;
        }
    }
    if context {
        begin = 4 * known? as u64;
    }
    let bits = if field.bits == 0 { 8 * size } else { u64::from(field.bits) };
    match asked {
        kind::OFFSET => Some(begin),
        kind::SIZE => Some(size),
        kind::EXISTS => Some(1),
        kind::SIGNED => Some(u64::from(matches!(
            btf.kind(field.type_id)?,
            Kind::Int { signed: true, .. } | Kind::Enum { signed: true, .. }
        ))),
        kind::LEFT if field.bits == 0 => Some(64 - bits.min(64)),
        kind::LEFT => Some(64u64.checked_sub(field.bit - 8 * begin + bits)?),
        kind::RIGHT => Some(64 - bits.min(64)),
        _ => None,
    }
}

/// The type with the members that are accessed.
fn described(btf: &Btf, mut type_id: u32, places: &[usize]) -> String {
    let mut text = btf.plain(type_id).map_or_else(String::new, |found| format!("struct {}", found.name));
    for &place in places.iter().skip(1).take(DEEPEST) {
        let Some(member) = btf.members(type_id).and_then(|members| members.get(place)) else { break };
        text = format!("{text}.{}", member.name);
        type_id = member.type_id;
    }
    text
}

/// An instruction, and the second slot of a constant, with a relocation's value.
pub(crate) fn patched(
    mut slot: Instruction,
    next: Option<Instruction>,
    value: u64,
) -> Result<(Instruction, Option<Instruction>), Refusal> {
    let outside = || refusal(format!("a CO-RE value of {value} does not fit"), "make the type smaller");
    match slot.class() {
        ALU32 | ALU64 if slot.code & REGISTER == 0 => {
            slot.imm = u32::try_from(value).map_err(|_| outside())? as i32;
        }
        LDX | ST | STX => slot.offset = i16::try_from(value).map_err(|_| outside())?,
        LD if slot.is_wide() => {
            let mut next = next.ok_or_else(outside)?;
            (slot.imm, next.imm) = (value as i32, (value >> 32) as i32);
            return Ok((slot, Some(next)));
        }
        _ => {
            return Err(refusal(
                "a CO-RE relocation of another instruction".to_owned(),
                "compile the object again",
            ));
        }
    }
    Ok((slot, None))
}
