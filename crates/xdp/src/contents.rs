//! An object with the contents of its maps before a run, as an interpreter has them.

use crate::error::XdpError;
use crate::request::Request;
use nicety_ebpf::report::maps;
use nicety_ebpf::{Limits, Machine, MapKind, Object, card};

/// Bytes of maps that a host may fill: more than any card has.
const MOST: u64 = 1 << 30;

/// An object, and an interpreter with its filled maps.
pub(crate) struct Contents {
    /// The object. Its data sections have the contents that were asked for.
    pub(crate) object: Object,
    pub(crate) machine: Machine,
    /// Numbers of the maps that were filled.
    pub(crate) filled: Vec<usize>,
}

impl Contents {
    /// Reads an object, and fills its maps.
    pub(crate) fn new(file: &[u8], request: &Request) -> Result<Contents, XdpError> {
        let mut object = Object::read(file)?;
        maps::set_sizes(&mut object, &request.maps)
            .map_err(|(name, problem)| XdpError::Map(name, problem))?;
        for number in 0..object.maps.len() {
            // Larger ones are not even made.
            if card::memory_bytes(&object.maps[number], request.cpus)? > MOST {
                card::check_memory(&object, &[number], &request.card())?;
            }
        }
        let limits = Limits { cpus: request.cpus, map_bytes: MOST, ..Limits::default() };
        let mut machine = Machine::new(&object, limits)?;
        let mut filled = Vec::new();
        for (name, text) in &request.maps {
            let wrong = |problem: String| XdpError::Map(name.clone(), problem);
            let number = machine.map_named(name).ok_or_else(|| wrong(no_map(&object)))?;
            let mut load = |machine: &mut Machine, name: &str| {
                let entry = object.program(Some(name)).map_err(|error| error.to_string())?;
                machine.add(&object, entry).map_err(|error| error.to_string())
            };
            maps::fill(&mut machine, number, &object.btf, text, &mut load).map_err(wrong)?;
            refuse_second(&machine.maps[number]).map_err(|problem| XdpError::Map(name.clone(), problem))?;
            filled.push(number);
        }
        for &number in &filled {
            if let (Some(contents), Some(item)) =
                (&mut object.maps[number].contents, machine.maps[number].items().first())
            {
                contents.clone_from(&item.values[0]);
            }
        }
        Ok(Contents { object, machine, filled })
    }

    /// The maps of a program: those that it names, those that were filled, and those that are values of others.
    pub(crate) fn maps(&self, named: &[usize]) -> Vec<usize> {
        let mut all: Vec<usize> = Vec::new();
        let mut waiting: Vec<usize> = named.iter().chain(&self.filled).copied().collect();
        while let Some(number) = waiting.pop() {
            if all.contains(&number) {
                continue;
            }
            all.push(number);
            let map = &self.machine.maps[number];
            if matches!(map.kind, MapKind::ArrayOfMaps | MapKind::HashOfMaps) {
                waiting.extend(map.items().iter().map(|item| word(&item.values[0]) as usize));
            }
        }
        all.sort_unstable();
        all
    }
}

/// Refuses programs behind a redirect.
fn refuse_second(map: &nicety_ebpf::Map) -> Result<(), String> {
    let redirects = matches!(map.kind, MapKind::Devices | MapKind::DeviceHash | MapKind::Cpus);
    let has_program = |item: &nicety_ebpf::Item| {
        item.values.first().is_some_and(|value| word(value.get(4..).unwrap_or_default()) != 0)
    };
    match redirects && map.items().iter().any(has_program) {
        true => {
            Err("a card runs no program after a redirect; leave \"program\" out, or use the host's driver"
                .to_owned())
        }
        false => Ok(()),
    }
}

pub(crate) fn no_map(object: &Object) -> String {
    let names: Vec<&str> = object.maps.iter().map(|map| map.name.as_str()).collect();
    match names[..] {
        [] => "the object has no maps; leave the map out".to_owned(),
        _ => format!("the object has no such map; it has {}", names.join(", ")),
    }
}

/// The number in a value.
pub(crate) fn word(value: &[u8]) -> u32 {
    value.first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}
