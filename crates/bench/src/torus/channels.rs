//! Channel loads: a pattern's load on each link, from a walk of the routes of all its packets.
//!
//! The load of a link is its traffic if every sending node sends at the bandwidth of a link. The most loaded link is full first:
//! traffic saturates at the fraction 1 / load at the latest (Dally and Towles, section 3.3).

use super::pattern::Pattern;
use nicety::Error;
use nicety_fabric::TorusShape;

/// Maximum pairs of nodes for a walk of their routes.
const MOST_PAIRS: u64 = 1 << 24;

/// The loads of all links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ChannelLoads {
    /// The mean over the links.
    pub(super) mean: f64,
    /// The load of the most loaded link.
    pub(super) max: f64,
    /// Mean links of a route, over all packets.
    pub(super) hops: f64,
}

impl ChannelLoads {
    /// Returns the loads of a pattern; none for too many pairs of nodes.
    ///
    /// # Errors
    /// On an interrupt, which is checked at every node.
    pub(super) fn of(
        pattern: Pattern,
        shape: &TorusShape,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<ChannelLoads>, Error> {
        // The routing rule depends on the parities of a place, and on the distance to the destination. So where all sizes are
        // even, the first two places of each dimension represent all others.
        let folds = shape.sizes().iter().all(|size| *size == 1 || size.is_multiple_of(2));
        ChannelLoads::walked(pattern, shape, folds && pattern.only(shape, 0).is_none(), interrupted)
    }

    /// Returns the loads of a pattern. With `folded`, walks only the routes from one node of each parity, and counts links at
    /// places of the same parities as one.
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
        // Packets on each link. A node sends `each`, one to each destination.
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

    /// The offered load, as a fraction of a link's bandwidth, at which the first link is full. A node's own link to and from its
    /// router counts, too.
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
        // A ring of 8: 2 links per route, the mean including the node itself, half of them in each direction: 8 / 8. One of the
        // 512 destinations is the node itself, which gets nothing.
        let uniform = loads(Pattern::Uniform, &[8, 8, 8]);
        assert!(
            (uniform.mean - 512.0 / 511.0).abs() < 1e-12
                && (uniform.hops - 6.0 * 512.0 / 511.0).abs() < 1e-12
        );
        assert!((uniform.max - uniform.mean).abs() < 0.01, "{uniform:?}");
        assert_eq!(loads(Pattern::AllToAll, &[8, 8, 8]), uniform);
        // Three links in each dimension, all in one direction.
        let tornado = loads(Pattern::Tornado, &[8, 8, 8]);
        assert_eq!((tornado.max, tornado.mean, tornado.hops), (3.0, 1.5, 9.0));
        assert_eq!(tornado.saturation(), 1.0 / 3.0);
        let neighbour = loads(Pattern::Neighbour, &[5, 5]);
        assert_eq!(
            (neighbour.max, neighbour.mean, neighbour.hops, neighbour.saturation()),
            (1.0, 0.5, 2.0, 1.0)
        );
        // In a ring of 4, 0 and 3 are adjacent over the wrap-around link, 1 and 2 over the link between.
        let complement = loads(Pattern::BitComplement, &[4]);
        assert_eq!((complement.max, complement.mean, complement.hops), (1.0, 0.5, 1.0));
    }

    #[test]
    fn long_rings_are_full_sooner() {
        let of = |pattern, sizes: &[u32]| loads(pattern, sizes).saturation();
        assert!((of(Pattern::Uniform, &[16, 16]) - 0.5).abs() < 0.01);
        assert!((of(Pattern::Uniform, &[32]) - 0.25).abs() < 0.01);
        assert_eq!(of(Pattern::Tornado, &[16, 4]), 1.0 / 7.0);
        // A node's own link limits a small torus.
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
