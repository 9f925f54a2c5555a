//! Headers, events and effects in the form that the tests compare.

use crate::model::reference::NODE;
use nicety_portals::*;
use nicety_types::NodeId;

const ACKS: [AckRequest; 4] =
    [AckRequest::None, AckRequest::Full, AckRequest::Counting, AckRequest::OperationCompleted];

/// Returns an effect that identifies a started operation by its match bits, not by its handle.
pub fn plain(effect: &Effect) -> Effect {
    match *effect {
        Effect::Start(out) => Effect::Start(outgoing(out.header.match_bits)),
        other => other,
    }
}

pub fn outgoing(match_bits: u64) -> Outgoing {
    let header = Header { match_bits, ..header(0, 0, 0, 0, 0) };
    Outgoing { operation: OperationHandle::from_bits(0), header, start: 0, operand: Operand::NONE }
}

pub fn header(source: u32, match_bits: u64, length: u64, remote_offset: u64, ack: u8) -> Header {
    Header {
        kind: HeaderKind::Put,
        ack: ACKS[ack as usize],
        fail: FailType::Ok,
        list: List::Priority,
        source: NodeId(source),
        target: NODE,
        pt: 0,
        match_bits,
        length,
        remote_offset,
        hdr_data: 99,
        operation: 1234,
        uid: 0,
        atomic: None,
    }
}

pub fn blank(kind: EventKind, initiator: NodeId, user_ptr: u64, list: List) -> Event {
    Event {
        kind,
        fail: FailType::Ok,
        initiator,
        pt: 0,
        list,
        match_bits: 0,
        uid: 0,
        atomic: None,
        hdr_data: 0,
        rlength: 0,
        mlength: 0,
        remote_offset: 0,
        start: 0,
        user_ptr,
    }
}
