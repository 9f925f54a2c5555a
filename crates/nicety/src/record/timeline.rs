//! A recording as a timeline for the Perfetto viewer, <https://ui.perfetto.dev>.
//!
//! Each node is a process of the timeline, each of its resources a track, and each use a slice. A message is a flow,
//! which the viewer shows as arrows from slice to slice. The arrows begin at the message's origin: a handler or the
//! host's post. They pass the link, the matching unit, the handler and the deposit. They end at the host that notices
//! the message. Field numbers are those of Perfetto's `trace_packet.proto`, `track_event.proto` and
//! `track_descriptor.proto`.

use super::proto::Proto;
use super::{Message, Recording, Starter, Usage, lanes};
use nicety_types::{End, FlowPoint, MessageId, NodeId, Pick, Resource, ResourceKind, Slice, Time, Tracks};
use std::collections::{BTreeMap, HashMap};
use std::ptr;
use std::str::FromStr;

/// The unit of the timeline's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// A nanosecond, as the viewer expects. Times are rounded down. The arguments of each slice have the exact times.
    #[default]
    Nanosecond,
    /// A picosecond. Times are exact, but the viewer shows each picosecond as a nanosecond.
    Picosecond,
}

impl Scale {
    const fn ticks(self, time: Time) -> u64 {
        match self {
            Scale::Nanosecond => time.ps() / 1_000,
            Scale::Picosecond => time.ps(),
        }
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Scale, String> {
        match text {
            "ns" => Ok(Scale::Nanosecond),
            "ps" => Ok(Scale::Picosecond),
            other => Err(format!("no time scale '{other}' for a timeline; the scales are ns and ps")),
        }
    }
}

/// Fields of `TracePacket`.
mod packet {
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const EVENT: u32 = 11;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const DESCRIPTOR: u32 = 60;
}

/// Fields of `TrackDescriptor`, and of the `ProcessDescriptor` in it.
mod descriptor {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PROCESS: u32 = 3;
    pub const PARENT: u32 = 5;
    pub const CHILD_ORDERING: u32 = 11;
    pub const RANK: u32 = 12;
    pub const PID: u32 = 1;
    pub const PROCESS_NAME: u32 = 6;
    /// `ChildTracksOrdering::EXPLICIT`.
    pub const EXPLICIT: u64 = 3;
}

/// Fields of `TrackEvent`, and of the `DebugAnnotation` in it.
mod event {
    pub const ANNOTATION: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const TRACK: u32 = 11;
    pub const NAME: u32 = 23;
    pub const FLOW: u32 = 47;
    pub const FLOW_ENDS: u32 = 48;
    pub const BEGIN: u64 = 1;
    pub const END: u64 = 2;
    pub const ANNOTATION_UINT: u32 = 3;
    pub const ANNOTATION_TEXT: u32 = 6;
    pub const ANNOTATION_NAME: u32 = 10;
}

/// `Trace.packet`.
const PACKET: u32 = 1;
/// The number of the trace's only packet sequence.
const SEQUENCE: u64 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: the packets of the sequence depend on no earlier packets.
const CLEARED: u64 = 1;

/// A slice on a flow: the flow's number, and whether the slice is the last one.
#[derive(Clone, Copy)]
struct Step {
    flow: u64,
    last: bool,
}

impl Recording {
    /// Returns the timeline, as a Perfetto trace file. If the level of recording is below
    /// [`Level::Everything`](super::Level::Everything), the file has only a header.
    pub fn timeline(&self, scale: Scale) -> Vec<u8> {
        let mut trace = Writer { scale, bytes: Vec::new(), events: Vec::new() };
        let steps = self.steps();
        let first = Proto::new().uint(packet::SEQUENCE_FLAGS, CLEARED);
        trace.packet(first);
        let mut at = 0;
        for node in self.resources.chunk_by(|a, b| a.node == b.node) {
            let process = u64::from(node[0].node.0) + 1;
            trace.process(process, &node_name(node));
            let mut tracks = 0;
            let same_unit = |a: &Usage, b: &Usage| (a.slice.resource, a.unit) == (b.slice.resource, b.unit);
            for unit in node.chunk_by(same_unit) {
                trace.unit(process, &mut tracks, unit, at, &steps);
                at += unit.len();
            }
        }
        trace.finish()
    }

    /// Maps the index of each slice in `resources` to the flows that pass through the slice.
    fn steps(&self) -> HashMap<usize, Vec<Step>> {
        let messages: Vec<Message> = self.messages().collect();
        let mut points: HashMap<MessageId, Points> = HashMap::with_capacity(messages.len());
        points.extend(messages.iter().map(|m| (m.id, Points::default())));
        let ends: HashMap<MessageId, NodeId> = messages.iter().map(|m| (m.id, m.target)).collect();
        // Maps a node and a message to the runs of handlers that process the message there. These runs may have sent
        // messages.
        let mut runs: HashMap<(NodeId, MessageId), Vec<usize>> = HashMap::new();
        for (at, Usage { node, slice, .. }) in self.resources.iter().enumerate() {
            let Some(message) = slice.message else { continue };
            let kind = slice.resource.kind();
            if kind.programs.contains(&slice.what) {
                runs.entry((*node, message)).or_default().push(at);
            }
            let Some(points) = points.get_mut(&message) else { continue };
            for point in kind.flow {
                let here = match point.end {
                    End::Source => *node == message.source,
                    End::Target => *node == ends[&message],
                };
                if here && (point.purposes.is_empty() || point.purposes.contains(&slice.what)) {
                    points.take(point, at, &self.resources);
                }
            }
        }
        let mut steps: HashMap<usize, Vec<Step>> = HashMap::new();
        for message in &messages {
            let mut way: Vec<usize> = points[&message.id].0.iter().map(|(_, at)| *at).collect();
            if let Starter::Handler(cause) = message.by {
                let sent_it = |&&at: &&usize| {
                    let Slice { start, end, .. } = self.resources[at].slice;
                    (start..=end).contains(&message.posted)
                };
                way.extend(runs.get(&(message.id.source, cause)).and_then(|runs| runs.iter().find(sent_it)));
            }
            way.sort_by_key(|&at| self.resources[at].slice.start);
            let flow = (u64::from(message.id.source.0) << 40) + message.id.sequence + 1;
            let Some((&last, before)) = way.split_last().filter(|(_, before)| !before.is_empty()) else {
                continue;
            };
            for &at in before {
                steps.entry(at).or_default().push(Step { flow, last: false });
            }
            steps.entry(last).or_default().push(Step { flow, last: true });
        }
        steps
    }
}

/// The slices through which the flow of a message passes. A resource declares which points of a flow are at its slices.
#[derive(Clone, Default)]
struct Points(Vec<(&'static FlowPoint, usize)>);

impl Points {
    /// Makes the slice at index `at` the slice of a point, unless the point already has a better one.
    fn take(&mut self, point: &'static FlowPoint, at: usize, all: &[Usage]) {
        match self.0.iter_mut().find(|(known, _)| ptr::eq(*known, point)) {
            None => self.0.push((point, at)),
            Some((_, before)) => {
                let later = all[at].slice.start >= all[*before].slice.start;
                if point.pick == Pick::Last && later {
                    *before = at;
                }
            }
        }
    }
}

fn node_name(usages: &[Usage]) -> String {
    let node = usages[0].node;
    let switch = usages.iter().any(|usage| usage.slice.resource.is_a(Resource::SWITCH_PORT));
    if switch { format!("{node} (switch)") } else { node.to_string() }
}

fn track_name(usage: &Usage, lane: u32) -> String {
    let ResourceKind { name, tracks, .. } = *usage.slice.resource.kind();
    if tracks == Tracks::Overlapping {
        // Overlapping transfers belong to one engine. With a number, the viewer would show them as several engines.
        let others = usage.unit + lane;
        return if others == 0 { name.to_owned() } else { format!("{name}, also in flight ({others})") };
    }
    let numbered = tracks == Tracks::Numbered || usage.unit > 0;
    let mut text = if numbered { format!("{name} {}", usage.unit) } else { name.to_owned() };
    if lane > 0 {
        text += &format!(", also ({lane})");
    }
    text
}

struct Writer {
    scale: Scale,
    bytes: Vec<u8>,
    /// Events with their times. Events of one track are in order.
    events: Vec<(Time, Proto)>,
}

impl Writer {
    fn packet(&mut self, packet: Proto) {
        let packet = packet.uint(packet::SEQUENCE, SEQUENCE);
        self.bytes.extend(Proto::new().message(PACKET, &packet).into_bytes());
    }

    fn process(&mut self, uuid: u64, name: &str) {
        let process = Proto::new().uint(descriptor::PID, uuid).text(descriptor::PROCESS_NAME, name);
        let track = Proto::new()
            .uint(descriptor::UUID, uuid)
            .message(descriptor::PROCESS, &process)
            .uint(descriptor::CHILD_ORDERING, descriptor::EXPLICIT);
        self.packet(Proto::new().message(packet::DESCRIPTOR, &track));
    }

    /// Writes the track of a unit, and the unit's slices. `at` is the index of its first slice in `resources`.
    fn unit(
        &mut self,
        process: u64,
        tracks: &mut u64,
        unit: &[Usage],
        at: usize,
        steps: &HashMap<usize, Vec<Step>>,
    ) {
        let slices: Vec<Slice> = unit.iter().map(|usage| usage.slice).collect();
        let mut lanes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, lane) in lanes::assign(&slices).into_iter().enumerate() {
            lanes.entry(lane).or_default().push(index);
        }
        for (lane, indices) in lanes {
            *tracks += 1;
            let uuid = process << 32 | *tracks;
            let track = Proto::new()
                .uint(descriptor::UUID, uuid)
                .uint(descriptor::PARENT, process)
                .text(descriptor::NAME, &track_name(&unit[0], lane))
                .uint(descriptor::RANK, *tracks);
            self.packet(Proto::new().message(packet::DESCRIPTOR, &track));
            let mut open: Vec<Time> = Vec::new();
            for index in indices {
                let slice = &slices[index];
                while let Some(end) = open.pop_if(|end| *end <= slice.start) {
                    self.end(uuid, end);
                }
                self.begin(uuid, slice, steps.get(&(at + index)).map_or(&[], Vec::as_slice));
                open.push(slice.end);
            }
            while let Some(end) = open.pop() {
                self.end(uuid, end);
            }
        }
    }

    fn begin(&mut self, track: u64, slice: &Slice, steps: &[Step]) {
        let number = |name: &str, value: u64| {
            Proto::new().text(event::ANNOTATION_NAME, name).uint(event::ANNOTATION_UINT, value)
        };
        let mut begin = Proto::new()
            .uint(event::TYPE, event::BEGIN)
            .uint(event::TRACK, track)
            .text(event::NAME, slice.what)
            .message(event::ANNOTATION, &number("start_ps", slice.start.ps()))
            .message(event::ANNOTATION, &number("end_ps", slice.end.ps()))
            .message(event::ANNOTATION, &number("duration_ps", slice.end.since(slice.start).ps()));
        if let Some(message) = slice.message {
            let text = Proto::new()
                .text(event::ANNOTATION_NAME, "message")
                .text(event::ANNOTATION_TEXT, &message.to_string());
            begin = begin.message(event::ANNOTATION, &text);
        }
        for step in steps {
            let field = if step.last { event::FLOW_ENDS } else { event::FLOW };
            begin = begin.fixed64(field, step.flow);
        }
        self.events.push((slice.start, begin));
    }

    fn end(&mut self, track: u64, at: Time) {
        let end = Proto::new().uint(event::TYPE, event::END).uint(event::TRACK, track);
        self.events.push((at, end));
    }

    fn finish(mut self) -> Vec<u8> {
        let mut events = std::mem::take(&mut self.events);
        events.sort_by_key(|(time, _)| *time);
        for (time, event) in events {
            let ticks = self.scale.ticks(time);
            self.packet(Proto::new().uint(packet::TIMESTAMP, ticks).message(packet::EVENT, &event));
        }
        self.bytes
    }
}
