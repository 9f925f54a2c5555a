//! Contents of maps as JSON: lists of entries, as `bpftool -j map dump` prints them.

use super::value::{self, Shown, hex};
use crate::machine::Machine;
use crate::map::{Errno, Item, MapKind};
use crate::object::btf::Btf;
use serde::Serialize;
use serde_json::Value;

/// An entry.
#[derive(Debug, Serialize)]
pub struct Dumped {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<OfCpu<Vec<String>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    formatted: Option<Formatted>,
}

#[derive(Debug, Serialize)]
struct OfCpu<T> {
    cpu: usize,
    value: T,
}

/// An entry by its types.
#[derive(Debug, Serialize)]
struct Formatted {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<OfCpu<Shown>>>,
}

/// All entries of a map.
pub fn dump(machine: &Machine, number: usize, btf: &Btf) -> Vec<Dumped> {
    let map = &machine.maps[number];
    dump_items(&map.items(), map.kind, btf, map.definition.types)
}

/// Entries of a map of a kind, with the types of its keys and values.
pub fn dump_items(items: &[Item], kind: MapKind, btf: &Btf, types: (u32, u32)) -> Vec<Dumped> {
    items.iter().map(|item| dumped(item, kind, btf, types)).collect()
}

/// The entry of a key; none if there is none.
///
/// # Errors
/// The key is no key of the map, or the map has no keys.
pub fn find(machine: &Machine, number: usize, btf: &Btf, key: &Value) -> Result<Option<Dumped>, String> {
    let map = &machine.maps[number];
    let key = key_of(machine, number, btf, key)?;
    let item = map.get(&key).map(|values| Item { key, values });
    Ok(item.map(|item| dumped(&item, map.kind, btf, map.definition.types)))
}

/// Removes the entry of a key. The inner error is Linux's.
///
/// # Errors
/// As [`find`] has them.
pub fn remove(
    machine: &mut Machine,
    number: usize,
    btf: &Btf,
    key: &Value,
) -> Result<Result<(), Errno>, String> {
    let key = key_of(machine, number, btf, key)?;
    Ok(machine.maps[number].remove(&key))
}

fn key_of(machine: &Machine, number: usize, btf: &Btf, key: &Value) -> Result<Vec<u8>, String> {
    let definition = &machine.maps[number].definition;
    match definition.key_size {
        0 => Err("it has no keys; read its entries".to_owned()),
        size => value::read(btf, definition.types.0, size as usize, key),
    }
}

fn dumped(item: &Item, kind: MapKind, btf: &Btf, types: (u32, u32)) -> Dumped {
    let key = (!item.key.is_empty()).then(|| hex(&item.key));
    let shown_key = btf.kind(types.0).and_then(|_| value::show(btf, types.0, &item.key));
    let shown: Option<Vec<Shown>> =
        item.values.iter().map(|bytes| value::show(btf, types.1, bytes)).collect();
    let shown = shown.filter(|_| types.1 != 0);
    if kind.is_per_cpu() {
        let of_cpu = |(cpu, value)| OfCpu { cpu, value };
        let values = item.values.iter().map(|bytes| hex(bytes)).enumerate().map(of_cpu).collect();
        let formatted = shown.map(|shown| {
            let values = shown.into_iter().enumerate().map(|(cpu, value)| OfCpu { cpu, value }).collect();
            Formatted { key: shown_key, value: None, values: Some(values) }
        });
        return Dumped { key, value: None, values: Some(values), formatted };
    }
    let first = item.values.first();
    let formatted = shown.and_then(|shown| shown.into_iter().next()).map(|value| Formatted {
        key: shown_key,
        value: Some(value),
        values: None,
    });
    Dumped { key, value: first.map(|bytes| hex(bytes)), values: None, formatted }
}

/// Puts entries into a map. Values of maps of maps and program arrays are names.
///
/// # Errors
/// The entry, the problem and the advice.
pub fn fill(
    machine: &mut Machine,
    number: usize,
    btf: &Btf,
    text: &str,
    program: &mut dyn FnMut(&mut Machine, &str) -> Result<usize, String>,
) -> Result<(), String> {
    let parsed: Value = serde_json::from_str(text).map_err(|error| {
        format!("no JSON ({error}); write a list of entries, as bpftool map dump -j prints")
    })?;
    let Value::Array(entries) = parsed else {
        return Err("no list; write a list of entries, as bpftool map dump -j prints".to_owned());
    };
    for (at, entry) in entries.iter().enumerate() {
        let put = put(machine, number, btf, entry, program);
        put.map_err(|problem| format!("entry {at}: {problem}"))?;
    }
    Ok(())
}

/// Puts an entry into a map, as [`fill`] does.
///
/// # Errors
/// The problem and the advice.
pub fn put(
    machine: &mut Machine,
    number: usize,
    btf: &Btf,
    entry: &Value,
    program: &mut dyn FnMut(&mut Machine, &str) -> Result<usize, String>,
) -> Result<(), String> {
    let Value::Object(given) = entry else {
        return Err("no object; write {\"key\": ..., \"value\": ...}".to_owned());
    };
    if let Some(other) =
        given.keys().find(|name| !["key", "value", "values", "formatted"].contains(&name.as_str()))
    {
        return Err(format!("unknown member {other}; write key, and value or values"));
    }
    let kind = machine.maps[number].kind;
    let (sizes, types) = {
        let definition = &machine.maps[number].definition;
        ((definition.key_size as usize, definition.value_size as usize), definition.types)
    };
    let key = match given.get("key") {
        Some(key) => value::read(btf, types.0, sizes.0, key)?,
        None if sizes.0 == 0 => Vec::new(),
        None => return Err("no key; write \"key\": ...".to_owned()),
    };
    if let (Some(Value::String(name)), true) = (given.get("value"), takes_names(kind)) {
        let value = match kind {
            MapKind::Programs => program(machine, name)?,
            _ => machine
                .map_named(name)
                .ok_or_else(|| format!("there is no map {name}; name a map of the object"))?,
        };
        return machine.maps[number].set_map(&key, value as u32).map_err(|error| refused(error, kind));
    }
    let values = values(given, kind.is_per_cpu(), machine.cpus() as usize, |value| {
        value::read(btf, types.1, sizes.1, value)
    })?;
    machine.maps[number].set(&key, &values, 0).map_err(|error| refused(error, kind))
}

fn takes_names(kind: MapKind) -> bool {
    matches!(kind, MapKind::Programs | MapKind::ArrayOfMaps | MapKind::HashOfMaps)
}

fn refused(error: Errno, kind: MapKind) -> String {
    format!("the {} does not take it ({error}); write fewer entries, and keys in its range", kind.name())
}

/// The values of all CPUs. One value alone is that of each.
fn values(
    given: &serde_json::Map<String, Value>,
    per_cpu: bool,
    cpus: usize,
    read: impl Fn(&Value) -> Result<Vec<u8>, String>,
) -> Result<Vec<Vec<u8>>, String> {
    match (given.get("value"), given.get("values")) {
        (Some(value), None) => Ok(vec![read(value)?; if per_cpu { cpus } else { 1 }]),
        (None, Some(Value::Array(list))) if per_cpu && list.len() == cpus => {
            list.iter().map(|of_cpu| read(of_cpu.get("value").unwrap_or(of_cpu))).collect()
        }
        (None, Some(_)) if per_cpu => {
            Err(format!("values of other CPUs; write {cpus}, or one value for all"))
        }
        _ => Err("no value; write \"value\": ...".to_owned()),
    }
}
