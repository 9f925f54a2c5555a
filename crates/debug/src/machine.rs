//! The stopped cores in the view of a debugger: copies of registers and memory, and the changes to write back.

use crate::arch::{Registers, description};
use crate::breaks::{Breaks, Watchpoint};
use crate::subject::Subject;
use nicety_hpu::{AddressSpace, Context, Image, Isa};
use nicety_nic_nfp::observe::Outer;
use nicety_types::Time;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The region of the packet, by name.
const PACKET: &str = "the packet";

/// A copied region of memory.
#[derive(Debug)]
struct Region {
    name: &'static str,
    base: u32,
    bytes: Vec<u8>,
    writable: bool,
}

impl Region {
    /// Returns the copied bytes from an address on, if it is in the region.
    fn from(&self, address: u64) -> Option<&[u8]> {
        let offset = address.checked_sub(self.base.into())?;
        self.bytes.get(usize::try_from(offset).ok()?..).filter(|bytes| !bytes.is_empty())
    }
}

/// A core that has begun a handler, or a context with a process.
pub(crate) struct CoreView {
    pub(crate) subject: Subject,
    /// Whether it has not ended.
    pub(crate) running: bool,
    /// The numbers of its last instruction in the whole run, and of the one before.
    pub(crate) last: Option<u64>,
    pub(crate) before: Option<u64>,
    /// The watchpoint that its last instruction hits.
    pub(crate) hit: Option<Watchpoint>,
    /// A watchpoint that it has hit while another core alone was to go on, and the instruction behind.
    pub(crate) deferred: Option<(u64, Watchpoint)>,
}

/// The way in which a debugger lets the cores go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Resume {
    /// Until something stops them.
    #[default]
    Continue,
    /// Until the next instruction of a core, or the next one outside a range of addresses.
    Step { core: usize, range: Option<(u64, u64)> },
    /// Back to the previous instruction of a core.
    StepBack { core: usize },
    /// Back to the last stop.
    ContinueBack,
}

/// Changes by a debugger, at an instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edit {
    pub(crate) registers: Option<Registers>,
    pub(crate) writes: Vec<(u32, Vec<u8>)>,
}

impl Edit {
    /// Makes the changes.
    pub(crate) fn apply(&self, context: &mut Context, space: &mut AddressSpace<'_>, outer: Option<&Outer>) {
        if let Some(registers) = &self.registers {
            registers.apply(context);
        }
        for (address, bytes) in &self.writes {
            if outer.is_some_and(|outer| outer.write(*address, bytes)) {
                continue;
            }
            if let Ok(memory) = space.write(*address, bytes.len() as u32) {
                memory.copy_from_slice(bytes);
            }
        }
    }
}

/// The stopped cores.
#[derive(Default)]
pub(crate) struct Machine {
    pub(crate) cores: BTreeMap<usize, CoreView>,
    /// The core that stopped.
    pub(crate) current: usize,
    pub(crate) breaks: Breaks,
    pub(crate) resume: Resume,
    /// The cores that the debugger names as those that go on, and whether others are to stay where they are.
    pub(crate) named: Vec<usize>,
    pub(crate) locks: bool,
    pub(crate) description: String,
    registers: Registers,
    memory: Vec<Region>,
    edit: Edit,
    /// The text of a trap that ends the handler, so that nothing can be changed any more.
    trap: Option<String>,
    time: Time,
    index: u64,
}

impl Machine {
    /// Copies registers and memory of the core that stops before instruction `index` of the run.
    pub(crate) fn load(
        &mut self,
        (core, index, time): (usize, u64, Time),
        image: &Image,
        context: &Context,
        space: &mut AddressSpace<'_>,
        trap: Option<String>,
    ) {
        let isa: &Isa = &image.core().isa;
        (self.current, self.index, self.time, self.trap) = (core, index, time, trap);
        if self.description.is_empty() {
            self.description = description(isa);
        }
        self.registers = Registers::of(context, isa);
        self.edit = Edit::default();
        let outer = self.cores.get(&core).and_then(|view| view.subject.outer());
        // Memories outside a microengine are read where the debugger asks for them.
        let own = |name: &str| !outer.is_some_and(|outer| outer.all().any(|(kind, _)| kind.name() == name));
        let regions = space.regions().iter().filter(|region| own(region.name()));
        let regions: Vec<_> = regions.map(|r| (r.name(), r.base(), r.size())).collect();
        let copy = |(name, base, size)| {
            let size = u32::try_from(size).ok()?;
            let bytes = space.read(base, size).ok().filter(|bytes| !bytes.is_empty())?.to_vec();
            let writable = space.write(base, size).is_ok();
            Some(Region { name, base, bytes, writable })
        };
        self.memory = regions.into_iter().filter_map(copy).collect();
    }

    /// The core that alone is to go on. GDB steps like that over a breakpoint, and expects the stop of no other core.
    pub(crate) fn alone(&self) -> Option<usize> {
        match self.named[..] {
            [core] if self.locks => Some(core),
            _ => None,
        }
    }

    /// Takes the changes since the stop. None if there are none.
    pub(crate) fn take_edit(&mut self) -> Option<Edit> {
        let edit = std::mem::take(&mut self.edit);
        (edit.registers.is_some() || !edit.writes.is_empty()).then_some(edit)
    }

    /// Returns the registers of a core.
    pub(crate) fn registers(&self, core: usize) -> Option<Registers> {
        if core == self.current {
            return Some(self.registers.clone());
        }
        self.cores.get(&core)?.subject.registers()
    }

    /// Changes the registers of the core that stopped. Returns false for others, and for registers of another shape.
    pub(crate) fn set_registers(&mut self, core: usize, received: &Registers) -> bool {
        if core != self.current || self.trap.is_some() {
            return false;
        }
        let Some(registers) = self.registers.decoded(received) else { return false };
        self.registers = registers.clone();
        self.edit.registers = Some(registers);
        true
    }

    /// Copies memory of a core to `to`. Returns the number of bytes up to the end of their region; none are elsewhere.
    pub(crate) fn read(&self, core: usize, address: u64, to: &mut [u8]) -> usize {
        let mut copy = |bytes: &[u8]| {
            let len = bytes.len().min(to.len());
            to[..len].copy_from_slice(&bytes[..len]);
            len
        };
        let own = core == self.current;
        let (asked, stopped) = (self.cores.get(&core), self.cores.get(&self.current));
        let shares = |name: &str| {
            asked.zip(stopped).is_some_and(|(asked, stopped)| asked.subject.shares(name, &stopped.subject))
        };
        let visible = |region: &&Region| own || shares(region.name);
        if let Some(bytes) = self.memory.iter().filter(visible).find_map(|region| region.from(address)) {
            return copy(bytes);
        }
        match asked {
            Some(view) if own => view.subject.read_outer(address, to),
            Some(view) => view.subject.read(address, to),
            None => 0,
        }
    }

    /// Writes memory of the core that stopped. Returns false if it cannot be written.
    pub(crate) fn write(&mut self, core: usize, address: u64, bytes: &[u8]) -> bool {
        let Ok(short) = u32::try_from(address) else { return false };
        if core != self.current || self.trap.is_some() {
            return false;
        }
        let fits = |region: &&mut Region| region.from(address).is_some_and(|rest| rest.len() >= bytes.len());
        match self.memory.iter_mut().find(fits) {
            Some(region) if region.writable => {
                let offset = (address - u64::from(region.base)) as usize;
                region.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
            }
            Some(_) => return false,
            // A memory outside the core has the bytes at once, so that the debugger reads them back.
            None => {
                let outer = self.cores.get(&core).and_then(|view| view.subject.outer());
                if !outer.is_some_and(|outer| outer.write(short, bytes)) {
                    return false;
                }
            }
        }
        self.edit.writes.push((short, bytes.to_vec()));
        true
    }

    /// Describes the handler of a core in a few words.
    pub(crate) fn about(&self, core: usize) -> String {
        let Some(view) = self.cores.get(&core) else { return "no handler".to_owned() };
        let mut text = view.subject.about();
        if !view.running {
            text.push_str(", ended");
        }
        if let Some(trap) = self.trap.as_ref().filter(|_| core == self.current) {
            let _ = write!(text, ": {trap}");
        }
        text
    }

    /// Names a core, or a context.
    pub(crate) fn place(&self, core: usize) -> String {
        let view = self.cores.get(&core);
        view.map_or_else(|| format!("core {core}"), |view| view.subject.place(core))
    }

    /// Returns the answer to `monitor packet`.
    pub(crate) fn packet(&self, most: usize) -> String {
        let head = format!("{}: {}\n", self.place(self.current), self.about(self.current));
        match self.memory.iter().find(|region| region.name == PACKET) {
            None => head + "there is no packet in its memory\n",
            Some(Region { base, bytes, .. }) => {
                let shown = &bytes[..bytes.len().min(most)];
                let end = u64::from(*base) + bytes.len() as u64;
                let len = bytes.len();
                format!("{head}{len} bytes at {base:#010x} to {end:#010x}\n")
                    + &crate::monitor::dump(*base, shown)
            }
        }
    }

    /// Returns the answer to `monitor cores`.
    pub(crate) fn list_cores(&self) -> String {
        let line =
            |core: &usize| format!("{} (thread {}): {}\n", self.place(*core), core + 1, self.about(*core));
        self.cores.keys().map(line).collect()
    }

    /// Returns the answer to `monitor memory`.
    pub(crate) fn list_memory(&self) -> String {
        let line = |Region { name, base, bytes, writable }: &Region| {
            let access = if *writable { "" } else { ", read-only" };
            format!("{base:#010x}  {:>8} bytes  {name}{access}\n", bytes.len())
        };
        let outer = self.cores.get(&self.current).and_then(|view| view.subject.outer());
        let outer = outer.into_iter().flat_map(Outer::all);
        let outer =
            outer.map(|(kind, size)| format!("{:#010x}  {size:>8} bytes  {}\n", kind.base(), kind.name()));
        self.memory.iter().map(line).chain(outer).collect()
    }

    /// Returns the answer to `monitor time`.
    pub(crate) fn tell_time(&self) -> String {
        format!("{:.3} ns, instruction {}\n", self.time.ps() as f64 / 1000.0, self.index)
    }
}
