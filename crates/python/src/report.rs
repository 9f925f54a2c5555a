//! The report of a run, as JSON.

use nicety::{
    KernelCounters, MicroengineReport, NodeReport, PortReport, ProcessEnd, ProcessReport, QueueCounters, Run,
    nfp, qnix, spin,
};
use serde_json::{Value, json};

fn application(used: &nicety::ApplicationReport) -> Value {
    json!({
        "name": used.name,
        "weight": used.weight,
        "handler_runs": used.handlers.runs,
        "handler_instructions": used.handlers.instructions,
        "handler_cycles": used.handlers.cycles,
        "handler_stalled_cycles": used.handlers.stalled,
        "handlers_failed": used.handlers.failed,
        "messages_refused": used.refused,
        "hpu_memory_bytes": used.memory_bytes,
        "hpu_memory_most_bytes": used.most_memory_bytes,
    })
}

fn refused_command(refused: &nicety::RefusedCommand) -> Value {
    json!({
        "command": refused.command,
        "code": refused.code,
        "place": refused.place,
        "times": refused.times,
    })
}

fn failure(failure: &nicety::ProgramFailure) -> String {
    match failure.times {
        1 => failure.text.clone(),
        times => format!("{} ({times} times)", failure.text),
    }
}

fn process(process: &ProcessReport) -> Value {
    let (returned, trapped) = match &process.end {
        None => (None, None),
        Some(ProcessEnd::Returned(value)) => (Some(value), None),
        Some(ProcessEnd::Trapped(why)) => (None, Some(why)),
    };
    let counters = &process.counters;
    json!({
        "context": process.context,
        "name": process.name,
        "returned": returned,
        "trapped": trapped,
        "cycles_computing": counters.computing,
        "cycles_asleep": counters.asleep,
        "cycles_ready": counters.ready,
        "cycles_idle": counters.idle,
        "instructions": counters.instructions,
        "references": counters.references,
    })
}

fn microengine(report: &MicroengineReport) -> Value {
    let counters = &report.counters;
    json!({
        "microengine": report.microengine,
        "cycles_computing": counters.computing,
        "cycles_switching": counters.switching,
        "cycles_asleep": counters.asleep,
        "cycles_idle": counters.idle,
        "switches": counters.switches,
        "processes": report.processes.iter().map(process).collect::<Vec<_>>(),
    })
}

fn channels(report: &nfp::Report) -> Value {
    let counters = &report.channels;
    json!({
        "posted": counters.posted,
        "pushed": counters.pushed,
        "transfers": counters.transfers,
        "transferred_bytes": counters.bytes,
        "dma_errors": counters.errors,
        "retries": counters.retries,
        "dropped": counters.dropped,
        "pages_pinned": counters.pinned,
        "port": port(&report.port),
        "microengines": report.microengines.iter().map(microengine).collect::<Vec<_>>(),
    })
}

fn port(report: &PortReport) -> Value {
    let queue = |counted: &QueueCounters| {
        json!({
            "queue": counted.queue,
            "frames_received": counted.received,
            "frames_unclaimed": counted.unclaimed,
            "frames_waiting": counted.waiting,
        })
    };
    json!({
        "frames_sent": report.counters.sent,
        "frames_received": report.counters.received,
        "frames_damaged": report.counters.damaged,
        "frames_unclaimed": report.counters.unclaimed,
        "frames_waiting": report.counters.waiting,
        "frames_refused": report.refused.frames,
        "envelopes_refused": report.refused.envelopes,
        "queues": report.queues.iter().map(queue).collect::<Vec<_>>(),
    })
}

fn interfaces(counted: &nicety::qnix::Statistics) -> Value {
    json!({
        "sends": counted.sends,
        "programmed": counted.programmed,
        "receives": counted.receives,
        "packets_sent": counted.packets_sent,
        "packets_received": counted.packets_received,
        "buffered": counted.buffered,
        "held_back": counted.held_back,
        "strays": counted.strays,
        "unusable": counted.unusable,
        "doorbells": counted.doorbells,
        "refused": counted.refused,
    })
}

fn kernel(counted: KernelCounters) -> Value {
    json!({
        "calls": counted.calls,
        "pins": counted.pins,
        "pages_pinned": counted.pages_pinned,
        "unpins": counted.unpins,
        "interrupts": counted.interrupts,
        "wakes": counted.wakes,
    })
}

fn portals(counted: &spin::Report) -> Value {
    let transport = &counted.transport;
    json!({
        "messages_matched": counted.portals.matched,
        "messages_dropped": counted.portals.dropped_total(),
        "first_dropped": counted.portals.first_dropped().map(|message| message.to_string()),
        "handler_runs": counted.handlers.runs,
        "handler_instructions": counted.handlers.instructions,
        "handler_cycles": counted.handlers.cycles,
        "handler_lines_shown": counted.printed.lines,
        "handler_lines_left_out": counted.printed.left_out,
        "applications": counted.applications.iter().map(application).collect::<Vec<_>>(),
        "transport": {
            "retransmitted": transport.retransmitted,
            "corrupted": transport.corrupted,
            "duplicated": transport.duplicated,
            "out_of_order": transport.out_of_order,
            "acknowledgements": transport.acknowledgements,
            "refusals": transport.refusals,
            "timeouts": transport.timeouts,
            "unusable": counted.unusable.total(),
        },
    })
}

/// The counters of a card, by the name that a host has for its design's features; null for a design without such a
/// name.
fn card(node: &NodeReport) -> Value {
    if let Some(counted) = node.card.of::<spin::Report>() {
        json!({ "portals": portals(counted) })
    } else if let Some(counted) = node.card.of::<nfp::Report>() {
        json!({ "channels": channels(counted) })
    } else if let Some(counted) = node.card.of::<qnix::Report>() {
        json!({ "vni": interfaces(&counted.interfaces) })
    } else {
        Value::Null
    }
}

/// The results of a run, on nodes and links.
pub fn report(run: &Run) -> String {
    let node = |node: &NodeReport| {
        let of_nfp = || node.card.of::<nfp::Report>().map(|report| report.kernel);
        let of_qnix = || node.card.of::<qnix::Report>().map(|report| report.kernel);
        json!({
            "nic": &*node.nic,
            "host_memory_read_bytes": node.memory.read,
            "host_memory_written_bytes": node.memory.written,
            "kernel": kernel(of_nfp().or_else(of_qnix).unwrap_or_default()),
            "failures": node.failures.iter().map(failure).collect::<Vec<_>>(),
            "refused_commands": node.refused_commands.iter().map(refused_command).collect::<Vec<_>>(),
            "card": card(node),
        })
    };
    let link = |link: &nicety::FaultStatistics| {
        json!({
            "link": format!("{} -> {}", link.from, link.to),
            "packets": link.packets,
            "lost": link.lost,
            "corrupted": link.corrupted,
            "duplicated": link.duplicated,
            "reordered": link.reordered,
        })
    };
    json!({
        "time_ps": run.end.ps(),
        "events": run.events,
        "nodes": run.nodes.iter().map(node).collect::<Vec<_>>(),
        "failures": run.failures(),
        "links": run.network.faults.iter().map(link).collect::<Vec<_>>(),
    })
    .to_string()
}
