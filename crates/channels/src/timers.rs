//! Deadlines, in order; nothing is allocated once there has been room for as many.

/// The latest first, so that the next one is the last.
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

    /// The earliest deadline.
    pub fn next(&self) -> Option<u64> {
        self.due.last().map(|(at, _)| *at)
    }

    /// Takes the earliest deadline that has passed at `now`; returns its owner.
    pub fn expire(&mut self, now: u64) -> Option<Id> {
        self.due.pop_if(|(at, _)| *at <= now).map(|(_, id)| id)
    }

    fn place(&self, at: u64, id: Id) -> Result<usize, usize> {
        self.due.binary_search_by(|due| (at, id).cmp(due))
    }
}
