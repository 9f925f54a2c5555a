//! Lines of waiting futures, first come, first served. Places in a line are reused, so a wait allocates nothing in
//! steady state.

/// No waiter.
pub(crate) const NO_PLACE: u32 = u32::MAX;

struct Place<T> {
    waiter: T,
    next: u32,
    prev: u32,
}

/// A line of waiters. A waiter keeps the number of its place from [`push`](Line::push) to [`free`](Line::free). It
/// [leaves](Line::leave) the line in between, when it is served.
pub(crate) struct Line<T> {
    places: Vec<Place<T>>,
    free: u32,
    first: u32,
    last: u32,
    len: usize,
}

impl<T: Copy> Line<T> {
    pub(crate) const fn new() -> Line<T> {
        Line { places: Vec::new(), free: NO_PLACE, first: NO_PLACE, last: NO_PLACE, len: 0 }
    }

    /// Number of waiters in line.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a waiter at the end.
    pub(crate) fn push(&mut self, waiter: T) -> u32 {
        let place = Place { waiter, next: NO_PLACE, prev: self.last };
        let number = if self.free == NO_PLACE {
            self.places.push(place);
            u32::try_from(self.places.len() - 1).expect("fewer than 2^32 waiters")
        } else {
            let number = self.free;
            self.free = self.places[number as usize].next;
            self.places[number as usize] = place;
            number
        };
        match self.last {
            NO_PLACE => self.first = number,
            last => self.places[last as usize].next = number,
        }
        self.last = number;
        self.len += 1;
        number
    }

    /// The number of the first waiter in line.
    pub(crate) fn first(&self) -> Option<u32> {
        if self.first == NO_PLACE { None } else { Some(self.first) }
    }

    pub(crate) fn get(&mut self, number: u32) -> &mut T {
        &mut self.places[number as usize].waiter
    }

    /// Removes a waiter from the line. The waiter keeps its place number.
    pub(crate) fn leave(&mut self, number: u32) {
        let Place { next, prev, .. } = self.places[number as usize];
        match prev {
            NO_PLACE => self.first = next,
            _ => self.places[prev as usize].next = next,
        }
        match next {
            NO_PLACE => self.last = prev,
            _ => self.places[next as usize].prev = prev,
        }
        self.len -= 1;
    }

    /// Frees the place of a waiter that has left the line.
    pub(crate) fn free(&mut self, number: u32) {
        self.places[number as usize].next = self.free;
        self.free = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_leave_from_anywhere_and_places_are_reused() {
        let mut line = Line::new();
        let numbers: Vec<u32> = (0..5).map(|i| line.push(i)).collect();
        for i in [2, 0, 4] {
            line.leave(numbers[i]);
            line.free(numbers[i]);
        }
        assert_eq!(line.len(), 2);
        assert_eq!(*line.get(line.first().unwrap()), 1);
        let again = line.push(9);
        assert!(numbers.contains(&again));
        let mut order = Vec::new();
        while let Some(first) = line.first() {
            order.push(*line.get(first));
            line.leave(first);
            line.free(first);
        }
        assert_eq!(order, [1, 3, 9]);
        assert!(line.is_empty());
    }
}
