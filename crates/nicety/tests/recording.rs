//! Tests that the recording of a run is exact, does not depend on the number of shards, and does not change the run.

use nicety::record::{LeftOut, Level, Resource, Starter, timeline::Scale};
use nicety::{Cluster, ClusterConfig, Duration, Error, Run, Time, Topology, cards};

/// Every host except host 0 sends three messages of these sizes to host 0. Host 0 receives them one after another.
fn gather(nodes: u32, config: impl FnOnce(ClusterConfig) -> ClusterConfig) -> Run {
    const SIZES: [u64; 3] = [8, 5000, 20_000];
    // No message is acknowledged, so that there are no other messages.
    let card = cards::load("spin-discrete", &["messages.eager=20000 B".to_owned()]).unwrap();
    let topology = if nodes == 2 { Topology::Pair } else { Topology::Star };
    let mut cluster =
        Cluster::new(config(ClusterConfig { topology, ..ClusterConfig::new(nodes, card) })).unwrap();
    for rank in 1..nodes {
        cluster.program(rank, |host| async move {
            let buffer = host.alloc(20_000)?;
            host.compute(Duration::from_ns(100)).await;
            for size in SIZES {
                host.barrier().await;
                host.send(&buffer.slice(0, size)?, 0, 1).await?;
            }
            Ok(())
        });
    }
    cluster.program(0, move |host| async move {
        let buffers = (1..nodes).map(|_| host.alloc(20_000)).collect::<Result<Vec<_>, Error>>()?;
        for _ in SIZES {
            let receives: Vec<_> = buffers
                .iter()
                .zip(1..)
                .map(|(buffer, rank)| host.recv(buffer, Some(rank), Some(1)))
                .collect();
            // All receives are posted before the barrier.
            let mut receives = receives.into_iter().map(Box::pin).collect::<Vec<_>>();
            let mut waiting = receives.len();
            let mut barrier = Some(Box::pin(host.barrier()));
            std::future::poll_fn(|context| {
                use std::future::Future;
                use std::task::Poll;
                let mut left = Vec::new();
                for mut receive in receives.drain(..) {
                    match receive.as_mut().poll(context) {
                        Poll::Ready(received) => {
                            received.expect("the message fits");
                            waiting -= 1;
                        }
                        Poll::Pending => left.push(receive),
                    }
                }
                receives = left;
                if let Some(future) = &mut barrier
                    && future.as_mut().poll(context).is_ready()
                {
                    barrier = None;
                }
                if waiting == 0 && barrier.is_none() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
        Ok(())
    });
    cluster.run().unwrap()
}

fn recorded(nodes: u32, recording: Level, shards: usize) -> Run {
    gather(nodes, |config| ClusterConfig { recording, shards, ..config })
}

#[test]
fn recording_changes_nothing_and_each_level_adds_tables() {
    let runs = Level::ALL.map(|level| recorded(2, level, 1));
    for (run, level) in runs.iter().zip(Level::ALL) {
        assert_eq!((run.end, &run.nodes), (runs[0].end, &runs[0].nodes), "at {level}");
        let recording = &run.recording;
        assert_eq!(recording.level, level);
        assert_eq!(recording.messages().next().is_none(), level < Level::Messages);
        assert_eq!(recording.packets.is_empty(), level < Level::Packets);
        assert_eq!(recording.resources.is_empty(), level < Level::Everything);
        assert!(recording.left_out.is_empty());
    }
    assert!(runs[1].recording.messages().eq(runs[3].recording.messages()));
    assert_eq!(runs[2].recording.packets, runs[3].recording.packets);
}

#[test]
fn recordings_do_not_depend_on_shards() {
    let one = recorded(4, Level::Everything, 1).recording;
    assert!(one.resources.iter().any(|usage| usage.slice.resource.is_a(Resource::SWITCH_PORT)));
    for shards in 2..=5 {
        let other = recorded(4, Level::Everything, shards).recording;
        assert_eq!(one, other, "{shards} shards");
        assert_eq!(one.timeline(Scale::Picosecond), other.timeline(Scale::Picosecond));
    }
}

#[test]
fn the_stages_of_a_message_add_up_to_its_latency() {
    let recording = recorded(4, Level::Everything, 1).recording;
    assert_eq!(recording.message_count(), 9);
    for message in recording.messages() {
        assert_eq!((message.kind, message.by, message.outcome), ("put", Starter::Host, "ok"));
        let stages = message.stages.as_ref().expect("a put of a host goes on from its post");
        let sum: Duration = stages.iter().map(|(_, time)| *time).sum();
        let times = [
            message.posted,
            message.first_byte.unwrap(),
            message.matched.unwrap(),
            message.completed.unwrap(),
        ];
        assert!(times.is_sorted(), "{message:?}");
        assert_eq!(sum, times[3].since(times[0]), "{message:?}");
        assert!(message.noticed.unwrap() > times[3]);
    }
    let (messages, totals) = recording.breakdown();
    assert_eq!(messages, 9);
    let all: Duration = totals.iter().map(|total| total.total).sum();
    let latencies = recording.messages().map(|m| m.completed.unwrap().since(m.posted));
    assert_eq!(all, latencies.sum());
}

#[test]
fn the_worked_example_is_recorded_to_the_picosecond() {
    // The stages of 8 B between hosts on spin-discrete, in ns: post 65, bus 250, link 0.160 + 33.4, match 30. Deposit
    // and event take 0.125 + 250.
    let recording = recorded(2, Level::Everything, 1).recording;
    let message = &recording.messages().next().unwrap();
    let after = |time: Option<Time>| time.unwrap().since(message.posted).ps();
    assert_eq!(message.bytes, 8);
    assert_eq!(after(message.first_byte), 315_000);
    assert_eq!(after(message.matched), 378_560);
    assert_eq!(after(message.completed), 628_685);
    assert_eq!(after(message.noticed), 693_685);
    let packet = &recording.packets[0];
    assert_eq!((packet.message, packet.offset, packet.bytes), (message.id, 0, 8));
    assert_eq!(packet.sent.since(message.posted).ps(), 315_000);
    assert_eq!(after(packet.arrived), 348_560);
    assert_eq!(after(packet.matched), 378_560);
    assert_eq!(after(packet.settled), 378_685);
}

#[test]
fn packets_are_those_of_the_messages() {
    let recording = recorded(4, Level::Packets, 1).recording;
    for message in recording.messages() {
        let packets: Vec<_> = recording.packets.iter().filter(|p| p.message == message.id).collect();
        assert_eq!(packets.iter().map(|p| p.bytes).sum::<u64>(), message.bytes);
        assert_eq!(packets.len() as u64, message.bytes.div_ceil(4096));
        assert_eq!(Some(packets[0].sent), message.first_byte);
        for packet in packets {
            let times =
                [packet.sent, packet.arrived.unwrap(), packet.matched.unwrap(), packet.settled.unwrap()];
            assert!(times.is_sorted(), "{packet:?}");
        }
    }
}

#[test]
fn exclusive_resources_serve_one_at_a_time() {
    let recording = recorded(4, Level::Everything, 1).recording;
    let mut seen = Vec::new();
    for group in recording
        .resources
        .chunk_by(|a, b| (a.node, a.slice.resource, a.unit) == (b.node, b.slice.resource, b.unit))
    {
        let resource = group[0].slice.resource;
        seen.push(resource.name());
        if !resource.kind().nests {
            for pair in group.windows(2) {
                let overlap = pair[0].slice.end > pair[1].slice.start;
                assert!(!overlap || pair[1].slice.start == pair[1].slice.end, "{pair:?}");
            }
        }
    }
    for name in
        ["program", "host CPU", "bus to card", "bus to host", "DMA", "link", "matching", "switch port"]
    {
        assert!(seen.contains(&name), "no {name} in {seen:?}");
    }
}

#[test]
fn full_tables_keep_the_first_rows_and_count_the_others() {
    let all = recorded(2, Level::Everything, 1).recording;
    let some = gather(2, |config| ClusterConfig { recording: Level::Everything, recorded_rows: 2, ..config })
        .recording;
    // The sender's third message and its packets are missing. The receiver leaves out the same number of rows.
    assert!(some.messages().eq(all.messages().take(2)));
    assert_eq!(some.left_out.messages, 1);
    assert_eq!((some.packets.len(), some.left_out.packets), (2, 2 * (all.packets.len() as u64 - 2)));
    let kept = some.resources.len() as u64;
    assert_eq!(kept + some.left_out.slices, all.resources.len() as u64);
    let LeftOut { messages, packets, handler_runs, slices } = some.left_out;
    let by_table =
        [("messages", messages), ("packets", packets), ("handler_runs", handler_runs), ("resources", slices)];
    assert_eq!(some.left_out_by_table(), by_table);
}

#[test]
fn tables_have_a_row_for_each_and_units_in_their_names() {
    let recording = recorded(4, Level::Everything, 1).recording;
    let tables = [
        (recording.messages_table(), recording.message_count()),
        (recording.packets_table(), recording.packets.len()),
        (recording.handler_runs_table(), recording.handler_runs.len()),
        (recording.resources_table(), recording.resources.len()),
    ];
    for (table, rows) in tables {
        assert_eq!(table.num_rows(), rows);
        let schema = table.schema();
        for field in schema.fields() {
            let is_time = field.name().ends_with("_ps");
            assert!(!is_time || field.data_type().is_signed_integer(), "{field}");
        }
    }
}
