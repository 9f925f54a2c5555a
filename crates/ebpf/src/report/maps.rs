//! Contents of maps as JSON: lists of entries, as `bpftool -j map dump` prints them.

use super::value::{self, Shown, hex};
use crate::machine::{Limits, Machine};
use crate::map::{Errno, Flags, Item, Map, MapKind};
use crate::object::btf::Btf;
use crate::object::{Attach, MapDefinition, Object};
use serde::Serialize;
use serde_json::Value;

/// An entry.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dumped {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Written>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<OfCpu<Vec<String>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    formatted: Option<Formatted>,
}

/// A value: bytes, or the name of a program or of a map.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Written {
    Bytes(Vec<String>),
    Name(String),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct OfCpu<T> {
    cpu: usize,
    value: T,
}

/// An entry by its types.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    map.items().iter().map(|item| of_machine(machine, map, btf, item)).collect()
}

/// An entry of a machine's map. Programs and maps have their names, which [`fill`] takes.
fn of_machine(machine: &Machine, map: &Map, btf: &Btf, item: &Item) -> Dumped {
    let mut shown = dumped(item, map.kind, btf, map.definition.types);
    let number =
        item.values.first().and_then(|value| value.first_chunk()).map(|word| u32::from_ne_bytes(*word));
    let name = number.map(|number| number as usize).and_then(|number| match map.kind {
        MapKind::Programs => machine.program_name(number),
        MapKind::ArrayOfMaps | MapKind::HashOfMaps => {
            machine.maps.get(number).map(|inner| inner.definition.name.as_str())
        }
        _ => None,
    });
    if let Some(name) = name {
        shown.value = Some(Written::Name(name.to_owned()));
        shown.formatted = None;
    }
    shown
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
    Ok(item.map(|item| of_machine(machine, map, btf, &item)))
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
    Dumped { key, value: first.map(|bytes| Written::Bytes(hex(bytes))), values: None, formatted }
}

/// Entries of a map as JSON: a list, or an object with the list and the size of the map.
fn parsed(text: &str) -> Result<(Option<u32>, Vec<Value>), String> {
    let form = "write a list of entries, as bpftool map dump -j prints";
    let parsed: Value = serde_json::from_str(text).map_err(|error| format!("not JSON ({error}); {form}"))?;
    let mut members = match parsed {
        Value::Array(entries) => return Ok((None, entries)),
        Value::Object(members) => members,
        _ => return Err(format!("not a list; {form}")),
    };
    let size = members.remove("max_entries");
    let entries = members.remove("entries").unwrap_or_else(|| Value::Array(Vec::new()));
    let (Some(size), Value::Array(entries), true) = (size, entries, members.is_empty()) else {
        return Err("write {\"max_entries\": N, \"entries\": [...]}, or a list of entries".to_owned());
    };
    let number = size.as_u64().and_then(|size| u32::try_from(size).ok()).filter(|size| *size > 0);
    let wrong = || format!("max_entries of {size}; write a number from 1 to {}", u32::MAX);
    Ok((Some(number.ok_or_else(wrong)?), entries))
}

/// Gives maps the sizes that come with their entries, and constants their values, as a loader does before it makes the maps.
/// Programs are linked behind it, since constants decide which calls they make. An unused map without a size gets the least
/// one: programs of other kinds use it, such as those of trace points.
///
/// # Errors
/// The name of a map, and the problem with its entries.
pub fn set_sizes(object: &mut Object, given: &[(String, String)]) -> Result<(), (String, String)> {
    for (name, text) in given {
        let (size, _) = parsed(text).map_err(|problem| (name.clone(), problem))?;
        let map = object.maps.iter_mut().find(|map| map.name == *name);
        if let Some(map) = map.filter(|map| map.is_constant()) {
            let value = constant(map, &object.btf, text).map_err(|problem| (name.clone(), problem))?;
            map.contents = Some(value);
            continue;
        }
        let Some(size) = size else { continue };
        let map = object.maps.iter_mut().find(|map| map.name == *name);
        if let Some(map) = map.filter(|map| map.contents.is_none()) {
            map.max_entries = size;
        }
    }
    if object.maps.iter().any(|map| map.max_entries == 0) {
        let linked = object.programs.iter().chain(&object.open).filter_map(|entry| object.link(entry).ok());
        let used: Vec<usize> = linked.flat_map(|linked| linked.maps).collect();
        let unused = object.maps.iter_mut().enumerate().filter(|(number, _)| !used.contains(number));
        unused
            .filter(|(_, map)| map.max_entries == 0)
            .for_each(|(_, map)| map.max_entries = map.least_entries());
    }
    Ok(())
}

/// The bytes of a section of constants with given entries.
fn constant(map: &MapDefinition, btf: &Btf, text: &str) -> Result<Vec<u8>, String> {
    let mut machine =
        Machine::new(&Object::default(), Limits::default()).map_err(|error| error.to_string())?;
    let number = machine.add_map(map).map_err(|error| error.to_string())?;
    fill(&mut machine, number, btf, text, &mut |_, name| Err(format!("{name} is not a value of this map")))?;
    let items = machine.maps[number].items();
    Ok(items.into_iter().flat_map(|item| item.values).next().unwrap_or_default())
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
    let (_, entries) = parsed(text)?;
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
        return Err("not an object; write {\"key\": ..., \"value\": ...}".to_owned());
    };
    if let Some(other) =
        given.keys().find(|name| !["key", "value", "values", "formatted", "program"].contains(&name.as_str()))
    {
        return Err(format!("unknown member {other}; write key, and value or values"));
    }
    let kind = machine.maps[number].kind;
    let (sizes, types) = {
        let definition = &machine.maps[number].definition;
        ((definition.key_size as usize, definition.value_size as usize), definition.types)
    };
    let key = match given.get("key") {
        Some(key) => value::read(btf, types.0, sizes.0, key).map_err(|problem| format!("key: {problem}"))?,
        None if sizes.0 == 0 => Vec::new(),
        None => return Err("no key; write \"key\": ...".to_owned()),
    };
    if takes_names(kind) {
        let value = named(machine, number, given.get("value"), program)?;
        return machine.maps[number].set_map(&key, value as u32).map_err(|error| refused(error, kind));
    }
    let redirects = matches!(kind, MapKind::Devices | MapKind::DeviceHash | MapKind::Cpus);
    let second = match given.get("program") {
        None => None,
        Some(Value::String(name)) if redirects && sizes.1 == SECOND => {
            Some(second_program(machine, kind, name, program)?)
        }
        Some(Value::String(_)) => {
            return Err(format!("a program in a {} with values of {} bytes; {ADVICE}", kind.name(), sizes.1));
        }
        Some(_) => return Err("the program is not a name; write \"program\": \"NAME\"".to_owned()),
    };
    let mut values =
        values(given, kind.is_per_cpu(), machine.cpus() as usize, |value| match (redirects, value) {
            // The interface or the size of the queue alone.
            (true, Value::Number(first)) if sizes.1 == SECOND => {
                let first = first.as_u64().and_then(|first| u32::try_from(first).ok());
                let first = first.ok_or("the value is not a 32-bit number; write only the first word")?;
                Ok([first.to_ne_bytes(), [0; 4]].concat())
            }
            _ => value::read(btf, types.1, sizes.1, value),
        })?;
    if redirects && sizes.1 == SECOND {
        let own = values[0].split_off(4);
        if own != [0; 4] && own != [u8::MAX; 4] && second.is_none() {
            return Err("the file descriptor of a program; write \"program\": \"NAME\"".to_owned());
        }
        values[0].extend(second.map_or(0, |number| number as u32 + 1).to_ne_bytes());
    }
    machine.maps[number].set(&key, &values, 0).map_err(|error| refused(error, kind))
}

/// The number of the program or of the map that a value names.
fn named(
    machine: &mut Machine,
    number: usize,
    value: Option<&Value>,
    program: &mut dyn FnMut(&mut Machine, &str) -> Result<usize, String>,
) -> Result<usize, String> {
    let kind = machine.maps[number].kind;
    let what = if kind == MapKind::Programs { "program" } else { "map" };
    let Some(Value::String(name)) = value else {
        return Err(format!("the value is not a name; write \"value\": \"NAME\", with the name of a {what}"));
    };
    if kind == MapKind::Programs {
        return program(machine, name);
    }
    let inner =
        machine.map_named(name).ok_or_else(|| format!("there is no map {name}; name a map of the object"))?;
    check_inner(&machine.maps[number], &machine.maps[inner])?;
    Ok(inner)
}

/// Checks a map as a value of a map of maps, as Linux compares it with the example of the definition.
fn check_inner(outer: &Map, inner: &Map) -> Result<(), String> {
    let Some(example) = &outer.definition.inner else { return Ok(()) };
    let own = &inner.definition;
    let differs = [
        ("type", example.kind, own.kind),
        ("key size", example.key_size, own.key_size),
        ("value size", example.value_size, own.value_size),
        ("flags", example.flags, own.flags),
    ];
    let sized = inner.kind == MapKind::Array && example.flags & Flags::INNER_MAP == 0;
    let entries = ("max_entries", example.max_entries, own.max_entries);
    match differs.into_iter().chain(sized.then_some(entries)).find(|(_, wanted, found)| wanted != found) {
        Some((what, wanted, found)) => Err(format!(
            "map {} has {what} {found}, but the inner maps of {} have {wanted}; name a map like the inner \
             map",
            own.name, outer.definition.name
        )),
        None => Ok(()),
    }
}

/// Bytes of a value with a program: a word of the map, and the program's.
const SECOND: usize = 8;
const ADVICE: &str = "only devmap, devmap_hash and cpumap with values of 8 bytes have programs";

/// The number of a program that runs behind a redirect.
fn second_program(
    machine: &mut Machine,
    kind: MapKind,
    name: &str,
    program: &mut dyn FnMut(&mut Machine, &str) -> Result<usize, String>,
) -> Result<usize, String> {
    let number = program(machine, name)?;
    let (attach, section) = match kind {
        MapKind::Cpus => (Attach::CpuMap, "xdp/cpumap"),
        _ => (Attach::DeviceMap, "xdp/devmap"),
    };
    match machine.program_attach(number) == Some(attach) {
        true => Ok(number),
        false => Err(format!("program {name} is not for a {}; write SEC(\"{section}\")", kind.name())),
    }
}

fn takes_names(kind: MapKind) -> bool {
    matches!(kind, MapKind::Programs | MapKind::ArrayOfMaps | MapKind::HashOfMaps)
}

fn refused(error: Errno, kind: MapKind) -> String {
    format!(
        "the {} does not accept this entry ({error}); write fewer entries, and keys in its range",
        kind.name()
    )
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
            let mut all = vec![None; cpus];
            for (at, of_cpu) in list.iter().enumerate() {
                let cpu = match of_cpu.get("cpu") {
                    None => at,
                    Some(cpu) => cpu.as_u64().map_or(usize::MAX, |cpu| cpu as usize),
                };
                let place = all.get_mut(cpu).filter(|place| place.is_none());
                let problem = || format!("values[{at}]: write one value for each cpu from 0 to {}", cpus - 1);
                *place.ok_or_else(problem)? = Some(read(of_cpu.get("value").unwrap_or(of_cpu))?);
            }
            Ok(all.into_iter().flatten().collect())
        }
        (None, Some(_)) if per_cpu => Err(format!(
            "the values do not match the CPUs; write a list of {cpus} values, or one value for all"
        )),
        _ => Err("no value; write \"value\": ...".to_owned()),
    }
}
