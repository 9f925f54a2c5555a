//! A sorted list of deadlines. It allocates memory only if it gets longer than ever before.

/// Deadlines with their owners, in descending order, so that the next deadline is the last entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Timers<Id> {
    due: Vec<(u64, Id)>,
}

impl<Id: Copy + Ord> Timers<Id> {
    pub const fn new() -> Self {
        Timers { due: Vec::new() }
    }

    pub fn start(&mut self, at: u64, id: Id) {
        if let Err(place) = self.place(at, id) {
            self.due.insert(place, (at, id));
        }
    }

    pub fn stop(&mut self, at: u64, id: Id) {
        if let Ok(place) = self.place(at, id) {
            self.due.remove(place);
        }
    }

    /// Returns the earliest deadline.
    pub fn next(&self) -> Option<u64> {
        self.due.last().map(|(at, _)| *at)
    }

    /// If the earliest deadline is not after `now`, removes it and returns its owner.
    pub fn expire(&mut self, now: u64) -> Option<Id> {
        self.due.pop_if(|(at, _)| *at <= now).map(|(_, id)| id)
    }

    fn place(&self, at: u64, id: Id) -> Result<usize, usize> {
        self.due.binary_search_by(|due| (at, id).cmp(due))
    }
}
