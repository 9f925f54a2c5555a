//! Assigns lanes to uses of a resource, so that uses that overlap in time are on separate lanes.

use nicety_types::{Slice, Time};

/// Returns the lane of each use of one resource. `slices` are sorted by start. Uses with the same start are sorted by
/// length, the longest first. Uses in one lane do not overlap, but they may nest if the resource allows nesting. Lanes
/// are numbered from 0, and each use gets the lowest possible lane. A use of zero length fits in every lane.
pub(super) fn assign(slices: &[Slice]) -> Vec<u32> {
    // For each lane, the ends of the uses that have not ended, the innermost last.
    let mut lanes: Vec<Vec<Time>> = Vec::new();
    let mut assigned = Vec::with_capacity(slices.len());
    for slice in slices {
        let fits = |open: &mut Vec<Time>| {
            while open.last().is_some_and(|&end| end <= slice.start) {
                open.pop();
            }
            let inside = slice.resource.kind().nests || slice.start == slice.end;
            open.last().is_none_or(|&end| inside && slice.end <= end)
        };
        let lane = lanes.iter_mut().position(fits).unwrap_or_else(|| {
            lanes.push(Vec::new());
            lanes.len() - 1
        });
        lanes[lane].push(slice.end);
        assigned.push(lane as u32);
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_types::Resource;

    fn lanes(resource: Resource, times: &[(u64, u64)]) -> Vec<u32> {
        let slice = |&(start, end): &(u64, u64)| Slice {
            resource,
            start: Time::from_ps(start),
            end: Time::from_ps(end),
            message: None,
            what: "",
        };
        assign(&times.iter().map(slice).collect::<Vec<_>>())
    }

    #[test]
    fn overlapping_uses_lie_side_by_side() {
        assert_eq!(lanes(Resource::DMA, &[(0, 10), (2, 5), (3, 12), (5, 6), (10, 11)]), [0, 1, 2, 1, 0]);
    }

    #[test]
    fn intervals_without_length_share_a_lane() {
        assert_eq!(lanes(Resource::BUS_TO_HOST, &[(0, 10), (0, 0), (5, 5), (10, 10), (10, 12)]), [0; 5]);
    }

    #[test]
    fn nested_uses_lie_inside() {
        let times = [(0, 10), (0, 4), (4, 10), (5, 5), (9, 12), (10, 11)];
        assert_eq!(lanes(Resource::PROGRAM, &times), [0, 0, 0, 0, 1, 0]);
    }
}
