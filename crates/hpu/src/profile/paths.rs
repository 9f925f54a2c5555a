//! Call paths: the functions that are active at an instruction.

use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// Most call paths of a program. Calls beyond belong to their callers.
const PATHS: usize = 1 << 12;
/// Most calls of a path that are followed.
const DEPTH: usize = 128;

/// A function, as called by another one or as the entry of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPath {
    /// The index of the caller's path. None for the entry of a run.
    pub caller: Option<u32>,
    /// The address of the function.
    pub function: u32,
}

/// The call paths of a program. A caller precedes its callees.
#[derive(Debug, Default)]
pub struct Paths {
    paths: Vec<CallPath>,
    known: FxHashMap<(Option<u32>, u32), u32>,
    /// The addresses of functions, sorted.
    functions: Vec<u32>,
}

impl Paths {
    /// Returns the paths of a program before its first run. `functions` are the sorted addresses of its functions.
    pub fn new(functions: Vec<u32>) -> Paths {
        Paths { functions, ..Paths::default() }
    }

    /// Returns all paths so far.
    pub fn all(&self) -> &[CallPath] {
        &self.paths
    }

    /// Returns the index of a path, a new one if there is room, or that of its caller.
    fn path(&mut self, caller: Option<u32>, function: u32) -> u32 {
        if let Some(&known) = self.known.get(&(caller, function)) {
            return known;
        }
        if self.paths.len() == PATHS {
            return caller.unwrap_or(0);
        }
        let index = self.paths.len() as u32;
        self.paths.push(CallPath { caller, function });
        self.known.insert((caller, function), index);
        index
    }
}

/// A caller's path, and the address to which the callee returns.
#[derive(Clone, Copy, Debug)]
struct Frame {
    returns_to: u32,
    path: u32,
}

/// A call that is known: from a path, of a function, to its path.
#[derive(Clone, Copy, Debug, Default)]
struct Call {
    from: u32,
    function: u32,
    path: u32,
}

/// Calls and jumps that a stack remembers, a power of two.
const REMEMBERED: usize = 256;

/// An address at which no instruction begins.
const NOWHERE: u32 = 1;

/// The calls that a run is in.
#[derive(Clone, Debug, Default)]
pub(super) struct Stack {
    frames: Vec<Frame>,
    /// The last calls, by caller and function, and the last targets of jumps that begin no function.
    calls: Vec<Call>,
    inside: Vec<u32>,
    /// The path of the run's entry, and the current one.
    pub root: u32,
    pub path: u32,
}

impl Stack {
    pub(super) fn begin(&mut self, paths: &mut Paths, entry: u32) {
        if self.calls.is_empty() {
            self.forget();
        }
        self.frames.clear();
        self.root = paths.path(None, entry);
        self.path = self.root;
    }

    /// Forgets the calls and jumps of another program.
    pub(super) fn forget(&mut self) {
        self.calls = vec![Call { function: NOWHERE, ..Call::default() }; REMEMBERED];
        self.inside = vec![NOWHERE; REMEMBERED];
    }

    pub(super) fn call(&mut self, paths: &RefCell<Paths>, function: u32, returns_to: u32) {
        if self.frames.len() < DEPTH {
            self.frames.push(Frame { returns_to, path: self.path });
            let from = self.path;
            let known = &mut self.calls[((function >> 1) ^ from.wrapping_mul(61)) as usize % REMEMBERED];
            if (known.from, known.function) != (from, function) {
                let path = paths.borrow_mut().path(Some(from), function);
                *known = Call { from, function, path };
            }
            self.path = known.path;
        }
    }

    /// A jump through a register to an address. A return ends the call that returns there, and calls inside it.
    pub(super) fn jump(&mut self, paths: &RefCell<Paths>, to: u32) {
        match self.frames.iter().rposition(|frame| frame.returns_to == to) {
            Some(index) => {
                self.path = self.frames[index].path;
                self.frames.truncate(index);
            }
            None => self.tail_call(paths, to),
        }
    }

    /// A jump to the start of another function replaces the current one: its caller calls the other one.
    pub(super) fn tail_call(&mut self, paths: &RefCell<Paths>, to: u32) {
        let inside = &mut self.inside[(to >> 1) as usize % REMEMBERED];
        if *inside == to {
            return;
        }
        let paths = &mut paths.borrow_mut();
        if paths.functions.binary_search(&to).is_err() {
            *inside = to;
            return;
        }
        let function = |path: u32| paths.paths[path as usize].function;
        if function(self.path) == to {
            return;
        }
        self.path = match self.frames.last() {
            Some(frame) => paths.path(Some(frame.path), to),
            None if function(self.root) == to => self.root,
            None => paths.path(Some(self.root), to),
        };
    }
}
