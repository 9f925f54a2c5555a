//! Makes the climbs of `handlers/nfp/tsp.c` in native code.

use super::MOST_CITIES;
use nicety_nic_nfp::crc32;

/// Returns the distance of two cities, rounded to the nearest whole number (EUC_2D of TSPLIB).
pub fn distance(a: (u16, u16), b: (u16, u16)) -> u32 {
    let (dx, dy) = (u32::from(a.0.abs_diff(b.0)), u32::from(a.1.abs_diff(b.1)));
    let square = dx * dx + dy * dy;
    let root = square.isqrt();
    root + u32::from(square - root * root > root)
}

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
    cities: usize,
    seed: u32,
    /// The distances of all pairs of cities.
    table: Vec<u16>,
    tour: Vec<u8>,
    /// `road[k]` is the length of the road between the cities at positions k and k + 1 of the tour.
    road: Vec<i32>,
}

impl Climber {
    /// Returns a climber for these cities. `seed` is the seed of its random numbers.
    ///
    /// # Panics
    /// With fewer than 5 cities or more than [`MOST_CITIES`], or coordinates of 32768 or more.
    pub fn new(cities: &[(u16, u16)], seed: u32) -> Climber {
        let n = cities.len();
        assert!((5..=MOST_CITIES).contains(&n), "5 to {MOST_CITIES} cities");
        assert!(cities.iter().all(|&(x, y)| x.max(y) < 1 << 15), "coordinates below 32768");
        let row = |&a: &(u16, u16)| cities.iter().map(move |&b| distance(a, b) as u16);
        let table = cities.iter().flat_map(row).collect();
        Climber { cities: n, seed, table, tour: vec![0; n], road: vec![0; n] }
    }

    /// Makes climb `number`. Returns the length of its tour, and the cities in order.
    pub fn climb(&mut self, number: u32) -> (u32, &[u8]) {
        let n = self.cities;
        self.shuffle(crc32(self.seed, number) | 1);
        self.measure(0, n - 1);
        loop {
            let (mut most, mut first, mut last) = (0, 0, 0);
            for i in 0..n - 2 {
                let (road, from_a, from_b) = (self.road[i], self.row(i), self.row(i + 1));
                // The roads at positions i and j have no city in common.
                let end = if i > 0 { n } else { n - 1 };
                for j in i + 2..end {
                    let (c, d) = (self.tour[j], self.tour[if j + 1 < n { j + 1 } else { 0 }]);
                    let saved = road + self.road[j]
                        - i32::from(from_a[usize::from(c)])
                        - i32::from(from_b[usize::from(d)]);
                    if saved > most {
                        (most, first, last) = (saved, i, j);
                    }
                }
            }
            if most == 0 {
                return (self.road.iter().sum::<i32>() as u32, &self.tour);
            }
            self.tour[first + 1..=last].reverse();
            self.measure(first, last);
        }
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

    fn shuffle(&mut self, mut random: u32) {
        for (k, city) in self.tour.iter_mut().enumerate() {
            *city = k as u8;
        }
        for k in (1..self.cities).rev() {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            self.tour.swap(k, ((u64::from(random) * (k as u64 + 1)) >> 32) as usize);
        }
    }

    fn measure(&mut self, from: usize, to: usize) {
        for k in from..=to {
            let next = self.tour[if k + 1 < self.cities { k + 1 } else { 0 }];
            self.road[k] = i32::from(self.row(k)[usize::from(next)]);
        }
    }

    /// Returns the distances from the city at position `place` of the tour to all cities.
    fn row(&self, place: usize) -> &[u16] {
        let city = usize::from(self.tour[place]);
        &self.table[city * self.cities..][..self.cities]
    }
}
