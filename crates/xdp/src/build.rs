//! From an object to a program of a card: assembly, and after the link the contents of maps.

use crate::contents::{Contents, no_map, word};
use crate::error::XdpError;
use crate::figures::{XdpFigures, aborted, verdicts};
use crate::loaded::Loaded;
use crate::request::Request;
use nicety_ebpf::card::{self, Layout, Symbols};
use nicety_ebpf::report::maps::{self, Dumped};
use nicety_ebpf::translate::{
    Isa, Options, Translation, check_length, check_offload, check_verified, linked, programs,
};
use nicety_ebpf::{Entry, Item, Linked, MapKind};
use nicety_hpu::Core;
use serde::Serialize;
use std::collections::BTreeMap;

/// The function of the program that the runtime calls.
const ENTRY: &str = "nicety_xdp_program";
/// The function that a card calls for a frame.
const HANDLER: &str = "frame_handler";

/// A translated program.
#[derive(Debug, Serialize)]
pub struct Built {
    /// The program's name.
    pub program: String,
    /// The text for the assembler: code, maps and data.
    pub assembly: String,
    /// Its part with code.
    pub code: String,
    /// Instructions of eBPF.
    pub instructions: usize,
    /// Whether the program is the card's frame handler itself, without the runtime's.
    pub direct: bool,
    /// Bytes of each map and section in the card's memory, by name.
    pub map_bytes: BTreeMap<String, u64>,
}

struct Ready {
    contents: Contents,
    program: String,
    translation: Translation,
    maps: Vec<usize>,
}

fn ready(file: &[u8], request: &Request) -> Result<Ready, XdpError> {
    let contents = Contents::new(file, request)?;
    let program = contents.object.device_program(request.program.as_deref())?.name.clone();
    let options = Options {
        isa: Isa::read(&request.isa)?,
        misaligned: request.misaligned,
        cpus: request.cpus,
        cluster: request.cluster,
        unverified: request.unverified,
        headroom: request.headroom,
        longest: request.longest,
        frames: request.frames && !request.lenient,
        // That tool knows maps by the runtime's functions.
        hashes: !request.lenient,
        flow_processor: request.offload.is_some(),
    };
    let mut all = linked(&contents.object, &program)?;
    // Of programs without a type, those that a filled program array names.
    let named = |entry: &&Entry| contents.machine.programs().any(|name| name == entry.name);
    for entry in contents.object.open.iter().filter(named).filter(|entry| entry.name != program) {
        all.push(contents.object.link(entry)?);
    }
    all.first().map_or(Ok(()), |main| contents.machine.check_jumps(main))?;
    if !request.unverified && !request.lenient {
        // No packet reaches a program that no entry of an array names.
        let reached = |linked: &&Linked| {
            linked.name == program || contents.machine.programs().any(|name| name == linked.name)
        };
        all.iter().filter(reached).try_for_each(|program| check_verified(program, &contents.object.maps))?;
    }
    if let Some(limits) = &request.offload {
        all.iter().try_for_each(|program| check_offload(program, &contents.object.maps, limits))?;
    }
    let translation = programs(&contents.object.maps, &all, &options)?;
    if let Some(limits) = &request.offload {
        check_length(&program, translation.lines, limits)?;
    }
    let maps = contents.maps(&translation.maps);
    Ok(Ready { contents, program, translation, maps })
}

/// Translates a program with its maps.
///
/// # Errors
/// The object, its program or the contents of a map are wrong, or the maps exceed the card's memory.
pub fn build(file: &[u8], request: &Request) -> Result<Built, XdpError> {
    let ready = ready(file, request)?;
    let (card, map_bytes) = (request.card(), ready.map_bytes(request.cpus)?);
    let Ready { contents, program, translation, maps } = ready;
    let code = translation.assembly;
    let mut assembly = code.clone();
    let own = translation.programs.iter().find(|(name, _)| *name == program).map(|(_, symbol)| symbol);
    let own = own.ok_or_else(|| XdpError::Program(format!("program {program}: it has no code")))?;
    let direct = translation.direct;
    let entry = if direct { HANDLER } else { ENTRY };
    assembly += &format!("\t.globl {entry}\n\t.set {entry}, {own}\n");
    assembly += &card::assembly(&contents.object, &maps, &card)?;
    Ok(Built { program, assembly, code, instructions: translation.instructions, direct, map_bytes })
}

/// A map on a card.
struct OnCard<'r> {
    ready: &'r Ready,
    number: usize,
    symbol: &'r str,
    layout: Layout,
}

impl Ready {
    /// The maps that are no data sections.
    fn on_card<'r>(&'r self, symbols: &'r Symbols, cpus: u32) -> Result<Vec<OnCard<'r>>, XdpError> {
        let definitions = &self.contents.object.maps;
        let maps = self.maps.iter().filter(|&&number| !card::is_data(&definitions[number]));
        maps.map(|&number| {
            let lock = self.contents.machine.maps[number].lock();
            let layout = Layout::of(&definitions[number], cpus, lock)?;
            Ok(OnCard { ready: self, number, symbol: &symbols.names[number], layout })
        })
        .collect()
    }

    /// The symbol of the code that an array of programs has.
    fn target(&self, number: u32) -> Option<&str> {
        let name = self.contents.machine.program_name(number as usize)?;
        let found = self.translation.targets.iter().find(|(known, _)| known == name);
        found.map(|(_, symbol)| symbol.as_str())
    }
}

impl OnCard<'_> {
    /// An entry with addresses in place of the numbers of programs and maps.
    fn with_addresses(
        &self,
        loaded: &Loaded,
        symbols: &Symbols,
        item: Item,
    ) -> Result<Option<Item>, XdpError> {
        let number = item.values.first().map_or(0, |value| word(value));
        let symbol = match self.layout.kind {
            // Without tail calls no code reads the array.
            MapKind::Programs => match self.ready.target(number) {
                Some(symbol) => symbol,
                None => return Ok(None),
            },
            MapKind::ArrayOfMaps | MapKind::HashOfMaps => &symbols.names[number as usize],
            MapKind::PerfEvents => return Ok(None),
            _ => return Ok(Some(item)),
        };
        let address = loaded.address(symbol)?.to_le_bytes().to_vec();
        Ok(Some(Item { values: vec![address], ..item }))
    }

    fn fill(&self, loaded: &mut Loaded, symbols: &Symbols) -> Result<(), XdpError> {
        loaded.prepare(self.symbol)?;
        let map = &self.ready.contents.machine.maps[self.number];
        if let Some(bits) = map.bits() {
            loaded.set_variable(&Symbols::memory(self.symbol), &bits)?;
        }
        for item in map.items() {
            let is_array = matches!(self.layout.kind, MapKind::Array | MapKind::PerCpuArray);
            if is_array && item.values.iter().flatten().all(|&byte| byte == 0) {
                continue;
            }
            let Some(item) = self.with_addresses(loaded, symbols, item)? else { continue };
            let result = loaded.set(self.symbol, &self.layout, &item, 0)?;
            result.map_err(|error| {
                let problem =
                    format!("the card's {} does not accept this entry ({error})", self.layout.kind.name());
                XdpError::Map(map.definition.name.clone(), problem)
            })?;
        }
        Ok(())
    }
}

/// Puts the contents of maps into a linked program.
///
/// # Errors
/// The program is not that of the request.
pub fn finish(file: &[u8], elf: &[u8], request: &Request) -> Result<Vec<u8>, XdpError> {
    let ready = ready(file, request)?;
    let symbols = Symbols::of(&ready.contents.object);
    let mut loaded = load(elf, request)?;
    for map in ready.on_card(&symbols, request.cpus)? {
        map.fill(&mut loaded, &symbols)?;
    }
    loaded.written_to(elf)
}

fn load(elf: &[u8], request: &Request) -> Result<Loaded, XdpError> {
    let isa = request.isa.parse().map_err(|error| XdpError::Program(format!("{error}")))?;
    Loaded::new(elf, &Core { isa, ..Core::default() })
}

/// A program after a run.
#[derive(Debug, Serialize)]
pub struct After {
    /// Its figures.
    pub figures: XdpFigures,
    /// Entries of the maps that were asked for, by name.
    pub maps: BTreeMap<String, Vec<Dumped>>,
}

/// Reads maps and counters from the data of a card after a run. `returned` has the numbers of frames by destination.
///
/// # Errors
/// There is no such map, or the program is not that of the request.
pub fn after(
    file: &[u8],
    elf: &[u8],
    data: Vec<u8>,
    request: &Request,
    (returned, names): (&BTreeMap<String, u64>, &[String]),
) -> Result<After, XdpError> {
    let ready = ready(file, request)?;
    let object = &ready.contents.object;
    let symbols = Symbols::of(object);
    let mut loaded = load(elf, request)?;
    loaded.set_data(data)?;
    let counts = loaded.counts()?;
    let on_card = ready.on_card(&symbols, request.cpus)?;
    let figures = XdpFigures {
        program: ready.program.clone(),
        ebpf_instructions: ready.translation.instructions as u64,
        code_bytes: loaded.code_bytes(),
        map_bytes: ready.map_bytes(request.cpus)?,
        verdicts: verdicts(returned, &counts),
        aborted_at: aborted(&ready.translation, &loaded.aborted(), counts.aborted),
        invalid: counts.invalid.into(),
        redirects_failed: counts.failed.into(),
        too_long: counts.too_long.into(),
        updates_full: full(&on_card, &loaded)?,
    };
    let mut maps = BTreeMap::new();
    for name in names {
        maps.insert(name.clone(), ready.dump(name, &on_card, &mut loaded, &symbols)?);
    }
    Ok(After { figures, maps })
}

fn full(on_card: &[OnCard<'_>], loaded: &Loaded) -> Result<BTreeMap<String, u64>, XdpError> {
    let mut all = BTreeMap::new();
    for map in on_card {
        let count = loaded.full(map.symbol, &map.layout)?;
        if count > 0 {
            all.insert(map.layout.definition.name.clone(), count.into());
        }
    }
    Ok(all)
}

impl Ready {
    fn map_bytes(&self, cpus: u32) -> Result<BTreeMap<String, u64>, XdpError> {
        let sized = |&number: &usize| {
            let definition = &self.contents.object.maps[number];
            Ok((definition.name.clone(), card::memory_bytes(definition, cpus)?))
        };
        self.maps.iter().map(sized).collect()
    }

    /// The entries of a map after a run.
    fn dump(
        &self,
        name: &str,
        on_card: &[OnCard<'_>],
        loaded: &mut Loaded,
        symbols: &Symbols,
    ) -> Result<Vec<Dumped>, XdpError> {
        let object = &self.contents.object;
        let wrong = || XdpError::Map(name.to_owned(), no_map(object));
        let number = object.maps.iter().position(|map| map.name == name).ok_or_else(wrong)?;
        let definition = &object.maps[number];
        let unused = &self.contents.machine.maps[number];
        if matches!(unused.kind, MapKind::Programs | MapKind::ArrayOfMaps | MapKind::HashOfMaps) {
            // A program changes none of them.
            return Ok(maps::dump(&self.contents.machine, number, &object.btf));
        }
        let (items, kind) = match on_card.iter().find(|map| map.number == number) {
            Some(map) => (loaded.entries(map.symbol, &map.layout)?, map.layout.kind),
            None if card::is_data(definition) && self.maps.contains(&number) => {
                let value = loaded.variable(&symbols.names[number])?.to_vec();
                (vec![Item { key: vec![0; 4], values: vec![value] }], MapKind::Array)
            }
            // The program does not use it.
            None => (unused.items(), unused.kind),
        };
        Ok(maps::dump_items(&items, kind, &object.btf, definition.types))
    }
}
