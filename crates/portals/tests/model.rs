//! Random interleavings of everything a target does, against a reference model that is as naive as it can be:
//! one list of entries ever appended, searched from the front; one list of triggered operations, searched for
//! what is due. Effects, placements, refusals and the state left behind must all agree.

use nicety_portals::*;
use nicety_types::NodeId;
use proptest::prelude::*;

const NODE: NodeId = NodeId(7);
const LIMITS: Limits = Limits {
    entries: 10,
    list_length: 5,
    unexpected_headers: 3,
    descriptors: 1,
    counters: 2,
    event_queues: 1,
    event_queue_depth: 64,
    portal_table: 1,
    triggered: 6,
    operations: 4,
    message_bytes: 1000,
};
const DEPTH: u32 = 12;

#[derive(Clone, Debug)]
enum Op {
    Append(Me, List),
    Unlink(usize),
    Arrive { source: u32, bits: u64, length: u64, offset: u64, ack: u8 },
    Complete(usize, bool),
    Consume(u32),
    Enable(bool),
    Inc(usize, CtEvent),
    Set(usize, u64),
    TriggerInc { target: usize, by: CtEvent, ct: usize, threshold: u64 },
    TriggerSet { target: usize, value: u64, ct: usize, threshold: u64 },
    TriggerPut { ct: usize, threshold: u64 },
    Sent(usize),
    Cancel(usize),
}

fn ops() -> impl Strategy<Value = Op> {
    let source = prop_oneof![Just(Source::Any), (0..2u32).prop_map(|r| Source::Rank(NodeId(r)))];
    let options = prop_oneof![
        6 => any::<u32>().prop_map(|bits| MeOptions::from_bits_truncate(bits) | MeOptions::OP_PUT),
        3 => Just(MeOptions::OP_PUT | MeOptions::EVENT_CT_COMM | MeOptions::EVENT_CT_OVERFLOW),
        1 => any::<u32>().prop_map(MeOptions::from_bits_truncate),
    ];
    let me = (0..4u64, 0..4u64, source, 0..40u64, options, 0..12u64).prop_map(
        |(match_bits, ignore_bits, source, length, options, min_free)| Me {
            start: 0x1000,
            length,
            match_bits,
            ignore_bits,
            source,
            options,
            min_free,
            handlers: Some(3),
            ..Me::default()
        },
    );
    let list = prop_oneof![Just(List::Priority), Just(List::Overflow)];
    let by =
        prop_oneof![4 => (0..4u64).prop_map(CtEvent::success), 1 => (0..3u64).prop_map(CtEvent::failure)];
    prop_oneof![
        4 => (me, list).prop_map(|(me, list)| Op::Append(me, list)),
        1 => (0..10usize).prop_map(Op::Unlink),
        8 => (0..2u32, 0..4u64, 0..30u64, 0..50u64, 0..4u8)
            .prop_map(|(source, bits, length, offset, ack)| Op::Arrive { source, bits, length, offset, ack }),
        6 => (0..8usize, prop::bool::weighted(0.8)).prop_map(|(i, ok)| Op::Complete(i, ok)),
        3 => (0..6u32).prop_map(Op::Consume),
        1 => prop::bool::weighted(0.7).prop_map(Op::Enable),
        2 => (0..2usize, by.clone()).prop_map(|(ct, by)| Op::Inc(ct, by)),
        1 => (0..2usize, 0..20u64).prop_map(|(ct, value)| Op::Set(ct, value)),
        2 => (0..2usize, by, 0..2usize, 0..20u64)
            .prop_map(|(target, by, ct, threshold)| Op::TriggerInc { target, by, ct, threshold }),
        1 => (0..2usize, 0..20u64, 0..2usize, 0..20u64)
            .prop_map(|(target, value, ct, threshold)| Op::TriggerSet { target, value, ct, threshold }),
        2 => (0..2usize, 0..20u64).prop_map(|(ct, threshold)| Op::TriggerPut { ct, threshold }),
        2 => (0..4usize).prop_map(Op::Sent),
        1 => (0..2usize).prop_map(Op::Cancel),
    ]
}

#[derive(Clone)]
struct ModelEntry {
    me: Me,
    list: List,
    linked: bool,
    offset: u64,
    pending: u32,
    headers: u32,
    unlink_said: bool,
    gone: bool,
}

#[derive(Clone)]
struct ModelMessage {
    header: Header,
    entry: usize,
    list: List,
    offset: u64,
    mlength: u64,
    remembered: bool,
    outcome: Option<FailType>,
    claimed: Option<usize>,
    taken: bool,
}

#[derive(Clone, Copy)]
enum ModelAction {
    Put(u64),
    Inc(usize, CtEvent),
    Set(usize, CtEvent),
}

struct Model {
    eq: EqHandle,
    cts: [CtHandle; 2],
    held: u32,
    disabled: bool,
    entries: Vec<ModelEntry>,
    messages: Vec<ModelMessage>,
    values: [CtEvent; 2],
    waiting: Vec<(usize, u64, ModelAction)>,
    /// Puts are known by their header data.
    puts: u64,
    effects: Vec<Effect>,
}

/// An effect, with a started put known by its header data and not by its handle.
fn plain(effect: &Effect) -> Effect {
    match *effect {
        Effect::Start(out) => Effect::Start(outgoing(out.header.hdr_data)),
        other => other,
    }
}

fn outgoing(hdr_data: u64) -> Outgoing {
    let header = Header { hdr_data, ..header(0, 0, 0, 0, 0) };
    Outgoing { operation: OperationHandle::from_bits(0), header, start: 0 }
}

fn header(source: u32, match_bits: u64, length: u64, remote_offset: u64, ack: u8) -> Header {
    use AckRequest::*;
    Header {
        kind: HeaderKind::Put,
        ack: [None, Full, Counting, OperationCompleted][ack as usize],
        fail: FailType::Ok,
        source: NodeId(source),
        target: NODE,
        pt: 0,
        match_bits,
        length,
        remote_offset,
        hdr_data: 99,
        operation: 1234,
    }
}

impl Model {
    fn room(&self, i: usize, header: &Header) -> (u64, u64) {
        let entry = &self.entries[i];
        let local = entry.me.options.contains(MeOptions::MANAGE_LOCAL);
        let offset = if local { entry.offset } else { header.remote_offset };
        (offset, entry.me.length.saturating_sub(offset))
    }

    fn matches(&self, i: usize, header: &Header) -> bool {
        let me = &self.entries[i].me;
        (0..64).all(|b| me.ignore_bits >> b & 1 == 1 || (me.match_bits ^ header.match_bits) >> b & 1 == 0)
            && (me.source == Source::Any || me.source == Source::Rank(header.source))
            && (!me.options.contains(MeOptions::NO_TRUNCATE) || self.room(i, header).1 >= header.length)
    }

    fn on(&self, list: List) -> Vec<usize> {
        (0..self.entries.len()).filter(|&i| self.entries[i].linked && self.entries[i].list == list).collect()
    }

    fn alive(&self) -> usize {
        self.entries.iter().filter(|e| !e.gone).count()
    }

    fn remembered(&self) -> Vec<usize> {
        (0..self.messages.len()).filter(|&m| self.messages[m].remembered && !self.messages[m].taken).collect()
    }

    fn post(&mut self, event: Event) {
        let eq = self.eq;
        if self.held == DEPTH {
            self.effects.push(Effect::EventDropped { eq });
        } else {
            self.held += 1;
            self.effects.push(Effect::Event { eq, event });
        }
    }

    fn list_event(&mut self, i: usize, kind: EventKind) {
        let event = blank(kind, NODE, i as u64, self.entries[i].list);
        self.post(event);
    }

    /// `None` where the append is refused.
    fn append(&mut self, me: Me, list: List) -> Result<(), &'static str> {
        if self.on(list).len() == LIMITS.list_length as usize {
            return Err("PTL_LIST_TOO_LONG");
        }
        if self.alive() == LIMITS.entries as usize {
            return Err("PTL_NO_SPACE");
        }
        let i = self.entries.len();
        let (linked, offset, pending, headers) = (false, 0, 0, 0);
        let (unlink_said, gone) = (false, false);
        self.entries.push(ModelEntry { me, list, linked, offset, pending, headers, unlink_said, gone });
        let once = me.options.contains(MeOptions::USE_ONCE);
        let mut taken = Vec::new();
        if list == List::Priority && me.options.contains(MeOptions::OP_PUT) {
            for m in self.remembered() {
                let free = self.messages[m].claimed.is_none() && !(once && !taken.is_empty());
                if free && self.matches(i, &self.messages[m].header) {
                    self.messages[m].claimed = Some(i);
                    self.entries[i].pending += 1;
                    taken.push(m);
                }
            }
        }
        self.entries[i].linked = !(once && !taken.is_empty());
        for m in taken {
            if self.messages[m].outcome.is_some() {
                self.found(m);
            }
        }
        if self.entries[i].linked && !me.options.contains(MeOptions::EVENT_LINK_DISABLE) {
            self.list_event(i, EventKind::Link);
        }
        Ok(())
    }

    fn found(&mut self, m: usize) {
        let message = self.messages[m].clone();
        let i = message.claimed.unwrap();
        self.messages[m].taken = true;
        self.entries[i].pending -= 1;
        let me = self.entries[i].me;
        let disable = MeOptions::EVENT_OVER_DISABLE;
        self.comm_event(EventKind::PutOverflow, i, &message, me, disable);
        self.settle(i);
        self.entries[message.entry].headers -= 1;
        self.settle(message.entry);
        self.comm_count(&me, &message, MeOptions::EVENT_CT_OVERFLOW);
    }

    fn comm_event(&mut self, kind: EventKind, i: usize, message: &ModelMessage, me: Me, disable: MeOptions) {
        let fail = message.outcome.unwrap();
        let quiet = fail == FailType::Ok && me.options.contains(MeOptions::EVENT_SUCCESS_DISABLE);
        if me.options.contains(disable) || quiet {
            return;
        }
        let lies_in = &self.entries[message.entry].me;
        let event = Event {
            fail,
            match_bits: message.header.match_bits,
            hdr_data: 99,
            rlength: message.header.length,
            mlength: if fail == FailType::Ok { message.mlength } else { 0 },
            remote_offset: message.offset,
            start: 0x1000 + message.offset.min(lies_in.length),
            ..blank(kind, message.header.source, i as u64, message.list)
        };
        self.post(event);
    }

    fn comm_count(&mut self, me: &Me, message: &ModelMessage, option: MeOptions) {
        if !me.options.contains(option) {
            return;
        }
        let ct = self.cts.iter().position(|ct| Some(*ct) == me.ct).unwrap();
        let by = match message.outcome.unwrap() {
            FailType::Ok if me.options.contains(MeOptions::EVENT_CT_BYTES) => {
                CtEvent::success(message.mlength)
            }
            FailType::Ok => CtEvent::success(1),
            _ => CtEvent::failure(1),
        };
        self.inc(ct, by);
    }

    fn settle(&mut self, i: usize) {
        let entry = self.entries[i].clone();
        if entry.linked || entry.pending > 0 {
            return;
        }
        let loud = !entry.me.options.contains(MeOptions::EVENT_UNLINK_DISABLE);
        if loud && !entry.unlink_said {
            self.list_event(i, EventKind::AutoUnlink);
        }
        self.entries[i].unlink_said = true;
        if entry.headers == 0 {
            if loud && entry.list == List::Overflow {
                self.list_event(i, EventKind::AutoFree);
            }
            self.entries[i].gone = true;
        }
    }

    fn unlink(&mut self, i: usize) -> Result<(), &'static str> {
        let entry = &mut self.entries[i];
        if entry.gone {
            return Err("PTL_ARG_INVALID");
        }
        if entry.pending > 0 || entry.headers > 0 {
            return Err("PTL_IN_USE");
        }
        (entry.linked, entry.gone) = (false, true);
        Ok(())
    }

    fn answer(&mut self, header: &Header, ack: AckRequest, fail: FailType, length: u64, remote_offset: u64) {
        if header.ack != AckRequest::None {
            let (source, target) = (NODE, header.source);
            let kind = HeaderKind::Ack;
            let answer =
                Header { kind, ack, fail, source, target, length, remote_offset, hdr_data: 0, ..*header };
            self.effects.push(Effect::Ack(answer));
        }
    }

    /// The message, and how many entries were looked at.
    fn arrive(&mut self, header: &Header) -> Result<(usize, usize), DropReason> {
        let result = self.find(header);
        if let Err(reason) = result {
            self.answer(header, header.ack, reason.fail_type(), 0, header.remote_offset);
        }
        result
    }

    fn find(&mut self, header: &Header) -> Result<(usize, usize), DropReason> {
        if self.disabled {
            return Err(DropReason::PtDisabled);
        }
        let order = [self.on(List::Priority), self.on(List::Overflow)].concat();
        let at = order.iter().position(|&i| self.matches(i, header)).ok_or(DropReason::NoMatch)?;
        let i = order[at];
        let (offset, room) = self.room(i, header);
        let me = self.entries[i].me;
        let list = self.entries[i].list;
        if !me.options.contains(MeOptions::OP_PUT) {
            return Err(DropReason::OpViolation);
        }
        let remembered = list == List::Overflow && !me.options.contains(MeOptions::UNEXPECTED_HDR_DISABLE);
        if remembered && self.remembered().len() == LIMITS.unexpected_headers as usize {
            return Err(DropReason::NoUnexpectedHeader);
        }
        let mlength = header.length.min(room);
        let entry = &mut self.entries[i];
        entry.pending += 1;
        entry.headers += u32::from(remembered);
        if me.options.contains(MeOptions::MANAGE_LOCAL) {
            entry.offset += mlength;
            entry.linked = me.length - entry.offset >= me.min_free;
        }
        entry.linked &= !me.options.contains(MeOptions::USE_ONCE);
        let (header, entry, outcome, claimed, taken) = (*header, i, None, None, false);
        let message =
            ModelMessage { header, entry, list, offset, mlength, remembered, outcome, claimed, taken };
        self.messages.push(message);
        Ok((self.messages.len() - 1, at + 1))
    }

    fn complete(&mut self, m: usize, outcome: FailType) {
        self.messages[m].outcome = Some(outcome);
        let message = self.messages[m].clone();
        let i = message.entry;
        let me = self.entries[i].me;
        self.entries[i].pending -= 1;
        self.comm_event(EventKind::Put, i, &message, me, MeOptions::EVENT_COMM_DISABLE);
        self.settle(i);
        let silent = me.options.contains(MeOptions::ACK_DISABLE);
        let ack = if silent { AckRequest::None } else { message.header.ack };
        let mlength = if outcome == FailType::Ok { message.mlength } else { 0 };
        self.answer(&message.header, ack, outcome, mlength, message.offset);
        self.comm_count(&me, &message, MeOptions::EVENT_CT_COMM);
        if message.claimed.is_some() {
            self.found(m);
        }
    }

    fn inc(&mut self, ct: usize, by: CtEvent) {
        let old = self.values[ct];
        self.act(vec![ModelAction::Set(
            ct,
            CtEvent { success: old.success + by.success, failure: old.failure + by.failure },
        )]);
    }

    fn act(&mut self, mut due: Vec<ModelAction>) {
        while !due.is_empty() {
            let (ct, value) = match due.remove(0) {
                ModelAction::Put(data) => {
                    self.effects.push(Effect::Start(outgoing(data)));
                    continue;
                }
                ModelAction::Inc(ct, by) => {
                    let old = self.values[ct];
                    let (success, failure) = (old.success + by.success, old.failure + by.failure);
                    (ct, CtEvent { success, failure })
                }
                ModelAction::Set(ct, value) => (ct, value),
            };
            self.values[ct] = value;
            self.effects.push(Effect::Count { ct: self.cts[ct], value });
            let reached = |w: &(usize, u64, ModelAction)| w.0 == ct && w.1 <= value.success;
            let mut fired: Vec<_> = self.waiting.iter().filter(|w| reached(w)).copied().collect();
            self.waiting.retain(|w| !reached(w));
            fired.sort_by_key(|w| w.1); // stable: the older first
            due.extend(fired.into_iter().map(|w| w.2));
        }
    }

    fn trigger(&mut self, action: ModelAction, ct: usize, threshold: u64) {
        if self.values[ct].success >= threshold {
            self.act(vec![action]);
        } else {
            self.waiting.push((ct, threshold, action));
        }
    }
}

fn blank(kind: EventKind, initiator: NodeId, user_ptr: u64, list: List) -> Event {
    Event {
        kind,
        fail: FailType::Ok,
        initiator,
        pt: 0,
        list,
        match_bits: 0,
        hdr_data: 0,
        rlength: 0,
        mlength: 0,
        remote_offset: 0,
        start: 0,
        user_ptr,
    }
}

fn codes<T>(result: Result<T, Error>) -> Result<T, &'static str> {
    result.map_err(|e| e.code())
}

fn run(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let mut real = Interface::new(NODE, LIMITS);
    let mut effects = Effects::new();
    let eq = real.eq_alloc(DEPTH).unwrap();
    let cts = [real.ct_alloc().unwrap(), real.ct_alloc().unwrap()];
    let md = real.md_bind(Md { length: 100, ..Md::default() }).unwrap();
    real.pt_alloc(Some(0), Some(eq)).unwrap();
    let mut model = Model {
        eq,
        cts,
        held: 0,
        disabled: false,
        entries: vec![],
        messages: vec![],
        values: Default::default(),
        waiting: vec![],
        puts: 0,
        effects: vec![],
    };
    let mut handles = Vec::new();
    let mut in_flight: Vec<(usize, Delivery)> = Vec::new();
    let mut sending: Vec<OperationHandle> = Vec::new();
    for op in ops {
        match op {
            Op::Append(me, list) => {
                let i = model.entries.len();
                let me = Me { user_ptr: i as u64, ct: Some(cts[i % 2]), ..me };
                let result = codes(real.me_append(0, me, list, &mut effects));
                prop_assert_eq!(result.map(drop), model.append(me, list));
                handles.extend(result);
            }
            Op::Unlink(i) if i < handles.len() => {
                prop_assert_eq!(codes(real.me_unlink(handles[i])), model.unlink(i));
            }
            Op::Arrive { source, bits, length, offset, ack } => {
                let header = header(source, bits, length, offset, ack);
                match (real.arrive(&header, &mut effects), model.arrive(&header)) {
                    (Arrival::Matched(delivery), Ok((m, searched))) => {
                        let message = &model.messages[m];
                        prop_assert_eq!(delivery.me, handles[message.entry]);
                        prop_assert_eq!(delivery.list, message.list);
                        prop_assert_eq!(delivery.mlength, message.mlength);
                        prop_assert_eq!(delivery.rlength, header.length);
                        prop_assert_eq!(delivery.remote_offset, message.offset);
                        prop_assert_eq!(delivery.searched as usize, searched);
                        prop_assert_eq!(delivery.handlers, Some(3));
                        let end = delivery.start + delivery.mlength;
                        let room = model.entries[message.entry].me.length;
                        prop_assert!(delivery.start >= 0x1000 && end <= 0x1000 + room);
                        in_flight.push((m, delivery));
                    }
                    (Arrival::Dropped(reason), Err(expected)) => prop_assert_eq!(reason, expected),
                    (real, model) => prop_assert!(false, "{:?}, the model says {:?}", real, model),
                }
            }
            Op::Complete(i, ok) if i < in_flight.len() => {
                let (m, delivery) = in_flight.remove(i);
                let outcome = if ok { FailType::Ok } else { FailType::HandlerError };
                real.complete(&delivery, outcome, &mut effects).unwrap();
                model.complete(m, outcome);
            }
            Op::Consume(n) => {
                real.eq_consumed(eq, n).unwrap();
                model.held = model.held.saturating_sub(n);
            }
            Op::Enable(enable) => {
                if enable { real.pt_enable(0) } else { real.pt_disable(0) }.unwrap();
                model.disabled = !enable;
            }
            Op::Inc(ct, by) => {
                real.ct_inc(cts[ct], by, &mut effects).unwrap();
                model.inc(ct, by);
            }
            Op::Set(ct, success) => {
                let value = CtEvent::success(success);
                real.ct_set(cts[ct], value, &mut effects).unwrap();
                model.act(vec![ModelAction::Set(ct, value)]);
            }
            Op::TriggerInc { .. } | Op::TriggerSet { .. } | Op::TriggerPut { .. }
                if model.waiting.len() == LIMITS.triggered as usize =>
            {
                let result = real.triggered_ct_set(cts[0], CtEvent::default(), cts[1], 0, &mut effects);
                prop_assert_eq!(codes(result), Err("PTL_NO_SPACE"));
            }
            Op::TriggerInc { target, by, ct, threshold } => {
                real.triggered_ct_inc(cts[target], by, cts[ct], threshold, &mut effects).unwrap();
                model.trigger(ModelAction::Inc(target, by), ct, threshold);
            }
            Op::TriggerSet { target, value, ct, threshold } => {
                let value = CtEvent::success(value);
                real.triggered_ct_set(cts[target], value, cts[ct], threshold, &mut effects).unwrap();
                model.trigger(ModelAction::Set(target, value), ct, threshold);
            }
            Op::TriggerPut { ct, threshold } => {
                model.puts += 1;
                let request = PutRequest { hdr_data: model.puts, ..PutRequest::new(md, 8, NODE, 0, 0) };
                let waiting = model.waiting.iter().filter(|w| matches!(w.2, ModelAction::Put(_))).count();
                let result = real.triggered_put(&request, cts[ct], threshold, &mut effects);
                if waiting + sending.len() == LIMITS.operations as usize {
                    prop_assert_eq!(codes(result), Err("PTL_NO_SPACE"));
                } else {
                    prop_assert_eq!(result, Ok(()));
                    model.trigger(ModelAction::Put(model.puts), ct, threshold);
                }
            }
            Op::Sent(i) if i < sending.len() => {
                real.sent(sending.remove(i), FailType::Ok, &mut effects).unwrap();
            }
            Op::Cancel(ct) => {
                real.ct_cancel_triggered(cts[ct]).unwrap();
                model.waiting.retain(|w| w.0 != ct);
            }
            Op::Unlink(_) | Op::Complete(..) | Op::Sent(_) => {}
        }
        let said: Vec<Effect> = effects.as_slice().iter().map(plain).collect();
        prop_assert_eq!(said, std::mem::take(&mut model.effects));
        sending.extend(effects.drain().filter_map(|e| match e {
            Effect::Start(out) => Some(out.operation),
            _ => None,
        }));
        prop_assert_eq!(real.pending_triggered() as usize, model.waiting.len());
        for ct in 0..2 {
            prop_assert_eq!(real.ct_get(cts[ct]).unwrap(), model.values[ct]);
        }
    }
    tear_down(real, &model, handles, in_flight, sending, md)
}

/// Nothing leaks: when all is complete and unlinked, every resource can be freed.
fn tear_down(
    mut real: Interface,
    model: &Model,
    handles: Vec<MeHandle>,
    in_flight: Vec<(usize, Delivery)>,
    sending: Vec<OperationHandle>,
    md: MdHandle,
) -> Result<(), TestCaseError> {
    let mut effects = Effects::new();
    for ct in model.cts {
        real.ct_cancel_triggered(ct).unwrap();
    }
    for operation in sending {
        real.sent(operation, FailType::Ok, &mut effects).unwrap();
    }
    for (_, delivery) in &in_flight {
        real.complete(delivery, FailType::Ok, &mut effects).unwrap();
        prop_assert!(in_flight.len() > 1 || real.complete(delivery, FailType::Ok, &mut effects).is_err());
    }
    let unlink = |real: &mut Interface| {
        for &handle in &handles {
            let _ = real.me_unlink(handle);
        }
    };
    unlink(&mut real);
    let everything = Me { ignore_bits: !0, options: MeOptions::OP_PUT, ..Me::default() };
    let last = real.me_append(0, everything, List::Priority, &mut effects);
    if let Ok(last) = last {
        real.me_unlink(last).unwrap();
        unlink(&mut real);
        prop_assert_eq!(real.pending_operations(), 0);
        real.pt_free(0).unwrap();
        real.md_release(md).unwrap();
        real.ct_free(model.cts[0]).unwrap();
        real.ct_free(model.cts[1]).unwrap();
        real.eq_free(model.eq).unwrap();
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]
    #[test]
    fn the_interface_agrees_with_the_reference_model(ops in prop::collection::vec(ops(), 1..80)) {
        run(ops)?;
    }
}
