//! The check that packets on a torus cannot deadlock.
//!
//! A packet in the buffer of one virtual channel waits for a slot of the next channel on its way. The next channel is a
//! dependency of the first channel. Without a cycle of dependencies, some packet can always advance (Dally and Seitz,
//! IEEE Transactions on Computers C-36(5), 1987). The dependencies come from the routing rule itself,
//! [`TorusShape::step`], which routers use to forward packets.

use super::NAMES;
use super::shape::{Coordinates, DIMENSIONS, TorusShape, Way};
use std::fmt;

/// A virtual channel of a link. The router at the start of the link identifies the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TorusChannel {
    /// The rank of the host with the router that sends on the link.
    pub from: u32,
    /// 0, 1 or 2 for x, y or z.
    pub dimension: usize,
    /// Whether the link leads towards larger coordinates.
    pub plus: bool,
    /// The number of the virtual channel.
    pub channel: u8,
}

impl fmt::Display for TorusChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES[self.dimension][usize::from(!self.plus)];
        write!(f, "hosts.{} {name} channel {}", self.from, self.channel)
    }
}

/// Channels in a cycle of dependencies: each channel depends on the next channel, and the last on the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle(pub Vec<TorusChannel>);

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|channel| write!(f, "{channel} -> "))?;
        self.0.first().map_or(Ok(()), |first| write!(f, "{first}"))
    }
}

/// Number of channels of all links that start at one router.
const PER_ROUTER: usize = DIMENSIONS * 2 * 2;

impl TorusChannel {
    fn index(&self) -> usize {
        let within = 4 * self.dimension + 2 * usize::from(self.plus) + usize::from(self.channel);
        PER_ROUTER * self.from as usize + within
    }

    fn of(index: usize) -> TorusChannel {
        let within = index % PER_ROUTER;
        TorusChannel {
            from: (index / PER_ROUTER) as u32,
            dimension: within / 4,
            plus: within & 2 != 0,
            channel: (within & 1) as u8,
        }
    }
}

impl TorusShape {
    /// Returns a cycle of dependencies between channels, if there is one. With such a cycle, packets can wait for each
    /// other for ever. The search takes time proportional to the number of links.
    pub fn dependency_cycle(&self) -> Option<Cycle> {
        // A depth-first search. `way` has the channels of the current path, each with its dependencies that are not yet
        // followed.
        let mut seen = vec![false; PER_ROUTER * self.hosts() as usize];
        let mut open = vec![false; seen.len()];
        let mut way: Vec<(usize, Vec<usize>)> = Vec::new();
        for start in 0..seen.len() {
            if seen[start] {
                continue;
            }
            seen[start] = true;
            open[start] = true;
            way.push((start, self.dependencies(TorusChannel::of(start))));
            while let Some((channel, left)) = way.last_mut() {
                let channel = *channel;
                match left.pop() {
                    None => {
                        open[channel] = false;
                        way.pop();
                    }
                    Some(next) if open[next] => {
                        let from = way.iter().position(|(on_way, _)| *on_way == next)?;
                        return Some(Cycle(
                            way[from..].iter().map(|(at, _)| TorusChannel::of(*at)).collect(),
                        ));
                    }
                    Some(next) if seen[next] => {}
                    Some(next) => {
                        seen[next] = true;
                        open[next] = true;
                        way.push((next, self.dependencies(TorusChannel::of(next))));
                    }
                }
            }
        }
        None
    }

    /// Returns the channels with slots for which packets on this channel may wait.
    fn dependencies(&self, on: TorusChannel) -> Vec<usize> {
        let TorusChannel { from, dimension, plus, channel } = on;
        let here = self.coordinates(from);
        let next = self.moved(here, dimension, plus);
        let mut found = Vec::new();
        let mut follow = |to: Coordinates, directions: u8| {
            let Some(way) = self.step(here, to, directions) else { return };
            if way != (Way { dimension, plus, channel }) {
                return;
            }
            if let Some(Way { dimension, plus, channel }) = self.step(next, to, directions) {
                let index = TorusChannel { from: self.rank(next), dimension, plus, channel }.index();
                if !found.contains(&index) {
                    found.push(index);
                }
            }
        };
        let own = u8::from(plus) << dimension;
        for (to, distance) in self.destinations(here, dimension, plus) {
            follow(to, own);
            if distance > 1 {
                continue;
            }
            for further in dimension + 1..DIMENSIONS {
                for up in [false, true] {
                    for (to, _) in self.destinations(to, further, up) {
                        follow(to, own | u8::from(up) << further);
                    }
                }
            }
        }
        found
    }

    /// Returns destinations that a packet reaches from `here` in this direction alone, each with its distance in links.
    /// Returns only destinations where the routing rule changes: the nearest two, both ends of the wrap-around link
    /// with their neighbours, and the furthest one.
    fn destinations(&self, here: Coordinates, dimension: usize, plus: bool) -> Vec<(Coordinates, u32)> {
        let (size, at) = (self.sizes()[dimension], here[dimension]);
        let behind_wrap = if plus { size - at } else { at + 1 };
        let furthest = size / 2;
        let mut distances = vec![1, 2, behind_wrap - 1, behind_wrap, behind_wrap + 1, furthest];
        distances.retain(|&distance| distance > 0 && distance <= furthest);
        distances.sort_unstable();
        distances.dedup();
        let place = |distance| {
            let mut to = here;
            to[dimension] = (at + if plus { distance } else { size - distance }) % size;
            (to, distance)
        };
        distances.into_iter().map(place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Torus;
    use super::*;
    use std::collections::BTreeSet;

    fn shape(sizes: &[u32]) -> TorusShape {
        Torus::new(sizes).unwrap().shape(sizes.iter().product::<u32>() as usize).unwrap()
    }

    /// Returns all sizes up to 6 in three dimensions.
    fn shapes() -> impl Iterator<Item = [u32; 3]> {
        (1..=6).flat_map(|x| (1..=6).flat_map(move |y| (1..=6).map(move |z| [x, y, z])))
    }

    #[test]
    fn dependencies_are_those_of_the_paths_of_all_pairs() {
        for sizes in
            shapes().chain([[9, 1, 1], [1, 12, 1], [7, 8, 1]]).filter(|s| s.iter().product::<u32>() <= 64)
        {
            for shape in [shape(&sizes), TorusShape::new(sizes, false)] {
                let mut walked = BTreeSet::new();
                for (a, b) in (0..shape.hosts()).flat_map(|a| (0..shape.hosts()).map(move |b| (a, b))) {
                    let hops: Vec<_> = shape.path(a, b).collect();
                    assert_eq!(hops.len() as u32, shape.hops(a, b));
                    let index = |hop: &super::super::Hop| {
                        let &super::super::Hop { from, dimension, plus, channel, .. } = hop;
                        TorusChannel { from, dimension, plus, channel }.index()
                    };
                    walked.extend(hops.windows(2).map(|pair| (index(&pair[0]), index(&pair[1]))));
                }
                let asked: BTreeSet<_> = (0..PER_ROUTER * shape.hosts() as usize)
                    .flat_map(|at| {
                        shape.dependencies(TorusChannel::of(at)).into_iter().map(move |next| (at, next))
                    })
                    .collect();
                // If two ways are equally long, the check allows both ways, although the routing rule may never choose
                // one of them.
                assert!(walked.is_subset(&asked), "{sizes:?}");
                let ties = sizes.iter().any(|size| size.is_multiple_of(2));
                assert!(ties || walked == asked, "{sizes:?}");
            }
        }
    }

    #[test]
    fn a_torus_has_no_circle_of_dependencies_and_none_without_a_dateline_has_none() {
        for sizes in shapes().chain([[16, 16, 16], [64, 64, 1], [4096, 1, 1], [100_000, 1, 1]]) {
            assert_eq!(shape(&sizes).dependency_cycle(), None, "{sizes:?}");
            // With up to three hosts in a ring, no packet crosses two links of the ring.
            let cycle = TorusShape::new(sizes, false).dependency_cycle();
            assert_eq!(cycle.is_some(), sizes.iter().any(|&size| size > 3), "{sizes:?}");
        }
    }

    #[test]
    fn a_circle_is_named() {
        let cycle = TorusShape::new([4, 1, 1], false).dependency_cycle().unwrap();
        assert_eq!(
            cycle.to_string(),
            "hosts.0 x- channel 0 -> hosts.3 x- channel 0 -> hosts.2 x- channel 0 -> hosts.1 x- channel 0 -> hosts.0 x- \
             channel 0"
        );
    }
}
