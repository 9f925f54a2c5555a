//! A core with a translated program, and helpers outside of it: their stubs make a call of the environment.

use super::build::{Folder, assemble, compiler};
use nicety_ebpf::card::Layout;
use nicety_ebpf::translate::{self, Options, Translation};
use nicety_ebpf::{Helper, Machine, MapDefinition, MapKind, Object};
use nicety_hpu::{AddressSpace, Context, Core, Exit, Image, Misaligned, Region, Reservations, Trap};
use std::fmt::Write;
use std::sync::Arc;

const PACKET: u32 = 0x4000_0000;
const HEADROOM: u32 = 256;
const CONTEXT: u32 = 0x5000_0000;
const HEAP: u32 = 0x6000_0000;
const STACK: u32 = 0x7000_0000;
const STACK_BYTES: usize = 8192;

/// Instructions of a helper's stub: its number, the call, and the return.
const STUB: u64 = 3;

/// The time of all packets.
pub(crate) const NOW: u64 = 5_000_000_000;

/// A map on the card: entries with the addresses of their values.
struct Entries {
    definition: MapDefinition,
    entries: Vec<(Vec<u8>, u32)>,
}

/// A program, its maps and its memory.
pub(crate) struct Card {
    image: Arc<Image>,
    entry: u32,
    maps: Vec<Entries>,
    segments: Vec<(u32, Vec<u8>)>,
    heap: Vec<u8>,
    free: u32,
    wide: bool,
    /// The core's number in `mhartid`.
    pub(crate) hart: u32,
}

/// Instructions of a run, with its result.
pub(crate) struct Ran {
    pub(crate) value: u32,
    pub(crate) packet: Vec<u8>,
    pub(crate) instructions: u64,
    pub(crate) calls: u64,
}

/// The text of stubs, maps and data.
fn surroundings(
    translation: &Translation,
    object: &Object,
    machine: &mut Machine,
    options: &Options,
) -> String {
    let mut text = String::from("\t.text\n");
    for helper in &translation.helpers {
        let name = format!("nicety_{}", helper.name());
        let _ = write!(text, "\t.globl {name}\n{name}:\n\tli a7, {}\n\tecall\n\tret\n", *helper as u32);
    }
    if translation.helpers.contains(&Helper::MapLookup) {
        for (kind, size) in ["hash", "lru"].iter().flat_map(|kind| [4, 8, 12, 16].map(|size| (kind, size))) {
            let name = format!("nicety_bpf_map_lookup_{kind}{size}");
            let _ = write!(text, "\t.globl {name}\n{name}:\n\tli a7, 1\n\tecall\n\tret\n");
        }
    }
    if translation.helpers.contains(&Helper::CsumDiff) {
        for sizes in ["0_20", "4_4"] {
            let name = format!("nicety_bpf_csum_diff_{sizes}");
            let number = Helper::CsumDiff as u32;
            let _ = write!(text, "\t.globl {name}\n{name}:\n\tli a7, {number}\n\tecall\n\tret\n");
        }
    }
    text.push_str("\t.data\n");
    for (number, map) in object.maps.iter().enumerate() {
        let name: String =
            map.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let array = [MapKind::Array, MapKind::PerCpuArray].iter().any(|kind| *kind as u32 == map.kind);
        let label = if map.contents.is_some() { "data" } else { "map_memory" };
        let _ =
            write!(text, "\t.globl nicety_map_{name}\n\t.p2align 3\nnicety_map_{name}:\n\t.word {number}\n");
        if array {
            let full = format!("nicety_{label}_{name}");
            let _ = write!(text, "\t.globl {full}\n\t.type {full}, @object\n\t.p2align 3\n{full}:\n");
            for item in machine.maps[number].items() {
                let mut bytes = item.values.concat();
                bytes.resize(bytes.len().next_multiple_of(8), 0);
                let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
                let _ = writeln!(text, "\t.byte {}", bytes.join(", "));
            }
            let _ = writeln!(text, "\t.size {full}, .-{full}");
        } else if options.hashes && map.kind == MapKind::Hash as u32 {
            // Without entries.
            let bytes = Layout::of(map, options.cpus, None).unwrap().memory_bytes;
            let full = format!("nicety_{label}_{name}");
            let _ = write!(text, "\t.globl {full}\n\t.type {full}, @object\n\t.p2align 3\n{full}:\n");
            let _ = writeln!(text, "\t.zero {bytes}\n\t.size {full}, {bytes}");
        }
    }
    text
}

impl Card {
    /// Translates a program of an object, with the contents of a machine's maps; none without a compiler.
    pub(crate) fn new(
        object: &Object,
        name: &str,
        machine: &mut Machine,
        isa: &str,
        options: &Options,
    ) -> Option<Card> {
        let zig = compiler()?;
        let folder = Folder::new();
        let translation = translate::translate(object, name, options).unwrap();
        let texts = [translation.assembly.clone(), surroundings(&translation, object, machine, options)];
        let elf = assemble(&zig, &folder.0, isa, &texts, &translation.programs[0].1);
        let treatment = if options.misaligned { Misaligned::Costs } else { Misaligned::default() };
        let core = Core { isa: isa.parse().unwrap(), misaligned: treatment, ..Core::default() };
        let image = Image::load(&std::fs::read(elf).unwrap(), &core).unwrap();
        let segments = image.segments().iter().map(|segment| {
            let mut bytes = vec![0; segment.size() as usize];
            bytes[..segment.bytes().len()].copy_from_slice(segment.bytes());
            (segment.address(), bytes)
        });
        let mut card = Card {
            entry: image.require(&translation.programs[0].1).unwrap(),
            segments: segments.collect(),
            maps: Vec::new(),
            heap: vec![0; 1 << 20],
            free: HEAP,
            wide: isa.starts_with("rv64"),
            hart: 0,
            image,
        };
        for (number, definition) in object.maps.iter().enumerate() {
            card.maps.push(Entries { definition: definition.clone(), entries: Vec::new() });
            let array =
                [MapKind::Array, MapKind::PerCpuArray].iter().any(|kind| *kind as u32 == definition.kind);
            for item in machine.maps[number].items().into_iter().filter(|_| !array) {
                card.insert(number, &item.key, &item.values[0]);
            }
        }
        Some(card)
    }

    fn insert(&mut self, map: usize, key: &[u8], value: &[u8]) {
        let at = self.free;
        self.free += value.len().next_multiple_of(8) as u32;
        self.heap[(at - HEAP) as usize..][..value.len()].copy_from_slice(value);
        self.maps[map].entries.push((key.to_vec(), at));
    }

    /// The bytes of a variable.
    pub(crate) fn variable(&mut self, name: &str) -> &mut [u8] {
        let (at, size) = self.image.variable(name).unwrap();
        let (base, bytes) = self
            .segments
            .iter_mut()
            .find(|(base, bytes)| (*base..*base + bytes.len() as u32).contains(&at))
            .unwrap();
        &mut bytes[(at - *base) as usize..][..size as usize]
    }

    /// Runs the program on a packet, up to its end or to a trap.
    pub(crate) fn run(&mut self, packet: &[u8]) -> Result<Ran, Box<Trap>> {
        let mut buffer = vec![0; HEADROOM as usize + packet.len()];
        buffer[HEADROOM as usize..][..packet.len()].copy_from_slice(packet);
        let data = PACKET + HEADROOM;
        let words = [data, data + packet.len() as u32, data, 1, 0, 0];
        let mut words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut stack = vec![0; STACK_BYTES];
        let image = Arc::clone(&self.image);
        let mut space = AddressSpace::new();
        for (base, bytes) in &mut self.segments {
            space.push(Region::memory("data", *base, bytes));
        }
        space.push(Region::memory("packet", PACKET, &mut buffer));
        space.push(Region::memory("context", CONTEXT, &mut words));
        space.push(Region::memory("heap", HEAP, &mut self.heap));
        space.push(Region::memory("stack", STACK, &mut stack));
        let mut context = Context::new(self.hart);
        context.call(&image, self.entry, STACK + STACK_BYTES as u32, &[CONTEXT], u64::MAX);
        let mut calls = 0;
        let value = loop {
            match context.run(&image, &mut space, &mut Reservations::new(), u64::MAX) {
                Exit::Return(value) => break value,
                Exit::Ecall => {}
                Exit::Trap(trap) => return Err(trap),
                Exit::Order(_) => {
                    context.perform(&image, &mut space, &mut Reservations::new()).unwrap();
                    continue;
                }
                other => panic!("{other:?}"),
            }
            calls += 1;
            let a = context.args();
            let fifth = word(&space, context.sp());
            let r = if self.wide { [a[0], a[1], a[2], a[3], a[4]] } else { [a[0], a[2], a[4], a[6], fifth] };
            let helper = Helper::of(a[7]).unwrap();
            let result = helpers(helper, r, &mut self.maps, &mut self.free, &mut space);
            context.finish_ecall(result as u32, 0);
            match self.wide {
                true => context.set_reg(10, result),
                false => context.set_reg(11, result >> 32),
            }
        };
        drop(space);
        let at = |index: usize| u32::from_le_bytes(words[index..index + 4].try_into().unwrap()) - PACKET;
        let packet = buffer[at(8) as usize..at(4) as usize].to_vec();
        Ok(Ran { value, packet, instructions: context.instret() - STUB * calls, calls })
    }
}

fn word(space: &AddressSpace<'_>, at: u32) -> u32 {
    space.read(at, 4).map_or(0, |bytes| u32::from_le_bytes(bytes.try_into().unwrap()))
}

/// The result of a helper; packets move in their buffer as in Linux.
fn helpers(
    helper: Helper,
    r: [u32; 5],
    maps: &mut [Entries],
    free: &mut u32,
    space: &mut AddressSpace<'_>,
) -> u64 {
    let map = word(space, r[0]) as usize;
    match helper {
        Helper::MapLookup => {
            let key = space.read(r[1], maps[map].definition.key_size).unwrap();
            maps[map].find(key).map_or(0, u64::from)
        }
        Helper::MapUpdate => {
            let (key_size, value_size) = (maps[map].definition.key_size, maps[map].definition.value_size);
            let key = space.read(r[1], key_size).unwrap().to_vec();
            let value = space.read(r[2], value_size).unwrap().to_vec();
            let at = maps[map].find(&key).unwrap_or_else(|| {
                *free += value_size.next_multiple_of(8);
                maps[map].entries.push((key, *free - value_size.next_multiple_of(8)));
                maps[map].entries.last().unwrap().1
            });
            space.write(at, value_size).unwrap().copy_from_slice(&value);
            0
        }
        Helper::KtimeGet => NOW,
        Helper::CsumDiff => sum(r, space),
        Helper::SpinLock | Helper::SpinUnlock => 0,
        Helper::Redirect | Helper::RedirectMap => 4,
        Helper::AdjustHead | Helper::AdjustMeta | Helper::AdjustTail => {
            // `data_end`, or `data_meta`, or both begins, which are equal.
            let places: &[u32] = match helper {
                Helper::AdjustTail => &[4],
                Helper::AdjustMeta => &[8],
                _ => &[0, 8],
            };
            for place in places {
                let moved = word(space, CONTEXT + place).wrapping_add(r[1]);
                space.write(CONTEXT + place, 4).unwrap().copy_from_slice(&moved.to_le_bytes());
            }
            0
        }
        other => panic!("no stand-in for {other:?}"),
    }
}

fn sum(r: [u32; 5], space: &AddressSpace<'_>) -> u64 {
    assert_eq!(r[1], 0, "a sum of one buffer");
    let bytes = space.read(r[2], r[3]).unwrap();
    let words = bytes.chunks(4).map(|four| u32::from_le_bytes(four.try_into().unwrap()));
    let sum = words.fold(u64::from(r[4]), |sum, word| sum + u64::from(word));
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum & 0xffff) + (sum >> 16)
}

impl Entries {
    fn find(&self, key: &[u8]) -> Option<u32> {
        if self.definition.kind == MapKind::Lpm as u32 {
            let bits = |key: &[u8]| u32::from_le_bytes(key[..4].try_into().unwrap());
            let number = |key: &[u8]| u32::from_be_bytes(key[4..8].try_into().unwrap());
            let inside = |prefix: &[u8]| {
                let unused = 32 - bits(prefix);
                bits(prefix) <= bits(key)
                    && (number(prefix) ^ number(key)).checked_shr(unused).unwrap_or(0) == 0
            };
            let found = self.entries.iter().filter(|(prefix, _)| inside(prefix));
            return found.max_by_key(|(prefix, _)| bits(prefix)).map(|(_, at)| *at);
        }
        self.entries.iter().find(|(known, _)| known == key).map(|(_, at)| *at)
    }
}
