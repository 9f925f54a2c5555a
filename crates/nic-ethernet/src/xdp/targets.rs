//! Destinations of redirected frames: ports, queues of other CPUs, and sockets of programs.

use nicety_ebpf::{Machine, MapKind, Redirect};

/// A destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An interface.
    Port {
        /// Its number, from 1 on.
        port: u32,
        /// The program of the map's entry, which runs before the frame is sent.
        program: Option<usize>,
    },
    /// Another CPU, with the room of its queue.
    Cpu {
        /// Its number.
        cpu: u32,
        /// The most frames that wait for it.
        room: u32,
        /// The program of the map's entry, which runs there.
        program: Option<usize>,
    },
    /// A socket of a program.
    Socket {
        /// The map's number.
        map: usize,
        /// Its place in the map.
        key: u32,
    },
    /// An entry that is gone.
    Nowhere,
}

fn word(value: &[u8]) -> u32 {
    value.first_chunk().map_or(0, |word| u32::from_ne_bytes(*word))
}

/// The program in the second word of an entry, where it has one.
fn program(value: &[u8]) -> Option<usize> {
    word(value.get(4..).unwrap_or_default()).checked_sub(1).map(|number| number as usize)
}

/// The destinations of a redirected frame.
pub(super) fn targets(machine: &Machine, redirect: Option<Redirect>) -> Vec<Target> {
    match redirect {
        None => vec![Target::Nowhere],
        Some(Redirect::Interface(port)) => vec![Target::Port { port, program: None }],
        Some(Redirect::Entry { map: number, key }) => {
            let map = &machine.maps[number];
            let found = map.get(&key.to_ne_bytes());
            let Some(value) = found.as_ref().and_then(|values| values.first()) else {
                return vec![Target::Nowhere];
            };
            vec![match map.kind {
                MapKind::Cpus => Target::Cpu { cpu: key, room: word(value), program: program(value) },
                MapKind::Sockets => Target::Socket { map: number, key },
                _ => Target::Port { port: word(value), program: program(value) },
            }]
        }
        Some(Redirect::Broadcast { map, exclude_ingress }) => {
            let items = machine.maps[map].items();
            let values = items.iter().filter_map(|item| item.values.first());
            // The host's frames all come from interface 1.
            let others = values.filter(|value| !exclude_ingress || word(value) != 1);
            others.map(|value| Target::Port { port: word(value), program: program(value) }).collect()
        }
    }
}
