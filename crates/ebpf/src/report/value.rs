//! Values of maps as JSON with the names of their types, as bpftool prints and reads them.

use crate::object::btf::{Btf, DEEPEST, Kind};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

/// A value with members in their own order.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// A number.
    Number(i128),
    /// True or false.
    Truth(bool),
    /// A text or an address.
    Text(String),
    /// Elements.
    List(Vec<Shown>),
    /// Members.
    Members(Vec<(String, Shown)>),
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Shown::Number(number) => match i64::try_from(*number) {
                Ok(number) => to.serialize_i64(number),
                Err(_) => to.serialize_u64(*number as u64),
            },
            Shown::Truth(truth) => to.serialize_bool(*truth),
            Shown::Text(text) => to.serialize_str(text),
            Shown::List(elements) => {
                let mut list = to.serialize_seq(Some(elements.len()))?;
                elements.iter().try_for_each(|element| list.serialize_element(element))?;
                list.end()
            }
            Shown::Members(members) => {
                let mut map = to.serialize_map(Some(members.len()))?;
                members.iter().try_for_each(|(name, member)| map.serialize_entry(name, member))?;
                map.end()
            }
        }
    }
}

/// Bytes as bpftool prints them.
pub fn hex(bytes: &[u8]) -> Vec<String> {
    bytes.iter().map(|byte| format!("{byte:#04x}")).collect()
}

/// The number in bits of a value, little-endian.
fn bits(bytes: &[u8], first: usize, count: usize) -> Option<u64> {
    let mut word = [0; 16];
    let part = bytes.get(first / 8..bytes.len().min(first / 8 + 16))?;
    word[..part.len()].copy_from_slice(part);
    let value = u128::from_le_bytes(word) >> (first % 8);
    Some(value as u64 & (u64::MAX >> (64 - count.clamp(1, 64))))
}

fn number(bits: u64, count: usize, signed: bool) -> i128 {
    let unused = 64 - count.clamp(1, 64) as u32;
    if signed { i128::from(((bits << unused) as i64) >> unused) } else { i128::from(bits) }
}

/// A value of a type; none where BTF does not describe it.
pub fn show(btf: &Btf, type_id: u32, bytes: &[u8]) -> Option<Shown> {
    shown(btf, type_id, bytes, 0, DEEPEST)
}

fn shown(btf: &Btf, type_id: u32, bytes: &[u8], width: usize, depth: usize) -> Option<Shown> {
    let depth = depth.checked_sub(1)?;
    match btf.kind(type_id)? {
        Kind::Int { boolean: true, .. } => Some(Shown::Truth(bytes.iter().any(|&byte| byte != 0))),
        Kind::Int { size, signed, .. } if *size <= 8 => {
            let count = if width == 0 { 8 * *size as usize } else { width };
            Some(Shown::Number(number(bits(bytes, 0, count)?, count, *signed)))
        }
        Kind::Enum { size, signed, values } => {
            let count = 8 * *size as usize;
            let value = number(bits(bytes, 0, count)?, count, *signed);
            let name = values.iter().find(|(_, known)| i128::from(*known) == value);
            Some(name.map_or(Shown::Number(value), |(name, _)| Shown::Text(name.clone())))
        }
        Kind::Pointer(_) => Some(Shown::Text(format!("{:#x}", bits(bytes, 0, 64)?))),
        Kind::Array { element, count } => {
            let size = btf.size(*element)? as usize;
            let parts = bytes.chunks_exact(size.max(1)).take(*count as usize);
            Some(Shown::List(parts.map(|part| shown(btf, *element, part, 0, depth)).collect::<Option<_>>()?))
        }
        Kind::Composite { members, .. } => {
            let member = |member: &crate::object::btf::Member| {
                let (bit, count) = (member.bit as usize, member.bits as usize);
                let value = if count > 0 {
                    let signed = matches!(btf.kind(member.type_id)?, Kind::Int { signed: true, .. });
                    Shown::Number(number(bits(bytes, bit, count)?, count, signed))
                } else {
                    let size = btf.size(member.type_id)? as usize;
                    shown(btf, member.type_id, bytes.get(bit / 8..bit / 8 + size)?, 0, depth)?
                };
                Some((member.name.clone(), value))
            };
            Some(Shown::Members(members.iter().map(member).collect::<Option<_>>()?))
        }
        Kind::Section(variables) => {
            let variable = |placed: &crate::object::btf::Placed| {
                let (at, size) = (placed.offset as usize, btf.size(placed.type_id)? as usize);
                let name = btf.types.get(placed.type_id as usize)?.name.clone();
                let value = shown(btf, placed.type_id, bytes.get(at..at.checked_add(size)?)?, 0, depth)?;
                Some(Shown::Members(vec![(name, value)]))
            };
            let all = variables.iter().map(variable).collect::<Option<_>>()?;
            let name =
                btf.types.iter().find(|t| matches!(&t.kind, Kind::Section(own) if own == variables))?;
            Some(Shown::Members(vec![(name.name.clone(), Shown::List(all))]))
        }
        _ => None,
    }
}

/// The bytes of a value: a list of bytes, or numbers, lists and members by its type.
///
/// # Errors
/// The problem and the advice.
pub fn read(btf: &Btf, type_id: u32, size: usize, value: &Value) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; size];
    if let Value::Array(list) = value
        && list.len() == size
        && let Some(found) = list.iter().map(byte).collect::<Option<Vec<u8>>>()
    {
        return Ok(found);
    }
    write(btf, type_id, &mut bytes, value, DEEPEST)?;
    Ok(bytes)
}

/// A byte, as a number or as bpftool's text.
fn byte(value: &Value) -> Option<u8> {
    match value {
        Value::String(text) => u8::from_str_radix(text.strip_prefix("0x")?, 16).ok(),
        Value::Number(number) => u8::try_from(number.as_u64()?).ok(),
        _ => None,
    }
}

fn write(btf: &Btf, type_id: u32, bytes: &mut [u8], value: &Value, depth: usize) -> Result<(), String> {
    let unfit = |what: &str| Err(format!("{value} is no value of {} bytes; write {what}", bytes.len()));
    let Some(depth) = depth.checked_sub(1) else { return unfit("a list of its bytes") };
    match (btf.kind(type_id), value) {
        (Some(Kind::Composite { members, .. }), Value::Object(given)) => {
            for (name, value) in given {
                let member = members.iter().find(|member| member.name == *name && member.bits == 0);
                let Some(member) = member else {
                    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
                    return Err(format!("there is no member {name}; members are {}", names.join(", ")));
                };
                let at = member.bit as usize / 8;
                let part = btf.size(member.type_id).and_then(|size| bytes.get_mut(at..at + size as usize));
                let part =
                    part.ok_or_else(|| format!("member {name} is too large; write a list of bytes"))?;
                write(btf, member.type_id, part, value, depth)?;
            }
            Ok(())
        }
        (Some(Kind::Array { element, .. }), Value::Array(given)) => {
            let size = btf.size(*element).unwrap_or(1).max(1) as usize;
            if given.len() * size > bytes.len() {
                return unfit("fewer elements");
            }
            let parts = bytes.chunks_exact_mut(size).zip(given);
            parts.into_iter().try_for_each(|(part, value)| write(btf, *element, part, value, depth))
        }
        (Some(Kind::Enum { values, .. }), Value::String(name)) => {
            match values.iter().find(|(known, _)| known == name) {
                Some((_, number)) => {
                    let count = bytes.len().min(8);
                    bytes[..count].copy_from_slice(&number.to_le_bytes()[..count]);
                    Ok(())
                }
                None => unfit("the name of a value"),
            }
        }
        (_, Value::Bool(truth)) if !bytes.is_empty() => {
            bytes[0] = u8::from(*truth);
            Ok(())
        }
        (_, Value::Number(given)) if bytes.len() <= 8 => {
            let (word, fits) = match (given.as_u64(), given.as_i64()) {
                (Some(word), _) => (word, bytes.len() == 8 || word >> (8 * bytes.len()) == 0),
                (None, Some(word)) => (word as u64, bytes.len() == 8 || word >> (8 * bytes.len() - 1) == -1),
                _ => (0, false),
            };
            if !fits {
                return unfit("a smaller whole number");
            }
            let count = bytes.len();
            bytes.copy_from_slice(&word.to_le_bytes()[..count]);
            Ok(())
        }
        _ => unfit("a number, a list of its bytes, or its members"),
    }
}
