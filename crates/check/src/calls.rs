//! Call stacks, each once, and places in programs.

use rustc_hash::FxHashMap;

/// The number of a call stack. 0 is that of a handler itself.
pub(crate) type StackId = u32;

/// An instruction, and the calls that lead to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Site {
    pub pc: u32,
    pub stack: StackId,
}

/// All call stacks of a program. Each is a call in another one.
#[derive(Default)]
pub(crate) struct Stacks {
    calls: Vec<Site>,
    known: FxHashMap<Site, StackId>,
}

impl Stacks {
    /// Returns the stack of a function that is called at a site.
    pub fn called_at(&mut self, site: Site) -> StackId {
        *self.known.entry(site).or_insert_with(|| {
            self.calls.push(site);
            self.calls.len() as StackId
        })
    }

    /// Returns the instructions of a site, the innermost first: that of the site, then those of the calls.
    pub fn instructions(&self, site: Site) -> Vec<u32> {
        let mut found = vec![site.pc];
        let mut stack = site.stack;
        while let Some(call) = (stack as usize).checked_sub(1).and_then(|index| self.calls.get(index)) {
            found.push(call.pc);
            stack = call.stack;
        }
        found
    }
}

/// A call in progress: the address of its return, and the stack of the caller.
#[derive(Clone, Copy)]
struct Call {
    returns_to: u32,
    caller: StackId,
    entry: u32,
}

/// The calls of a run in progress.
#[derive(Default)]
pub(crate) struct Calls {
    open: Vec<Call>,
    pub current: StackId,
}

impl Calls {
    /// Most calls that are told apart, so that an endless recursion ends in its trap.
    const MOST: usize = 256;

    /// A call at `pc` of `entry`.
    pub fn call(&mut self, stacks: &mut Stacks, pc: u32, returns_to: u32, entry: u32) {
        if self.open.len() < Calls::MOST {
            let caller = self.current;
            self.current = stacks.called_at(Site { pc, stack: caller });
            self.open.push(Call { returns_to, caller, entry });
        }
    }

    /// A return to `target`. Returns the entries of the functions that it leaves.
    pub fn leave(&mut self, target: u32) -> Option<u32> {
        let at = self.open.iter().rposition(|call| call.returns_to == target)?;
        let call = self.open[at];
        self.open.truncate(at);
        self.current = call.caller;
        Some(call.entry)
    }
}
