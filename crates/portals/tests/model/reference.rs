//! A simple reference model of a target.

use crate::model::values::*;
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

#[derive(Clone)]
pub struct ModelEntry {
    pub me: Me,
    pub list: List,
    pub linked: bool,
    pub offset: u64,
    pub pending: u32,
    pub headers: u32,
    pub holds: u32,
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
    /// Whether the portal table entry has flow control.
    pub flow: bool,
    /// Unread events.
    pub queue: Vec<EventKind>,
    pub notice_due: bool,
    pub disabled: bool,
    pub entries: Vec<ModelEntry>,
    pub messages: Vec<ModelMessage>,
    pub values: [CtEvent; 2],
    pub waiting: Vec<(usize, u64, ModelAction)>,
    /// Number of triggered operations so far, which gives the next one its match bits. Effects identify operations by
    /// match bits.
    pub puts: u64,
    pub effects: Vec<Effect>,
}

impl Model {
    /// Returns the offset of a message in a match entry's memory, and the number of bytes from there to the end.
    pub fn room(&self, i: usize, header: &Header) -> (u64, u64) {
        let entry = &self.entries[i];
        let local = entry.me.options.contains(MeOptions::MANAGE_LOCAL);
        let offset = if local { entry.offset } else { header.remote_offset };
        (offset, entry.me.length.saturating_sub(offset))
    }

    pub fn matches(&self, i: usize, header: &Header) -> bool {
        let me = &self.entries[i].me;
        matches(me, header)
            && (!me.options.contains(MeOptions::NO_TRUNCATE) || self.room(i, header).1 >= header.length)
    }

    /// Returns the indices of the unexpected messages that an append or a search takes.
    pub fn wanted(&self, me: &Me) -> Vec<usize> {
        let takes = |m: &usize| {
            let ModelMessage { header, claimed, .. } = &self.messages[*m];
            let local = me.options.contains(MeOptions::MANAGE_LOCAL);
            let left = me.length.saturating_sub(if local { 0 } else { header.remote_offset });
            let fits = !me.options.contains(MeOptions::NO_TRUNCATE) || header.length <= left;
            claimed.is_none() && matches(me, header) && fits && refuses(me, header).is_none()
        };
        let all = self.remembered().into_iter().filter(takes);
        all.take(if me.options.contains(MeOptions::USE_ONCE) { 1 } else { 100 }).collect()
    }

    /// Returns the number of future events with reserved room.
    pub fn to_come(&self) -> usize {
        let quiet = |i: usize, option| self.entries[i].me.options.contains(option);
        let open = |m: &&ModelMessage| m.outcome.is_none() && !quiet(m.entry, MeOptions::EVENT_COMM_DISABLE);
        let claimed = |m: &&ModelMessage| {
            m.claimed.is_some_and(|i| !m.taken && !quiet(i, MeOptions::EVENT_OVER_DISABLE))
        };
        let unlinks = self.entries.iter().filter(|e| !e.linked && !e.gone);
        let loud = unlinks.filter(|e| !e.me.options.contains(MeOptions::EVENT_UNLINK_DISABLE));
        self.messages.iter().filter(open).count()
            + self.messages.iter().filter(claimed).count()
            + loud.map(|e| usize::from(!e.unlink_said) + usize::from(e.list == List::Overflow)).sum::<usize>()
    }

    pub fn has_room(&self, events: usize) -> bool {
        !self.flow || events == 0 || self.queue.len() + self.to_come() + events < DEPTH as usize
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
        if self.queue.len() == DEPTH as usize {
            assert!(!self.flow, "flow control loses no event");
            self.effects.push(Effect::EventDropped { eq });
        } else {
            self.queue.push(event.kind);
            self.effects.push(Effect::Event { eq, event });
        }
    }

    pub fn list_event(&mut self, i: usize, kind: EventKind) {
        let event = blank(kind, NODE, i as u64, self.entries[i].list);
        self.post(event);
    }

    /// Appends a match entry. The error is the return code of a refusal.
    pub fn append(&mut self, me: Me, list: List) -> Result<(), &'static str> {
        if self.on(list).len() == LIMITS.list_length as usize {
            return Err("PTL_LIST_TOO_LONG");
        }
        if self.alive() == LIMITS.entries as usize {
            return Err("PTL_NO_SPACE");
        }
        let taken = if list == List::Priority { self.wanted(&me) } else { vec![] };
        let once = me.options.contains(MeOptions::USE_ONCE);
        let used_up = once && !taken.is_empty();
        let told = |option, events| if me.options.contains(option) { 0 } else { events };
        let last = if used_up { MeOptions::EVENT_UNLINK_DISABLE } else { MeOptions::EVENT_LINK_DISABLE };
        if !self.has_room(told(MeOptions::EVENT_OVER_DISABLE, taken.len()) + told(last, 1)) {
            return Err("PTL_NO_SPACE");
        }
        let i = self.insert(me, list);
        self.take(i, taken, !used_up);
        if self.entries[i].linked && !me.options.contains(MeOptions::EVENT_LINK_DISABLE) {
            self.list_event(i, EventKind::Link);
        }
        Ok(())
    }

    fn insert(&mut self, me: Me, list: List) -> usize {
        let (linked, offset, pending, headers, holds) = (false, 0, 0, 0, 0);
        let (unlink_said, gone) = (false, false);
        self.entries.push(ModelEntry {
            me,
            list,
            linked,
            offset,
            pending,
            headers,
            holds,
            unlink_said,
            gone,
        });
        self.entries.len() - 1
    }

    fn take(&mut self, i: usize, taken: Vec<usize>, linked: bool) {
        for &m in &taken {
            self.messages[m].claimed = Some(i);
            self.entries[i].pending += 1;
        }
        self.entries[i].linked = linked;
        for m in taken {
            if self.messages[m].outcome.is_some() {
                self.found(m);
            }
        }
    }

    /// Searches the unexpected headers. A search also needs room for a match entry.
    pub fn search(&mut self, me: Me, delete: bool) -> Result<(), &'static str> {
        if self.alive() == LIMITS.entries as usize {
            return Err("PTL_NO_SPACE");
        }
        let found = self.wanted(&me);
        let deletes = delete && !found.is_empty();
        let option = if deletes { MeOptions::EVENT_OVER_DISABLE } else { MeOptions::EVENT_COMM_DISABLE };
        if !me.options.contains(option) && !self.has_room(found.len().max(1)) {
            return Err("PTL_NO_SPACE");
        }
        if deletes {
            let i = self
                .insert(Me { options: me.options | MeOptions::EVENT_UNLINK_DISABLE, ..me }, List::Priority);
            self.take(i, found, false);
            return Ok(());
        }
        if found.is_empty() {
            let event = Event {
                fail: FailType::NoMatch,
                match_bits: me.match_bits,
                ..blank(EventKind::Search, NODE, me.user_ptr, List::Priority)
            };
            self.searched(&me, event);
        }
        for m in found {
            let message = &self.messages[m];
            let outcome = Some(message.outcome.unwrap_or(FailType::Ok));
            let message = ModelMessage { outcome, ..message.clone() };
            let event = self.message_event(EventKind::Search, me.user_ptr, &message);
            self.searched(&me, event);
        }
        Ok(())
    }

    fn searched(&mut self, me: &Me, event: Event) {
        let quiet = event.fail == FailType::Ok && me.options.contains(MeOptions::EVENT_SUCCESS_DISABLE);
        if !quiet && !me.options.contains(MeOptions::EVENT_COMM_DISABLE) {
            self.post(event);
        }
        self.entry_count(me, event.fail, event.mlength, MeOptions::EVENT_CT_OVERFLOW);
    }

    pub fn found(&mut self, m: usize) {
        let message = self.messages[m].clone();
        let i = message.claimed.unwrap();
        self.messages[m].taken = true;
        self.entries[i].pending -= 1;
        let me = self.entries[i].me;
        let disable = MeOptions::EVENT_OVER_DISABLE;
        self.comm_event(kind_of(&message.header, true), i, &message, me, disable);
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
        let event = self.message_event(kind, i as u64, message);
        self.post(event);
    }

    fn message_event(&self, kind: EventKind, user_ptr: u64, message: &ModelMessage) -> Event {
        let fail = message.outcome.unwrap();
        let lies_in = &self.entries[message.entry].me;
        Event {
            fail,
            match_bits: message.header.match_bits,
            uid: message.header.uid,
            atomic: message.header.atomic,
            hdr_data: 99,
            rlength: message.header.length,
            mlength: if fail == FailType::Ok { message.mlength } else { 0 },
            remote_offset: message.offset,
            start: 0x1000 + message.offset.min(lies_in.length),
            ..blank(kind, message.header.source, user_ptr, message.list)
        }
    }

    pub fn comm_count(&mut self, me: &Me, message: &ModelMessage, option: MeOptions) {
        self.entry_count(me, message.outcome.unwrap(), message.mlength, option);
    }

    fn entry_count(&mut self, me: &Me, outcome: FailType, mlength: u64, option: MeOptions) {
        if !me.options.contains(option) {
            return;
        }
        let ct = self.cts.iter().position(|ct| Some(*ct) == me.ct).unwrap();
        let by = match outcome {
            FailType::Ok if me.options.contains(MeOptions::EVENT_CT_BYTES) => CtEvent::success(mlength),
            FailType::Ok => CtEvent::success(1),
            _ => CtEvent::failure(1),
        };
        self.inc(ct, by);
    }

    pub fn hold(&mut self, i: usize, hold: bool) -> Result<(), &'static str> {
        let entry = &mut self.entries[i];
        if entry.gone || !hold && entry.holds == 0 {
            return Err("PTL_ARG_INVALID");
        }
        if hold {
            entry.holds += 1;
        } else {
            entry.holds -= 1;
            self.settle(i);
        }
        Ok(())
    }

    pub fn settle(&mut self, i: usize) {
        let entry = self.entries[i].clone();
        if entry.linked || entry.pending > 0 || entry.holds > 0 {
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
        if entry.pending > 0 || entry.headers > 0 || entry.holds > 0 {
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
        (length, remote_offset, list): (u64, u64, List),
    ) {
        let (source, target) = (NODE, header.source);
        let (uid, atomic, hdr_data) = (0, None, 0);
        let replies = matches!(header.kind, HeaderKind::Get | HeaderKind::FetchAtomic | HeaderKind::Swap);
        let kind = if replies { HeaderKind::Reply } else { HeaderKind::Ack };
        let ack = if replies { AckRequest::None } else { ack };
        if if replies { fail != FailType::Ok } else { header.ack != AckRequest::None } {
            self.effects.push(Effect::Ack(Header {
                kind,
                ack,
                fail,
                list: if replies { List::Priority } else { list },
                source,
                target,
                length,
                remote_offset,
                uid,
                atomic,
                hdr_data,
                ..*header
            }));
        }
    }

    /// Returns the index of the message, and the number of match entries that the search compared.
    pub fn arrive(&mut self, header: &Header, accept: bool) -> Result<(usize, usize), DropReason> {
        let result = self.find(header, accept);
        if let Err((reason, silent)) = result {
            use DropReason::*;
            let mut fail = reason.fail_type();
            if self.flow && [NoMatch, NoEventRoom, NoContext, NoUnexpectedHeader].contains(&reason) {
                fail = FailType::PtDisabled;
                self.disabled = true;
                self.notice_due |= !silent && !self.queue.contains(&EventKind::PtDisabled);
                self.notify();
            }
            self.answer(header, header.ack, fail, (0, header.remote_offset, List::Priority));
        }
        result.map_err(|(reason, _)| reason)
    }

    pub fn notify(&mut self) {
        if self.notice_due && self.messages.iter().all(|m| m.outcome.is_some()) {
            self.notice_due = false;
            self.post(blank(EventKind::PtDisabled, NODE, 0, List::Priority));
        }
    }

    /// Finds the match entry of a message. The error has the reason for a refusal, and whether flow control posts no
    /// event for it.
    fn find(&mut self, header: &Header, accept: bool) -> Result<(usize, usize), (DropReason, bool)> {
        if self.disabled {
            return Err((DropReason::PtDisabled, true));
        }
        let order = [self.on(List::Priority), self.on(List::Overflow)].concat();
        let matching = order.iter().position(|&i| self.matches(i, header));
        let at = matching.ok_or((DropReason::NoMatch, false))?;
        let i = order[at];
        let (offset, room) = self.room(i, header);
        let me = self.entries[i].me;
        let list = self.entries[i].list;
        let silent = me.options.contains(MeOptions::EVENT_FLOWCTRL_DISABLE);
        if let Some(reason) = refuses(&me, header) {
            return Err((reason, silent));
        }
        let remembered = list == List::Overflow && !me.options.contains(MeOptions::UNEXPECTED_HDR_DISABLE);
        if remembered && self.remembered().len() == LIMITS.unexpected_headers as usize {
            return Err((DropReason::NoUnexpectedHeader, silent));
        }
        if !accept {
            return Err((DropReason::NoContext, silent));
        }
        let mut mlength = header.length.min(room);
        while let Some(atomic) = header.atomic
            && mlength % atomic.datatype().size() as u64 != 0
        {
            mlength -= 1;
        }
        let managed = me.options.contains(MeOptions::MANAGE_LOCAL);
        let used_up = me.options.contains(MeOptions::USE_ONCE)
            || managed && me.length - self.entries[i].offset - mlength < me.min_free;
        let mut events = usize::from(!me.options.contains(MeOptions::EVENT_COMM_DISABLE));
        if used_up && !me.options.contains(MeOptions::EVENT_UNLINK_DISABLE) {
            events += if list == List::Overflow { 2 } else { 1 };
        }
        if !self.has_room(events) {
            return Err((DropReason::NoEventRoom, silent));
        }
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
        self.comm_event(kind_of(&message.header, false), i, &message, me, MeOptions::EVENT_COMM_DISABLE);
        self.settle(i);
        let silent = me.options.contains(MeOptions::ACK_DISABLE);
        let ack = if silent { AckRequest::None } else { message.header.ack };
        let mlength = if outcome == FailType::Ok { message.mlength } else { 0 };
        self.answer(&message.header, ack, outcome, (mlength, message.offset, message.list));
        self.comm_count(&me, &message, MeOptions::EVENT_CT_COMM);
        if message.claimed.is_some() {
            self.found(m);
        }
        self.notify();
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
            let reached = |w: &(usize, u64, ModelAction)| w.0 == ct && w.1 <= value.success + value.failure;
            let mut fired: Vec<_> = self.waiting.iter().filter(|w| reached(w)).copied().collect();
            self.waiting.retain(|w| !reached(w));
            fired.sort_by_key(|w| w.1); // a stable sort: with equal thresholds, the older is first
            due.extend(fired.into_iter().map(|w| w.2));
        }
    }

    pub fn trigger(&mut self, action: ModelAction, ct: usize, threshold: u64) {
        if self.values[ct].success + self.values[ct].failure >= threshold {
            self.act(vec![action]);
        } else {
            self.waiting.push((ct, threshold, action));
        }
    }
}

fn matches(me: &Me, header: &Header) -> bool {
    (0..64).all(|b| me.ignore_bits >> b & 1 == 1 || (me.match_bits ^ header.match_bits) >> b & 1 == 0)
        && (me.source == Source::Any || me.source == Source::Rank(header.source))
}

fn refuses(me: &Me, header: &Header) -> Option<DropReason> {
    let get = me.options.contains(MeOptions::OP_GET);
    let put = me.options.contains(MeOptions::OP_PUT);
    let allowed = match header.kind {
        HeaderKind::Put | HeaderKind::Atomic => put,
        HeaderKind::Get => get,
        _ => get && put,
    };
    match me.user {
        User::Id(uid) if uid != header.uid => Some(DropReason::PermViolation),
        _ if !allowed => Some(DropReason::OpViolation),
        _ => None,
    }
}

fn kind_of(header: &Header, overflow: bool) -> EventKind {
    use EventKind::*;
    let (plain, found) = match header.kind {
        HeaderKind::Put => (Put, PutOverflow),
        HeaderKind::Get => (Get, GetOverflow),
        HeaderKind::Atomic => (Atomic, AtomicOverflow),
        _ => (FetchAtomic, FetchAtomicOverflow),
    };
    if overflow { found } else { plain }
}
