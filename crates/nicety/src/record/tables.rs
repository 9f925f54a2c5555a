//! A recording in Arrow columns. The unit of a column is in its name. Times are picoseconds of virtual time since the start of
//! the run. A null means that an event did not happen or was not recorded.

use super::{LeftOut, Message, Recording, Stage, Starter};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array};
use nicety_types::{MessageId, Time};
use std::fmt::Write;
use std::sync::Arc;

pub use arrow_array;
pub use arrow_schema;

type Columns = Vec<(String, ArrayRef)>;

fn column(columns: &mut Columns, name: &str, array: impl arrow_array::Array + 'static) {
    columns.push((name.to_owned(), Arc::new(array)));
}

fn ints(values: impl Iterator<Item = u64>) -> Int64Array {
    values.map(|value| Some(value as i64)).collect()
}

fn optional(values: impl Iterator<Item = Option<u64>>) -> Int64Array {
    values.map(|value| value.map(|v| v as i64)).collect()
}

fn times(values: impl Iterator<Item = Option<Time>>) -> Int64Array {
    optional(values.map(|time| time.map(Time::ps)))
}

fn nodes(values: impl Iterator<Item = u32>) -> UInt32Array {
    values.map(Some).collect()
}

fn texts(values: impl Iterator<Item = &'static str>) -> StringArray {
    values.map(Some).collect()
}

/// Adds the two columns that identify a message.
fn messages(columns: &mut Columns, prefix: &str, ids: impl Iterator<Item = Option<MessageId>> + Clone) {
    let sources: UInt32Array = ids.clone().map(|id| id.map(|id| id.source.0)).collect();
    column(columns, &format!("{prefix}source"), sources);
    column(columns, &format!("{prefix}sequence"), optional(ids.map(|id| id.map(|id| id.sequence))));
}

fn batch(columns: Columns) -> RecordBatch {
    let fields = columns.iter().map(|(name, array)| (name.as_str(), array.clone(), true));
    RecordBatch::try_from_iter_with_nullable(fields).expect("columns of one table have the same length")
}

/// Returns the name of the column for a stage. For example, stage `link, queued` has column `link_queued_ps`.
pub fn stage_column(stage: Stage) -> String {
    let mut name = String::new();
    for word in stage.name().split([' ', ',']).filter(|word| !word.is_empty()) {
        write!(name, "{word}_").expect("a string takes everything");
    }
    name + "ps"
}

impl Recording {
    /// Returns the table of messages: `source`, `sequence`, `target`, `kind`, `started_by`, `cause_source` and
    /// `cause_sequence` (the message of the handler that sent this message), `size_bytes`, `outcome`, `posted_ps`,
    /// `first_byte_ps`, `matched_ps`, `completed_ps`, `noticed_ps`, `latency_ps` (from posted to completed), and a
    /// column for each stage.
    pub fn messages_table(&self) -> RecordBatch {
        let rows: Vec<Message> = self.messages().collect();
        let mut columns = Columns::new();
        messages(&mut columns, "", rows.iter().map(|m| Some(m.id)));
        column(&mut columns, "target", nodes(rows.iter().map(|m| m.target.0)));
        column(&mut columns, "kind", texts(rows.iter().map(|m| m.kind)));
        column(&mut columns, "started_by", texts(rows.iter().map(|m| m.by.name())));
        let cause = |by| if let Starter::Handler(message) = by { Some(message) } else { None };
        messages(&mut columns, "cause_", rows.iter().map(|m| cause(m.by)));
        column(&mut columns, "size_bytes", ints(rows.iter().map(|m| m.bytes)));
        column(&mut columns, "outcome", texts(rows.iter().map(|m| m.outcome)));
        column(&mut columns, "posted_ps", times(rows.iter().map(|m| Some(m.posted))));
        column(&mut columns, "first_byte_ps", times(rows.iter().map(|m| m.first_byte)));
        column(&mut columns, "matched_ps", times(rows.iter().map(|m| m.matched)));
        column(&mut columns, "completed_ps", times(rows.iter().map(|m| m.completed)));
        column(&mut columns, "noticed_ps", times(rows.iter().map(|m| m.noticed)));
        let latency = rows.iter().map(|m| m.completed.map(|completed| completed.since(m.posted).ps()));
        column(&mut columns, "latency_ps", optional(latency));
        for &stage in &self.stages {
            let spent = |stages: &Vec<(Stage, nicety_types::Duration)>| {
                stages.iter().find(|(own, _)| *own == stage).map_or(0, |(_, time)| time.ps())
            };
            let spent = rows.iter().map(|m| m.stages.as_ref().map(spent));
            column(&mut columns, &stage_column(stage), optional(spent));
        }
        batch(columns)
    }

    /// Returns the table of packets: `source`, `sequence`, `offset_bytes`, `size_bytes`, `sent_ps` (first byte on the link),
    /// `arrived_ps` (last byte in the packet buffer), `matched_ps`, `settled_ps` (out of the packet buffer).
    pub fn packets_table(&self) -> RecordBatch {
        let rows = &self.packets;
        let mut columns = Columns::new();
        messages(&mut columns, "", rows.iter().map(|p| Some(p.message)));
        column(&mut columns, "offset_bytes", ints(rows.iter().map(|p| p.offset)));
        column(&mut columns, "size_bytes", ints(rows.iter().map(|p| p.bytes)));
        column(&mut columns, "sent_ps", times(rows.iter().map(|p| Some(p.sent))));
        column(&mut columns, "arrived_ps", times(rows.iter().map(|p| p.arrived)));
        column(&mut columns, "matched_ps", times(rows.iter().map(|p| p.matched)));
        column(&mut columns, "settled_ps", times(rows.iter().map(|p| p.settled)));
        batch(columns)
    }

    /// Returns the table of handler runs: `node`, `hpu`, `handler`, `source`, `sequence`, `offset_bytes` (null for completion
    /// handlers), `ready_ps`, `start_ps`, `end_ps`, `cycles`, `instructions`, `outcome`.
    pub fn handler_runs_table(&self) -> RecordBatch {
        let rows = &self.handler_runs;
        let mut columns = Columns::new();
        column(&mut columns, "node", nodes(rows.iter().map(|(node, _)| node.0)));
        column(&mut columns, "hpu", nodes(rows.iter().map(|(_, run)| run.hpu)));
        column(&mut columns, "handler", texts(rows.iter().map(|(_, run)| run.kind)));
        messages(&mut columns, "", rows.iter().map(|(_, run)| Some(run.message)));
        column(&mut columns, "offset_bytes", optional(rows.iter().map(|(_, run)| run.offset)));
        column(&mut columns, "ready_ps", times(rows.iter().map(|(_, run)| Some(run.ready))));
        column(&mut columns, "start_ps", times(rows.iter().map(|(_, run)| Some(run.start))));
        column(&mut columns, "end_ps", times(rows.iter().map(|(_, run)| Some(run.end))));
        column(&mut columns, "cycles", ints(rows.iter().map(|(_, run)| run.cycles)));
        column(&mut columns, "instructions", ints(rows.iter().map(|(_, run)| run.instructions)));
        column(&mut columns, "outcome", texts(rows.iter().map(|(_, run)| run.outcome)));
        batch(columns)
    }

    /// Returns the table of uses of resources: `node`, `resource`, `unit` (the number of a core, processor, port or transfer),
    /// `what`, `source`, `sequence`, `start_ps`, `end_ps`.
    pub fn resources_table(&self) -> RecordBatch {
        let rows = &self.resources;
        let mut columns = Columns::new();
        column(&mut columns, "node", nodes(rows.iter().map(|u| u.node.0)));
        column(&mut columns, "resource", texts(rows.iter().map(|u| u.slice.resource.name())));
        column(&mut columns, "unit", nodes(rows.iter().map(|u| u.unit)));
        column(&mut columns, "what", texts(rows.iter().map(|u| u.slice.what)));
        messages(&mut columns, "", rows.iter().map(|u| u.slice.message));
        column(&mut columns, "start_ps", times(rows.iter().map(|u| Some(u.slice.start))));
        column(&mut columns, "end_ps", times(rows.iter().map(|u| Some(u.slice.end))));
        batch(columns)
    }

    /// Returns the number of rows left out of each table, with the name of the table.
    pub fn left_out_by_table(&self) -> [(&'static str, u64); 4] {
        let LeftOut { messages, packets, handler_runs, slices } = self.left_out;
        [("messages", messages), ("packets", packets), ("handler_runs", handler_runs), ("resources", slices)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_have_columns() {
        assert_eq!(stage_column(Stage::LINK_QUEUED), "link_queued_ps");
        assert_eq!(stage_column(nicety_nic_spin::stages::IN_ORDER), "completion_order_ps");
        assert_eq!(stage_column(Stage::POST), "post_ps");
    }

    #[test]
    fn an_empty_recording_has_empty_tables() {
        let recording = Recording::default();
        for table in [
            recording.messages_table(),
            recording.packets_table(),
            recording.handler_runs_table(),
            recording.resources_table(),
        ] {
            assert_eq!(table.num_rows(), 0);
        }
    }
}
