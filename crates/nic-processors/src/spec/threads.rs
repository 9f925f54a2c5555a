//! Hardware threads of cores: `hpu.threads` and `hpu.issue`.

use crate::spec::clusters;
use nicety_spec::Section;

/// Reads `cores`, `threads` and `issue` of `[hpu]`. Returns the processors, the threads of a core, and its issue.
pub(super) fn read(s: &Section<'_>, overlaps: bool) -> (usize, usize, usize) {
    let cores = s.count("cores", 1..=clusters::CORES, "handler cores");
    let doc = "hardware threads of each core, which share its issue; each runs a handler";
    let threads = s.count_or("threads", 1..=64, 1, doc);
    let doc = "instructions that a core issues in a cycle, at most one of each of its threads";
    let issue = s.count_or("issue", 1..=64, 1, doc);
    if threads > 1 && overlaps {
        s.refuse(
            "threads",
            "threads share the issue of cores that execute in order",
            "write 1, or hpu.pipeline = \"in-order\"",
        );
    }
    if issue > threads {
        s.refuse(
            "issue",
            &format!(
                "a core issues at most one instruction of each thread in a cycle, and has {threads} threads"
            ),
            &format!("write {threads} or fewer, or raise hpu.threads"),
        );
    }
    let most = clusters::CORES / threads;
    if cores > most {
        let message =
            format!("{cores} cores with {threads} threads each have more than {} threads", clusters::CORES);
        s.refuse("threads", &message, &format!("write fewer, or {most} cores (hpu.cores)"));
        // Errors below would only follow from this one.
        return (1, 1, 1);
    }
    let (cores, threads) = (cores as usize, threads as usize);
    (cores * threads, threads, (issue as usize).min(threads))
}
