//! Channel loads: the load that a pattern puts on each link. It is computed from the routes of all packets.
//!
//! The load of a link is the traffic on it, in link bandwidths, if every sending node sends at the bandwidth of a link. The most
//! loaded link is full first. So traffic saturates at the fraction 1 / load of a link's bandwidth, or below (Dally and Towles,
//! section 3.3).

use super::pattern::Pattern;
use nicety::Error;
use nicety_fabric::TorusShape;

/// Maximum number of pairs of nodes for which routes are walked.
const MOST_PAIRS: u64 = 1 << 24;

/// The loads of all links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ChannelLoads {
    /// The mean load over all links.
    pub(super) mean: f64,
    /// The load of the most loaded link.
    pub(super) max: f64,
    /// Mean number of links on a route, over all packets.
    pub(super) hops: f64,
}

impl ChannelLoads {
    /// Returns the loads of a pattern; `None` if there are too many pairs of nodes.
    ///
    /// # Errors
    /// When interrupted. This is checked at every node.
    pub(super) fn of(
        pattern: Pattern,
        shape: &TorusShape,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<ChannelLoads>, Error> {
        // A route depends only on the parity of each coordinate and on the distances to the destination. So if all sizes are
        // even, the first two places of each dimension stand for all others.
        let folds = shape.sizes().iter().all(|size| *size == 1 || size.is_multiple_of(2));
        ChannelLoads::walked(pattern, shape, folds && pattern.only(shape, 0).is_none(), interrupted)
    }

    /// Returns the loads of a pattern. If `folded`, walks only the routes from one node of each combination of parities, and
    /// counts links at nodes with the same parities together.
    fn walked(
        pattern: Pattern,
        shape: &TorusShape,
        folded: bool,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<ChannelLoads>, Error> {
        let hosts = shape.hosts();
        let place = |rank: u32| match folded {
            true => shape.coordinates(rank).iter().rev().fold(0, |place, at| 2 * place + (at % 2) as usize),
            false => rank as usize,
        };
        let is_source = |rank: &u32| !folded || shape.coordinates(*rank).iter().all(|at| *at < 2);
        let sources: Vec<u32> = (0..hosts).filter(is_source).collect();
        let to_all = pattern.only(shape, 0).is_none();
        if to_all && sources.len() as u64 * u64::from(hosts) > MOST_PAIRS {
            return Ok(None);
        }
        // The number of packets on each link. A node sends `each` packets, one to each destination.
        let mut packets = vec![0u64; 6 * if folded { 8 } else { hosts as usize }];
        let (mut hops, mut senders) = (0, 0u64);
        let mut walk = |from: u32, to: u32| {
            for hop in shape.path(from, to) {
                packets[6 * place(hop.from) + 2 * hop.dimension + usize::from(hop.plus)] += 1;
                hops += 1;
            }
        };
        for &from in &sources {
            if interrupted() {
                return Err(Error::Interrupted);
            }
            match pattern.only(shape, from) {
                Some(to) if to == from => continue,
                Some(to) => walk(from, to),
                None => (0..hosts).for_each(|to| walk(from, to)),
            }
            senders += 1;
        }
        let each = if to_all { u64::from(hosts) - 1 } else { 1 };
        let used = shape.sizes().iter().filter(|&&size| size > 1).count() as u64;
        let links = 2 * used * sources.len() as u64;
        let share = |packets: u64, of: u64| packets as f64 / of as f64;
        Ok(Some(ChannelLoads {
            mean: share(hops, each * links),
            max: share(packets.into_iter().max().unwrap_or(0), each),
            hops: share(hops, each * senders),
        }))
    }

    /// Returns the offered load at which the first link is full, as a fraction of a link's bandwidth. The link between a node and
    /// its router counts, too.
    pub(super) fn saturation(&self) -> f64 {
        1.0 / self.max.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_fabric::Torus;

    fn loads(pattern: Pattern, sizes: &[u32]) -> ChannelLoads {
        let shape = Torus::new(sizes).unwrap().shape(sizes.iter().product::<u32>() as usize).unwrap();
        ChannelLoads::of(pattern, &shape, &|| false).unwrap().unwrap()
    }

    #[test]
    fn loads_by_hand() {
        // The ring of a dimension has 8 nodes. A route has 2 links per dimension in the mean, if routes from a node to
        // itself count. Half of the links are in each direction, so the load is 2 x 8 / 2 / 8 = 1. One of 512 destinations
        // is the node itself, to which it sends nothing.
        let uniform = loads(Pattern::Uniform, &[8, 8, 8]);
        assert!(
            (uniform.mean - 512.0 / 511.0).abs() < 1e-12
                && (uniform.hops - 6.0 * 512.0 / 511.0).abs() < 1e-12
        );
        assert!((uniform.max - uniform.mean).abs() < 0.01, "{uniform:?}");
        assert_eq!(loads(Pattern::AllToAll, &[8, 8, 8]), uniform);
        // A route has three links in each dimension, all in the same direction.
        let tornado = loads(Pattern::Tornado, &[8, 8, 8]);
        assert_eq!((tornado.max, tornado.mean, tornado.hops), (3.0, 1.5, 9.0));
        assert_eq!(tornado.saturation(), 1.0 / 3.0);
        let neighbour = loads(Pattern::Neighbour, &[5, 5]);
        assert_eq!(
            (neighbour.max, neighbour.mean, neighbour.hops, neighbour.saturation()),
            (1.0, 0.5, 2.0, 1.0)
        );
        // In a ring of 4, the wrap-around link connects nodes 0 and 3, and a direct link connects nodes 1 and 2.
        let complement = loads(Pattern::BitComplement, &[4]);
        assert_eq!((complement.max, complement.mean, complement.hops), (1.0, 0.5, 1.0));
    }

    #[test]
    fn long_rings_are_full_sooner() {
        let of = |pattern, sizes: &[u32]| loads(pattern, sizes).saturation();
        assert!((of(Pattern::Uniform, &[16, 16]) - 0.5).abs() < 0.01);
        assert!((of(Pattern::Uniform, &[32]) - 0.25).abs() < 0.01);
        assert_eq!(of(Pattern::Tornado, &[16, 4]), 1.0 / 7.0);
        // In a small torus, the links between nodes and routers limit traffic.
        assert_eq!(of(Pattern::Uniform, &[4, 4]), 1.0);
    }

    #[test]
    fn a_node_of_each_parity_stands_for_all() {
        for sizes in [&[2][..], &[6], &[16], &[4, 6], &[2, 10, 1], &[4, 4, 4], &[6, 2, 8], &[8, 8, 8]] {
            let shape = Torus::new(sizes).unwrap().shape(sizes.iter().product::<u32>() as usize).unwrap();
            let [few, all] =
                [true, false].map(|folded| ChannelLoads::walked(Pattern::Uniform, &shape, folded, &|| false));
            assert_eq!(few.unwrap(), all.unwrap(), "{sizes:?}");
        }
    }

    #[test]
    fn routes_of_very_many_pairs_are_not_walked() {
        let shape = Torus::new(&[32, 32, 15]).unwrap().shape(15 << 10).unwrap();
        let of = |pattern, interrupted: bool| ChannelLoads::of(pattern, &shape, &|| interrupted);
        assert_eq!(of(Pattern::Uniform, false).unwrap(), None);
        assert!(of(Pattern::Neighbour, false).unwrap().is_some());
        assert!(matches!(of(Pattern::Neighbour, true), Err(Error::Interrupted)));
    }
}
