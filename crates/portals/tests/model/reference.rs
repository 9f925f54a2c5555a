//! The naive reference model of a target.

use nicety_portals::*;
use nicety_types::NodeId;

pub const NODE: NodeId = NodeId(7);
pub const LIMITS: Limits = Limits {
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
    atomic_bytes: 64,
    fetch_atomic_bytes: 32,
    features: Features::all(),
};
pub const DEPTH: u32 = 12;
const ACKS: [AckRequest; 4] =
    [AckRequest::None, AckRequest::Full, AckRequest::Counting, AckRequest::OperationCompleted];

#[derive(Clone)]
pub struct ModelEntry {
    pub me: Me,
    pub list: List,
    pub linked: bool,
    pub offset: u64,
    pub pending: u32,
    pub headers: u32,
    pub unlink_said: bool,
    pub gone: bool,
}

#[derive(Clone)]
pub struct ModelMessage {
    pub header: Header,
    pub entry: usize,
    pub list: List,
    pub offset: u64,
    pub mlength: u64,
    pub remembered: bool,
    pub outcome: Option<FailType>,
    pub claimed: Option<usize>,
    pub taken: bool,
}

#[derive(Clone, Copy)]
pub enum ModelAction {
    Put(u64),
    Inc(usize, CtEvent),
    Set(usize, CtEvent),
}

pub struct Model {
    pub eq: EqHandle,
    pub cts: [CtHandle; 2],
    pub held: u32,
    pub disabled: bool,
    pub entries: Vec<ModelEntry>,
    pub messages: Vec<ModelMessage>,
    pub values: [CtEvent; 2],
    pub waiting: Vec<(usize, u64, ModelAction)>,
    /// Puts are known by their header data.
    pub puts: u64,
    pub effects: Vec<Effect>,
}

/// An effect, with a started put known by its header data and not by its handle.
pub fn plain(effect: &Effect) -> Effect {
    match *effect {
        Effect::Start(out) => Effect::Start(outgoing(out.header.hdr_data)),
        other => other,
    }
}

pub fn outgoing(hdr_data: u64) -> Outgoing {
    let header = Header { hdr_data, ..header(0, 0, 0, 0, 0) };
    Outgoing { operation: OperationHandle::from_bits(0), header, start: 0, operand: Operand::NONE }
}

pub fn header(source: u32, match_bits: u64, length: u64, remote_offset: u64, ack: u8) -> Header {
    Header {
        kind: HeaderKind::Put,
        ack: ACKS[ack as usize],
        fail: FailType::Ok,
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

impl Model {
    pub fn room(&self, i: usize, header: &Header) -> (u64, u64) {
        let entry = &self.entries[i];
        let local = entry.me.options.contains(MeOptions::MANAGE_LOCAL);
        let offset = if local { entry.offset } else { header.remote_offset };
        (offset, entry.me.length.saturating_sub(offset))
    }

    pub fn matches(&self, i: usize, header: &Header) -> bool {
        let me = &self.entries[i].me;
        (0..64).all(|b| me.ignore_bits >> b & 1 == 1 || (me.match_bits ^ header.match_bits) >> b & 1 == 0)
            && (me.source == Source::Any || me.source == Source::Rank(header.source))
            && (!me.options.contains(MeOptions::NO_TRUNCATE) || self.room(i, header).1 >= header.length)
    }

    pub fn on(&self, list: List) -> Vec<usize> {
        (0..self.entries.len()).filter(|&i| self.entries[i].linked && self.entries[i].list == list).collect()
    }

    pub fn alive(&self) -> usize {
        self.entries.iter().filter(|e| !e.gone).count()
    }

    pub fn remembered(&self) -> Vec<usize> {
        (0..self.messages.len()).filter(|&m| self.messages[m].remembered && !self.messages[m].taken).collect()
    }

    pub fn post(&mut self, event: Event) {
        let eq = self.eq;
        if self.held == DEPTH {
            self.effects.push(Effect::EventDropped { eq });
        } else {
            self.held += 1;
            self.effects.push(Effect::Event { eq, event });
        }
    }

    pub fn list_event(&mut self, i: usize, kind: EventKind) {
        let event = blank(kind, NODE, i as u64, self.entries[i].list);
        self.post(event);
    }

    /// `None` where the append is refused.
    pub fn append(&mut self, me: Me, list: List) -> Result<(), &'static str> {
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
                let free = self.messages[m].claimed.is_none() && (!once || taken.is_empty());
                if free && self.matches(i, &self.messages[m].header) {
                    self.messages[m].claimed = Some(i);
                    self.entries[i].pending += 1;
                    taken.push(m);
                }
            }
        }
        self.entries[i].linked = !once || taken.is_empty();
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

    pub fn found(&mut self, m: usize) {
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

    pub fn comm_event(
        &mut self,
        kind: EventKind,
        i: usize,
        message: &ModelMessage,
        me: Me,
        disable: MeOptions,
    ) {
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

    pub fn comm_count(&mut self, me: &Me, message: &ModelMessage, option: MeOptions) {
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

    pub fn settle(&mut self, i: usize) {
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

    pub fn unlink(&mut self, i: usize) -> Result<(), &'static str> {
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

    pub fn answer(
        &mut self,
        header: &Header,
        ack: AckRequest,
        fail: FailType,
        length: u64,
        remote_offset: u64,
    ) {
        if header.ack != AckRequest::None {
            let (source, target) = (NODE, header.source);
            let kind = HeaderKind::Ack;
            let answer =
                Header { kind, ack, fail, source, target, length, remote_offset, hdr_data: 0, ..*header };
            self.effects.push(Effect::Ack(answer));
        }
    }

    /// The message, and how many entries were looked at.
    pub fn arrive(&mut self, header: &Header) -> Result<(usize, usize), DropReason> {
        let result = self.find(header);
        if let Err(reason) = result {
            self.answer(header, header.ack, reason.fail_type(), 0, header.remote_offset);
        }
        result
    }

    pub fn find(&mut self, header: &Header) -> Result<(usize, usize), DropReason> {
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

    pub fn complete(&mut self, m: usize, outcome: FailType) {
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

    pub fn inc(&mut self, ct: usize, by: CtEvent) {
        let old = self.values[ct];
        self.act(vec![ModelAction::Set(
            ct,
            CtEvent { success: old.success + by.success, failure: old.failure + by.failure },
        )]);
    }

    pub fn act(&mut self, mut due: Vec<ModelAction>) {
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

    pub fn trigger(&mut self, action: ModelAction, ct: usize, threshold: u64) {
        if self.values[ct].success >= threshold {
            self.act(vec![action]);
        } else {
            self.waiting.push((ct, threshold, action));
        }
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
