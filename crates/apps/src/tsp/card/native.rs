//! Makes the climbs of `handlers/nfp/tsp_climb.h` in native code.

use super::MOST_CITIES;
use crate::tsp::cities::Cities;
use nicety_nic_nfp::crc32;

/// A tour that a climb has found.
///
/// A shorter tour is better. If two tours have the same length, the one with the lower climb number is better. So the best of
/// several climbs does not depend on their order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Best {
    /// The length of the tour.
    pub length: u32,
    /// The number of the climb.
    pub number: u32,
    /// The cities of the tour, in order.
    pub tour: Vec<u8>,
}

/// Makes climbs one after another. They use the same memory.
#[derive(Clone, Debug)]
pub struct Climber {
    seed: u32,
    table: Table,
    walk: Walk,
}

/// The distances of all pairs of cities, as small as they fit, so that more of them are in a cache.
#[derive(Clone, Debug)]
enum Table {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

/// The tour of a climb.
#[derive(Clone, Debug)]
struct Walk {
    tour: Vec<u8>,
    /// `road[k]` is the length of the road between the cities at positions k and k + 1 of the tour.
    road: Vec<i32>,
}

impl Climber {
    /// Returns a climber for these cities. `seed` is the seed of its random numbers.
    ///
    /// # Panics
    /// With fewer than 5 cities or more than [`MOST_CITIES`].
    pub fn new(cities: &Cities, seed: u32) -> Climber {
        let n = cities.count();
        assert!((5..=MOST_CITIES).contains(&n), "5 to {MOST_CITIES} cities");
        let distances = cities.table();
        let table = if distances.is_narrow() {
            Table::Narrow(distances.distances().iter().map(|&distance| distance as u16).collect())
        } else {
            Table::Wide(distances.distances().to_vec())
        };
        Climber { seed, table, walk: Walk { tour: vec![0; n], road: vec![0; n] } }
    }

    /// Makes climb `number`. Returns the length of its tour, and the cities in order.
    pub fn climb(&mut self, number: u32) -> (u32, &[u8]) {
        let random = crc32(self.seed, number) | 1;
        let length = match &self.table {
            Table::Narrow(distances) => self.walk.climb(distances, random),
            Table::Wide(distances) => self.walk.climb(distances, random),
        };
        (length, &self.walk.tour)
    }

    /// Makes these climbs, and returns the best tour; `None` if there are no climbs.
    pub fn best(&mut self, numbers: impl IntoIterator<Item = u32>) -> Option<Best> {
        let mut best: Option<Best> = None;
        for number in numbers {
            let (length, tour) = self.climb(number);
            if best.as_ref().is_none_or(|best| (length, number) < (best.length, best.number)) {
                best = Some(Best { length, number, tour: tour.to_vec() });
            }
        }
        best
    }
}

impl Walk {
    /// Makes a climb with these random numbers. Returns the length of the tour.
    fn climb<D: Copy + Into<u32>>(&mut self, distances: &[D], random: u32) -> u32 {
        let n = self.tour.len();
        self.shuffle(random);
        self.measure(distances, 0, n - 1);
        loop {
            let (mut most, mut first, mut last) = (0, 0, 0);
            for i in 0..n - 2 {
                let (road, from_a, from_b) =
                    (self.road[i], self.row(distances, i), self.row(distances, i + 1));
                // The roads at positions i and j have no city in common.
                let end = if i > 0 { n } else { n - 1 };
                for j in i + 2..end {
                    let (c, d) = (self.tour[j], self.tour[if j + 1 < n { j + 1 } else { 0 }]);
                    let saved =
                        road + self.road[j] - length(from_a[usize::from(c)]) - length(from_b[usize::from(d)]);
                    if saved > most {
                        (most, first, last) = (saved, i, j);
                    }
                }
            }
            if most == 0 {
                return self.road.iter().map(|&road| road as u32).sum();
            }
            self.tour[first + 1..=last].reverse();
            self.measure(distances, first, last);
        }
    }

    fn shuffle(&mut self, mut random: u32) {
        for (k, city) in self.tour.iter_mut().enumerate() {
            *city = k as u8;
        }
        for k in (1..self.tour.len()).rev() {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            self.tour.swap(k, ((u64::from(random) * (k as u64 + 1)) >> 32) as usize);
        }
    }

    fn measure<D: Copy + Into<u32>>(&mut self, distances: &[D], from: usize, to: usize) {
        for k in from..=to {
            let next = self.tour[if k + 1 < self.tour.len() { k + 1 } else { 0 }];
            self.road[k] = length(self.row(distances, k)[usize::from(next)]);
        }
    }

    /// Returns the distances from the city at position `place` of the tour to all cities.
    fn row<'d, D>(&self, distances: &'d [D], place: usize) -> &'d [D] {
        let (city, n) = (usize::from(self.tour[place]), self.tour.len());
        &distances[city * n..][..n]
    }
}

/// A distance as a number with a sign. Distances end at 2^30, so that sums and differences of two pairs fit.
fn length(distance: impl Into<u32>) -> i32 {
    distance.into() as i32
}
