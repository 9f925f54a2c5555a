//! The coordinates of hosts in a torus, and the routing rule.
//!
//! The rule is dimension-order routing: a packet goes round the x ring to its destination's x, then along y, then along
//! z. In each ring it takes the shorter way. In a ring of even size, both ways to the opposite host are equally long.
//! The parity of a sum of coordinates then decides. The sum has the source's coordinate in this dimension, and the
//! coordinates of source and destination in the other dimensions. So half of the sources in a ring go each way. If half
//! of the ring size is odd, this alone does not balance the loads of links, but the destinations' other coordinates do.
//! The rule depends on source and destination alone, so all packets of a pair take the same way and stay in order.
//!
//! The dateline is the wrap-around link between the last host and the first host of a ring. A packet that will cross
//! this link is on virtual channel 0 before the link, and on channel 1 after it. A packet that never crosses the link
//! is on channel 1 from the start. So no packet uses channel 0 of the first link of a ring or channel 1 of the
//! wrap-around link. Therefore neither channel forms a cycle round the ring.

use std::fmt;

/// The most dimensions of a torus.
pub(super) const DIMENSIONS: usize = 3;

/// The coordinates of a host: x, y and z.
pub(super) type Coordinates = [u32; DIMENSIONS];

/// The next link of a packet: from one router to a neighbouring router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) dimension: usize,
    /// Whether the link leads towards larger coordinates.
    pub(super) plus: bool,
    /// The number of the virtual channel.
    pub(super) channel: u8,
}

/// A packet's hop from one router to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The rank of the host at the router that the packet leaves.
    pub from: u32,
    /// The rank of the host at the router that the packet reaches.
    pub to: u32,
    /// 0, 1 or 2 for x, y or z.
    pub dimension: usize,
    /// Whether the hop is towards larger coordinates. At the wrap-around link, this means from the last host to the
    /// first.
    pub plus: bool,
    /// The number of the virtual channel.
    pub channel: u8,
}

/// A torus with its hosts. Rank r has the coordinates x = r mod X, y = r / X mod Y and z = r / (X Y).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TorusShape {
    sizes: Coordinates,
    dateline: bool,
}

impl TorusShape {
    pub(super) fn new(sizes: Coordinates, dateline: bool) -> TorusShape {
        TorusShape { sizes, dateline }
    }

    /// Returns a shape that is used only for the coordinates of hosts, not for routes.
    pub fn places(sizes: [u32; 3]) -> TorusShape {
        TorusShape::new(sizes, false)
    }

    /// Number of hosts in each dimension.
    pub fn sizes(&self) -> [u32; 3] {
        self.sizes
    }

    /// Number of hosts.
    pub fn hosts(&self) -> u32 {
        self.sizes.iter().product()
    }

    /// The coordinates of a rank.
    pub fn coordinates(&self, rank: u32) -> [u32; 3] {
        let [x, y, _] = self.sizes;
        [rank % x, rank / x % y, rank / x / y]
    }

    /// The rank at these coordinates.
    pub fn rank(&self, [x, y, z]: [u32; 3]) -> u32 {
        x + self.sizes[0] * (y + self.sizes[1] * z)
    }

    /// Returns the next rank in a dimension, towards larger or smaller coordinates.
    pub fn neighbour(&self, rank: u32, dimension: usize, plus: bool) -> u32 {
        self.rank(self.moved(self.coordinates(rank), dimension, plus))
    }

    /// Returns the rank that is `steps` hosts further in a dimension's ring, towards larger coordinates.
    pub fn on(&self, rank: u32, dimension: usize, steps: u32) -> u32 {
        let mut place = self.coordinates(rank);
        place[dimension] = (place[dimension] + steps) % self.sizes[dimension];
        self.rank(place)
    }

    pub(super) fn moved(&self, mut place: Coordinates, dimension: usize, plus: bool) -> Coordinates {
        let (size, at) = (self.sizes[dimension], place[dimension]);
        place[dimension] = match plus {
            true if at + 1 == size => 0,
            true => at + 1,
            false => at.checked_sub(1).unwrap_or(size - 1),
        };
        place
    }

    /// Returns the slab of a rank: the rank's coordinate in the last dimension with a size above 1.
    pub(crate) fn slab(&self, rank: u32) -> u32 {
        let last = (0..DIMENSIONS).rfind(|&d| self.sizes[d] > 1).unwrap_or(0);
        self.coordinates(rank)[last]
    }

    /// Number of links between the routers of two ranks.
    pub fn hops(&self, a: u32, b: u32) -> u32 {
        let (a, b) = (self.coordinates(a), self.coordinates(b));
        (0..DIMENSIONS).map(|d| a[d].abs_diff(b[d]).min(self.sizes[d] - a[d].abs_diff(b[d]))).sum()
    }

    /// Returns the path of packets from one rank to another, hop by hop.
    pub fn path(&self, from: u32, to: u32) -> impl Iterator<Item = Hop> + use<> {
        let (shape, mut here, to) = (*self, self.coordinates(from), self.coordinates(to));
        let mark = shape.directions(here, to);
        std::iter::from_fn(move || {
            let Way { dimension, plus, channel } = shape.step(here, to, mark)?;
            let from = shape.rank(here);
            here = shape.moved(here, dimension, plus);
            Some(Hop { from, to: shape.rank(here), dimension, plus, channel })
        })
    }

    /// Returns the directions of a packet in all rings, as one bit per dimension. A bit is set if the packet goes
    /// towards larger coordinates.
    pub(super) fn directions(&self, from: Coordinates, to: Coordinates) -> u8 {
        let parity = from.iter().chain(&to).fold(0, |parity, at| parity ^ at & 1);
        let mut directions = 0;
        for d in 0..DIMENSIONS {
            let up = if to[d] >= from[d] { to[d] - from[d] } else { to[d] + (self.sizes[d] - from[d]) };
            let down = self.sizes[d] - up;
            let plus = up < down || up == down && parity ^ to[d] & 1 == 0;
            directions |= u8::from(plus) << d;
        }
        directions
    }

    /// Returns the next link of a packet with these directions, or `None` if the packet has arrived.
    pub(super) fn step(&self, here: Coordinates, to: Coordinates, directions: u8) -> Option<Way> {
        let dimension = (0..DIMENSIONS).find(|&d| here[d] != to[d])?;
        let plus = directions >> dimension & 1 == 1;
        let wraps = (to[dimension] < here[dimension]) == plus;
        Some(Way { dimension, plus, channel: u8::from(self.dateline && !wraps) })
    }
}

impl fmt::Display for TorusShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.sizes;
        write!(f, "{x}x{y}x{z}")
    }
}

/// Returns the three sizes with the smallest sum for a torus of `hosts` hosts, in descending order.
pub fn most_cubic(hosts: u32) -> [u32; 3] {
    let divisors = |of: u32| {
        (1..)
            .take_while(move |&d| u64::from(d) * u64::from(d) <= u64::from(of))
            .filter(move |&d| of.is_multiple_of(d))
    };
    let shapes =
        divisors(hosts).flat_map(|z| divisors(hosts / z).filter(move |&y| y >= z).map(move |y| (z, y)));
    let sum = |&(z, y): &(u32, u32)| u64::from(z) + u64::from(y) + u64::from(hosts / z / y);
    shapes.min_by_key(sum).map_or([hosts, 1, 1], |(z, y)| [hosts / z / y, y, z])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_cubic_shapes() {
        for (hosts, sizes) in [
            (1, [1, 1, 1]),
            (2, [2, 1, 1]),
            (6, [3, 2, 1]),
            (7, [7, 1, 1]),
            (8, [2, 2, 2]),
            (12, [3, 2, 2]),
            (16, [4, 2, 2]),
            (24, [4, 3, 2]),
            (4096, [16, 16, 16]),
            (2_147_483_648, [2048, 1024, 1024]),
        ] {
            assert_eq!(most_cubic(hosts), sizes, "{hosts}");
        }
    }
}
