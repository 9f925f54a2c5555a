//! Traffic patterns: the destinations of each node's packets (Dally and Towles, 'Principles and Practices of
//! Interconnection Networks', 2004, section 3.2).

use nicety::Error;
use nicety_fabric::TorusShape;
use nicety_kernel::Rng;

/// A pattern of destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Each node sends to the next node in every dimension.
    Neighbour,
    /// Each packet goes to any other node, with equal probability.
    Uniform,
    /// Each node sends to the node with its own coordinates, rotated by one dimension.
    Transpose,
    /// Each node sends to all other nodes in turn, from a random one on.
    AllToAll,
    /// Each node sends to the node with opposite coordinates: k - 1 - x in a dimension of size k.
    BitComplement,
    /// Each node sends to the node nearly half round the ring in every dimension: (k - 1) / 2 steps further, rounded down.
    Tornado,
}

impl Pattern {
    /// All patterns.
    pub(super) const ALL: [Pattern; 6] = [
        Pattern::Neighbour,
        Pattern::Uniform,
        Pattern::Transpose,
        Pattern::AllToAll,
        Pattern::BitComplement,
        Pattern::Tornado,
    ];

    /// The name on the command line and in results.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Pattern::Neighbour => "neighbour",
            Pattern::Uniform => "uniform",
            Pattern::Transpose => "transpose",
            Pattern::AllToAll => "alltoall",
            Pattern::BitComplement => "bit-complement",
            Pattern::Tornado => "tornado",
        }
    }

    /// Returns the pattern with this name, if it is possible on the torus.
    ///
    /// # Errors
    /// [`Error::Input`] with a correction.
    pub(super) fn parse(name: &str, shape: &TorusShape) -> Result<Pattern, Error> {
        let Some(pattern) = Pattern::ALL.into_iter().find(|pattern| pattern.name() == name) else {
            let names = Pattern::ALL.map(Pattern::name).join(", ");
            return Err(Error::Input(format!("no pattern '{name}'; the patterns are {names}")));
        };
        let wrong = |why: &str, instead: &str| {
            Err(Error::Input(format!(
                "--pattern {name} on torus:{shape}: {why}; write for example --topology {instead}"
            )))
        };
        let used = used(shape);
        let sizes = shape.sizes();
        match pattern {
            _ if shape.hosts() < 2 => wrong("a single node has nobody to send to", "torus:4x4x4"),
            Pattern::Transpose if used.len() < 2 => wrong("there is one dimension only", "torus:8x8"),
            Pattern::Transpose if used.iter().any(|&d| sizes[d] != sizes[used[0]]) => {
                wrong("its dimensions have different sizes", "torus:8x8x8")
            }
            Pattern::BitComplement if sizes.iter().any(|size| !size.is_power_of_two()) => {
                wrong("the size of a dimension is not a power of two", "torus:8x8x8")
            }
            Pattern::Tornado if sizes.iter().all(|&size| size < 3) => {
                wrong("no dimension has 3 nodes, so nobody sends", "torus:8x8x8")
            }
            _ => Ok(pattern),
        }
    }

    /// Returns the destination of a node's packets; `None` if a node has several. A node that is its own destination sends
    /// nothing.
    pub(super) fn only(self, shape: &TorusShape, rank: u32) -> Option<u32> {
        let (place, sizes) = (shape.coordinates(rank), shape.sizes());
        let by_dimension =
            |of: &dyn Fn(u32, u32) -> u32| Some(shape.rank(std::array::from_fn(|d| of(place[d], sizes[d]))));
        match self {
            Pattern::Uniform | Pattern::AllToAll => None,
            Pattern::Neighbour => by_dimension(&|at, size| (at + 1) % size),
            Pattern::Tornado => by_dimension(&|at, size| (at + (size - 1) / 2) % size),
            Pattern::BitComplement => by_dimension(&|at, size| size - 1 - at),
            Pattern::Transpose => {
                let used = used(shape);
                let mut there = place;
                for (number, &dimension) in used.iter().enumerate() {
                    there[dimension] = place[used[(number + 1) % used.len()]];
                }
                Some(shape.rank(there))
            }
        }
    }
}

/// Returns the dimensions with more than one node.
fn used(shape: &TorusShape) -> Vec<usize> {
    (0..3).filter(|&dimension| shape.sizes()[dimension] > 1).collect()
}

/// The destinations of a node's packets, one after another.
pub(super) struct Destinations {
    pattern: Pattern,
    rank: u32,
    hosts: u32,
    only: Option<u32>,
    rng: Rng,
    turn: u32,
}

impl Destinations {
    /// Returns the destinations of a node; `None` if its only destination is itself.
    pub(super) fn new(pattern: Pattern, shape: &TorusShape, rank: u32, mut rng: Rng) -> Option<Destinations> {
        let only = pattern.only(shape, rank);
        let hosts = shape.hosts();
        let turn = if pattern == Pattern::AllToAll { rng.below(u64::from(hosts) - 1) as u32 } else { 0 };
        (only != Some(rank)).then_some(Destinations { pattern, rank, hosts, only, rng, turn })
    }

    /// Returns the destination of the next packet.
    pub(super) fn next(&mut self) -> u32 {
        let others = self.hosts - 1;
        let further = match (self.only, self.pattern) {
            (Some(only), _) => return only,
            (None, Pattern::AllToAll) => {
                self.turn = (self.turn + 1) % others;
                1 + self.turn
            }
            (None, _) => 1 + self.rng.below(u64::from(others)) as u32,
        };
        ((u64::from(self.rank) + u64::from(further)) % u64::from(self.hosts)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_fabric::Torus;
    use nicety_types::NodeId;

    fn shape(sizes: &[u32]) -> TorusShape {
        Torus::new(sizes).unwrap().shape(sizes.iter().product::<u32>() as usize).unwrap()
    }

    #[test]
    fn destinations_by_hand() {
        let cube = shape(&[8, 8, 8]);
        let from =
            |pattern: Pattern, at| pattern.only(&cube, cube.rank(at)).map(|rank| cube.coordinates(rank));
        for (pattern, expected) in [
            (Pattern::Neighbour, Some([0, 3, 1])),
            (Pattern::Uniform, None),
            (Pattern::Transpose, Some([2, 0, 7])),
            (Pattern::AllToAll, None),
            (Pattern::BitComplement, Some([0, 5, 7])),
            (Pattern::Tornado, Some([2, 5, 3])),
        ] {
            assert_eq!(from(pattern, [7, 2, 0]), expected, "{}", pattern.name());
        }
        let flat = shape(&[4, 1, 4]);
        assert_eq!(Pattern::Transpose.only(&flat, flat.rank([3, 0, 1])), Some(flat.rank([1, 0, 3])));
        let odd = shape(&[5]);
        assert_eq!(Pattern::Tornado.only(&odd, 4), Some(1));
    }

    #[test]
    fn all_others_are_destinations_and_nobody_is_his_own() {
        let shape = shape(&[3, 2]);
        for pattern in [Pattern::Uniform, Pattern::AllToAll] {
            let rng = Rng::named(1, NodeId(4), "destinations");
            let mut destinations = Destinations::new(pattern, &shape, 4, rng).unwrap();
            let mut counts = [0; 6];
            (0..5000).for_each(|_| counts[destinations.next() as usize] += 1);
            assert_eq!(counts[4], 0);
            let others = counts.iter().enumerate().filter(|(rank, _)| *rank != 4);
            match pattern {
                Pattern::AllToAll => assert!(others.into_iter().all(|(_, &count)| count == 1000)),
                _ => assert!(others.into_iter().all(|(_, count)| (880..1120).contains(count)), "{counts:?}"),
            }
        }
        let rng = || Rng::named(1, NodeId(0), "");
        let turns: Vec<u32> = {
            let mut destinations = Destinations::new(Pattern::AllToAll, &shape, 4, rng()).unwrap();
            (0..6).map(|_| destinations.next()).collect()
        };
        let next = |rank: u32| if rank == 3 { 5 } else { (rank + 1) % 6 };
        assert!(turns.windows(2).all(|pair| pair[1] == next(pair[0])), "{turns:?}");
        let square = self::shape(&[3, 3]);
        assert!(Destinations::new(Pattern::Transpose, &square, square.rank([1, 1, 0]), rng()).is_none());
        assert!(Destinations::new(Pattern::Transpose, &square, square.rank([1, 2, 0]), rng()).is_some());
    }

    #[test]
    fn patterns_that_a_torus_has_not() {
        for (name, sizes, why) in [
            ("spiral", &[4][..], "no pattern 'spiral'; the patterns are neighbour, uniform"),
            ("uniform", &[1], "a single node"),
            ("transpose", &[8], "one dimension only"),
            ("transpose", &[8, 8, 4], "have different sizes; write for example --topology torus:8x8x8"),
            ("bit-complement", &[8, 6], "is not a power of two"),
            ("tornado", &[2, 2, 2], "no dimension has 3 nodes"),
        ] {
            let error = Pattern::parse(name, &shape(sizes)).unwrap_err();
            assert!(error.exit_status() == 2 && error.to_string().contains(why), "{name}: {error}");
        }
        for pattern in Pattern::ALL {
            assert_eq!(Pattern::parse(pattern.name(), &shape(&[4, 4, 4])).unwrap(), pattern);
        }
    }
}
