//! Limits of clusters with PsPIN, and errors between the keys that set the cores of a cluster.

use crate::spec::pspin_map as map;
use nicety_spec::{Reader, Remedy};

/// Most cores of a card, and the shortest stack in bytes.
pub(super) const CORES: u64 = 1024;
pub(super) const STACK: u64 = 64;
/// Most clusters of a card with PsPIN.
const MOST: u64 = map::CLUSTERS as u64;

/// Returns whether `cores` divide into clusters of `cluster` cores. `pspin_stack` is the length of a stack if the
/// cores run handlers written for PsPIN.
fn fits(cores: u64, cluster: u64, pspin_stack: Option<u32>) -> bool {
    let has_room = |stack: u32| cores / cluster <= MOST && u64::from(stack) <= stack_near(cluster);
    cores.is_multiple_of(cluster) && pspin_stack.is_none_or(has_room)
}

/// Returns the longest stack of cores in clusters of `cluster` cores that run handlers written for PsPIN.
fn stack_near(cluster: u64) -> u64 {
    u64::from(map::RUNTIME) / cluster
}

/// Returns the cluster size nearest to `cluster` that [fits](fits) the cores.
pub(super) fn cluster_near(cores: u64, cluster: u64, pspin_stack: Option<u32>) -> Option<u64> {
    (1..=cores).filter(|near| fits(cores, *near, pspin_stack)).min_by_key(|near| near.abs_diff(cluster))
}

/// Returns the number of cores nearest to `cores` that fits clusters of `cluster` cores.
pub(super) fn cores_near(cores: u64, cluster: u64, pspin_stack: Option<u32>) -> Option<u64> {
    let below = cores / cluster * cluster;
    let multiples = [below, below + cluster, MOST * cluster].into_iter().filter(|near| *near > 0);
    let can_be = |near: &u64| *near <= CORES && fits(*near, cluster, pspin_stack);
    multiples.filter(can_be).min_by_key(|near| near.abs_diff(cores))
}

/// Checks a card for handlers written for PsPIN, with stacks of `stack` bytes.
pub(super) fn check(reader: &Reader<'_>, cluster: u64, cores: u64, stack: u32) {
    let (hpu, memory) = (reader.section("hpu"), reader.section("memory"));
    let remedy = |section, key, value: String| Remedy { section, key, value };
    let other = |key: &'static str, near: Option<u64>| {
        let section = if key == "cores" { &hpu } else { &memory };
        near.map(|near| remedy(section, key, near.to_string()))
    };
    let cluster_near = cluster_near(cores, cluster, Some(stack));
    if cores / cluster > MOST {
        let message =
            format!("{} clusters: a task of PsPIN has the scratchpads of {MOST} clusters", cores / cluster);
        let cores = other("cores", cores_near(cores, cluster, Some(stack)));
        let remedies: Vec<_> = cores.into_iter().chain(other("cluster", cluster_near)).collect();
        let otherwise = &format!("write {} or fewer", MOST * cluster);
        hpu.refuse_one(&message, &remedies, "cores", otherwise);
    }
    let longest = stack_near(cluster);
    if u64::from(stack) > longest {
        let message = format!("the stacks of a cluster's {cluster} cores have {} bytes in all", map::RUNTIME);
        // The stack is the last remedy: it is the least likely cause.
        let stack = (longest >= STACK).then(|| remedy(&hpu, "stack", format!("{longest} B")));
        let remedies: Vec<_> = stack.into_iter().chain(other("cluster", cluster_near)).collect();
        hpu.refuse_one(&message, &remedies, "stack", "write fewer cores in a cluster (memory.cluster)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_that_fit() {
        assert_eq!(cluster_near(32, 5, None), Some(4));
        // At most four clusters, with 16 KiB of stacks in each.
        assert_eq!(cluster_near(32, 5, Some(2048)), Some(8));
        assert_eq!(cluster_near(32, 5, Some(512)), Some(8));
        assert_eq!(cluster_near(32, 30, Some(512)), Some(32));
        assert_eq!(cluster_near(30, 8, Some(2048)), None);
        assert_eq!(cores_near(30, 8, Some(2048)), Some(32));
        assert_eq!(cores_near(27, 8, Some(2048)), Some(24));
        assert_eq!(cores_near(48, 8, Some(2048)), Some(32));
        assert_eq!(cores_near(3, 8, None), Some(8));
    }
}
