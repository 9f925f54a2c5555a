//! Compares an interface with a simple reference model, for random sequences of all calls of a target. The model has
//! one list of all entries ever appended, which it searches from the front. It has one list of triggered operations,
//! which it searches for due operations. Effects, offsets, refusals and the final state must agree.

mod reference;
mod values;

use nicety_portals::*;
use nicety_types::NodeId;
use proptest::prelude::*;
use reference::*;
use values::*;

#[derive(Clone, Debug)]
enum Op {
    Append(Me, List),
    Unlink(usize),
    Search(Me, bool),
    Hold(usize, bool),
    Arrive { header: Header, accept: bool },
    Complete(usize, bool),
    Consume(u32),
    Enable(bool),
    Inc(usize, CtEvent),
    Set(usize, u64),
    TriggerInc { target: usize, by: CtEvent, ct: usize, threshold: u64 },
    TriggerSet { target: usize, value: u64, ct: usize, threshold: u64 },
    Trigger { kind: u8, ct: usize, threshold: u64 },
    Sent(usize),
    Cancel(usize),
}

fn ops() -> impl Strategy<Value = Op> {
    let source = prop_oneof![Just(Source::Any), (0..2u32).prop_map(|r| Source::Rank(NodeId(r)))];
    let options = prop_oneof![
        6 => any::<u32>().prop_map(|bits| MeOptions::from_bits_truncate(bits) | MeOptions::OP_PUT),
        2 => any::<u32>().prop_map(|bits| MeOptions::from_bits_truncate(bits) | BOTH),
        2 => Just(BOTH | MeOptions::MANAGE_LOCAL),
        3 => Just(MeOptions::OP_PUT | MeOptions::EVENT_CT_COMM | MeOptions::EVENT_CT_OVERFLOW),
        1 => any::<u32>().prop_map(MeOptions::from_bits_truncate),
    ];
    // The reference model has no redelivery, which Portals 4 lacks.
    let options = options.prop_map(|options: MeOptions| options - MeOptions::REDELIVER);
    let user = prop_oneof![4 => Just(User::Any), 1 => (0..2u32).prop_map(User::Id)];
    let me = (0..4u64, 0..4u64, source, 0..40u64, options, 0..12u64, user).prop_map(
        |(match_bits, ignore_bits, source, length, options, min_free, user)| Me {
            user,
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
        4 => (me.clone(), list).prop_map(|(me, list)| Op::Append(me, list)),
        1 => (me, any::<bool>()).prop_map(|(me, delete)| Op::Search(me, delete)),
        1 => (0..10usize, any::<bool>()).prop_map(|(i, hold)| Op::Hold(i, hold)),
        1 => (0..10usize).prop_map(Op::Unlink),
        8 => (arrivals(), prop::bool::weighted(0.9))
            .prop_map(|(header, accept)| Op::Arrive { header, accept }),
        6 => (0..8usize, prop::bool::weighted(0.8)).prop_map(|(i, ok)| Op::Complete(i, ok)),
        3 => (0..6u32).prop_map(Op::Consume),
        1 => prop::bool::weighted(0.7).prop_map(Op::Enable),
        2 => (0..2usize, by.clone()).prop_map(|(ct, by)| Op::Inc(ct, by)),
        1 => (0..2usize, 0..20u64).prop_map(|(ct, value)| Op::Set(ct, value)),
        2 => (0..2usize, by, 0..2usize, 0..20u64)
            .prop_map(|(target, by, ct, threshold)| Op::TriggerInc { target, by, ct, threshold }),
        1 => (0..2usize, 0..20u64, 0..2usize, 0..20u64)
            .prop_map(|(target, value, ct, threshold)| Op::TriggerSet { target, value, ct, threshold }),
        2 => (0..5u8, 0..2usize, 0..20u64)
            .prop_map(|(kind, ct, threshold)| Op::Trigger { kind, ct, threshold }),
        2 => (0..4usize).prop_map(Op::Sent),
        1 => (0..2usize).prop_map(Op::Cancel),
    ]
}

const BOTH: MeOptions = MeOptions::OP_PUT.union(MeOptions::OP_GET);

/// Requests of every kind.
fn arrivals() -> impl Strategy<Value = Header> {
    let request = (0..2u32, 0..4u64, 0..30u64, 0..50u64, 0..4u8, 0..2u32);
    let swap = prop_oneof![Just(AtomicOp::Swap), Just(AtomicOp::Cswap)];
    (request, 0..8u8, swap).prop_map(|((source, bits, length, offset, ack, uid), kind, swap)| {
        let put = Header { uid, ..header(source, bits, length, offset, ack) };
        let atomic = |op| Some(Atomic::new(op, Datatype::Int32).unwrap());
        match kind {
            0 => Header { kind: HeaderKind::Get, ..put },
            1 => Header {
                kind: HeaderKind::Atomic,
                length: length / 4 * 4,
                atomic: atomic(AtomicOp::Sum),
                ..put
            },
            2 => Header {
                kind: HeaderKind::FetchAtomic,
                length: length / 4 * 4,
                atomic: atomic(AtomicOp::Max),
                ..put
            },
            3 => Header { kind: HeaderKind::Swap, length: 4, atomic: atomic(swap), ..put },
            _ => put,
        }
    })
}

/// Prepares a triggered operation of kind `kind`, with `name` as its match bits.
fn trigger(
    real: &mut Interface,
    (kind, name): (u8, u64),
    md: MdHandle,
    ct: CtHandle,
    threshold: u64,
    effects: &mut Effects,
) -> Result<(), Error> {
    let put = PutRequest::new(md, 8, NODE, 0, name);
    let atomic = |op| Atomic::new(op, Datatype::Double).unwrap();
    let fetch = |atomic, operand| FetchRequest { get_md: md, local_get_offset: 8, put, atomic, operand };
    match kind {
        0 => real.trigger(&GetRequest::new(md, 8, NODE, 0, name).into(), ct, threshold, effects),
        1 => {
            let request = AtomicRequest { put, atomic: atomic(AtomicOp::Prod) };
            real.trigger(&request.into(), ct, threshold, effects)
        }
        2 => {
            let request = fetch(atomic(AtomicOp::Min), Operand::NONE);
            real.trigger(&Request::FetchAtomic(request), ct, threshold, effects)
        }
        3 => {
            let operand = Operand::new(&1.0f64.to_le_bytes()).unwrap();
            real.trigger(&Request::Swap(fetch(atomic(AtomicOp::CswapGt), operand)), ct, threshold, effects)
        }
        _ => real.trigger(&put.into(), ct, threshold, effects),
    }
}

/// Ends an operation: the card sends its message and receives the reply, if it has one.
fn end(real: &mut Interface, out: &Outgoing, effects: &mut Effects) {
    real.sent(out.operation, FailType::Ok, effects).unwrap();
    if out.header.kind.wants_reply() {
        let answer =
            Header { kind: HeaderKind::Reply, source: NODE, target: NODE, atomic: None, ..out.header };
        let Arrival::Reply(reply) = real.arrive(&answer, effects) else { panic!("it waits for this") };
        real.complete_reply(&reply, FailType::Ok, effects).unwrap();
    }
}

fn codes<T>(result: Result<T, Error>) -> Result<T, &'static str> {
    result.map_err(|e| e.code())
}

/// The interface, its model, and the state of a run.
struct Pair {
    real: Interface,
    model: Model,
    effects: Effects,
    md: MdHandle,
    handles: Vec<MeHandle>,
    in_flight: Vec<(usize, Delivery)>,
    sending: Vec<Outgoing>,
}

impl Pair {
    fn new(flow: bool) -> Pair {
        let mut real = Interface::new(NODE, LIMITS);
        let eq = real.eq_alloc(DEPTH).unwrap();
        let cts = [real.ct_alloc().unwrap(), real.ct_alloc().unwrap()];
        let md = real.md_bind(Md { length: 100, ..Md::default() }).unwrap();
        let options = if flow { PtOptions::FLOWCTRL } else { PtOptions::empty() };
        real.pt_alloc_with(Some(0), Some(eq), options).unwrap();
        let model = Model {
            eq,
            cts,
            flow,
            queue: vec![],
            notice_due: false,
            disabled: false,
            entries: vec![],
            messages: vec![],
            values: Default::default(),
            waiting: vec![],
            puts: 0,
            effects: vec![],
        };
        let (handles, in_flight, sending) = Default::default();
        Pair { real, model, effects: Effects::new(), md, handles, in_flight, sending }
    }

    fn step(&mut self, op: Op) -> Result<(), TestCaseError> {
        let Pair { real, model, effects, in_flight, sending, .. } = self;
        match op {
            Op::Append(..) | Op::Search(..) | Op::Hold(..) | Op::Unlink(_) => self.change_list(op)?,
            Op::Arrive { header, accept } => self.arrive(&header, accept)?,
            Op::Complete(i, ok) if i < in_flight.len() => {
                let (m, delivery) = in_flight.remove(i);
                let outcome = if ok { FailType::Ok } else { FailType::HandlerError };
                real.complete(&delivery, outcome, effects).unwrap();
                model.complete(m, outcome);
            }
            Op::Consume(n) => {
                real.eq_consumed(model.eq, n).unwrap();
                model.queue.drain(..model.queue.len().min(n as usize));
            }
            Op::Enable(enable) => {
                if enable { real.pt_enable(0) } else { real.pt_disable(0) }.unwrap();
                model.disabled = !enable;
            }
            Op::Sent(i) if i < sending.len() => end(real, &sending.remove(i), effects),
            Op::Complete(..) | Op::Sent(_) => {}
            _ => self.count(op)?,
        }
        self.agree()
    }

    /// Calls about entries.
    fn change_list(&mut self, op: Op) -> Result<(), TestCaseError> {
        let Pair { real, model, effects, handles, .. } = self;
        match op {
            Op::Append(me, list) => {
                let i = model.entries.len();
                let me = Me { user_ptr: i as u64, ct: Some(model.cts[i % 2]), ..me };
                let result = codes(real.me_append(0, me, list, effects));
                prop_assert_eq!(result.map(drop), model.append(me, list));
                handles.extend(result);
            }
            Op::Search(me, delete) => {
                let user_ptr = model.entries.len() as u64;
                let me = Me { user_ptr, ct: Some(model.cts[0]), ..me };
                let op = if delete { SearchOp::Delete } else { SearchOp::Only };
                let result = codes(real.me_search(0, me, op, effects));
                prop_assert_eq!(result, model.search(me, delete));
                // The entry of a search has no handle. A placeholder keeps the indices of model and handles equal.
                if model.entries.len() > handles.len() {
                    handles.push(MeHandle::from_bits(0));
                }
            }
            Op::Hold(i, hold) if i < handles.len() && handles[i] != MeHandle::from_bits(0) => {
                let result =
                    if hold { real.me_hold(handles[i]) } else { real.me_release(handles[i], effects) };
                prop_assert_eq!(codes(result), model.hold(i, hold));
            }
            Op::Unlink(i) if i < handles.len() && handles[i] != MeHandle::from_bits(0) => {
                prop_assert_eq!(codes(real.me_unlink(handles[i])), model.unlink(i));
            }
            Op::Hold(..) | Op::Unlink(_) => {}
            other => unreachable!("{other:?}"),
        }
        Ok(())
    }

    fn arrive(&mut self, header: &Header, accept: bool) -> Result<(), TestCaseError> {
        let arrival = self.real.arrive_if(header, |_| accept, &mut self.effects);
        match (arrival, self.model.arrive(header, accept)) {
            (Arrival::Matched(delivery), Ok((m, searched))) => {
                let message = &self.model.messages[m];
                prop_assert_eq!(delivery.me, self.handles[message.entry]);
                prop_assert_eq!(delivery.list, message.list);
                prop_assert_eq!(delivery.mlength, message.mlength);
                prop_assert_eq!(delivery.rlength, header.length);
                prop_assert_eq!(delivery.remote_offset, message.offset);
                prop_assert_eq!(delivery.searched as usize, searched);
                prop_assert_eq!(delivery.handlers, Some(3));
                let end = delivery.start + delivery.mlength;
                let room = self.model.entries[message.entry].me.length;
                prop_assert!(delivery.start >= 0x1000 && end <= 0x1000 + room);
                self.in_flight.push((m, delivery));
            }
            (Arrival::Dropped(reason), Err(expected)) => prop_assert_eq!(reason, expected),
            (real, model) => prop_assert!(false, "{:?}, the model says {:?}", real, model),
        }
        Ok(())
    }

    /// Calls about counters and triggered operations.
    fn count(&mut self, op: Op) -> Result<(), TestCaseError> {
        let Pair { real, model, effects, md, sending, .. } = self;
        let cts = model.cts;
        match op {
            Op::Inc(ct, by) => {
                real.ct_inc(cts[ct], by, effects).unwrap();
                model.inc(ct, by);
            }
            Op::Set(ct, success) => {
                let value = CtEvent::success(success);
                real.ct_set(cts[ct], value, effects).unwrap();
                model.act(vec![ModelAction::Set(ct, value)]);
            }
            Op::TriggerInc { .. } | Op::TriggerSet { .. } | Op::Trigger { .. }
                if model.waiting.len() == LIMITS.triggered as usize =>
            {
                let result = real.triggered_ct_set(cts[0], CtEvent::default(), cts[1], 0, effects);
                prop_assert_eq!(codes(result), Err("PTL_NO_SPACE"));
            }
            Op::TriggerInc { target, by, ct, threshold } => {
                real.triggered_ct_inc(cts[target], by, cts[ct], threshold, effects).unwrap();
                model.trigger(ModelAction::Inc(target, by), ct, threshold);
            }
            Op::TriggerSet { target, value, ct, threshold } => {
                let value = CtEvent::success(value);
                real.triggered_ct_set(cts[target], value, cts[ct], threshold, effects).unwrap();
                model.trigger(ModelAction::Set(target, value), ct, threshold);
            }
            Op::Trigger { kind, ct, threshold } => {
                model.puts += 1;
                let waiting = model.waiting.iter().filter(|w| matches!(w.2, ModelAction::Put(_))).count();
                let name = (kind, model.puts);
                let result = trigger(real, name, *md, cts[ct], threshold, effects);
                if waiting + sending.len() == LIMITS.operations as usize {
                    prop_assert_eq!(codes(result), Err("PTL_NO_SPACE"));
                } else {
                    prop_assert_eq!(result, Ok(()));
                    model.trigger(ModelAction::Put(model.puts), ct, threshold);
                }
            }
            Op::Cancel(ct) => {
                real.ct_cancel_triggered(cts[ct]).unwrap();
                model.waiting.retain(|w| w.0 != ct);
            }
            other => unreachable!("{other:?}"),
        }
        Ok(())
    }

    /// Compares effects and state after a call.
    fn agree(&mut self) -> Result<(), TestCaseError> {
        let Pair { real, model, effects, sending, .. } = self;
        let said: Vec<Effect> = effects.as_slice().iter().map(plain).collect();
        prop_assert_eq!(said, std::mem::take(&mut model.effects));
        sending.extend(effects.drain().filter_map(|e| match e {
            Effect::Start(out) => Some(out),
            _ => None,
        }));
        prop_assert_eq!(real.pt_enabled(0), Ok(!model.disabled));
        prop_assert_eq!(real.pending_triggered() as usize, model.waiting.len());
        for (ct, value) in model.cts.into_iter().zip(model.values) {
            prop_assert_eq!(real.ct_get(ct).unwrap(), value);
        }
        Ok(())
    }

    /// Completes all messages and operations, unlinks all entries, and checks that every resource can then be freed.
    fn tear_down(self) -> Result<(), TestCaseError> {
        let Pair { mut real, model, mut effects, md, handles, in_flight, sending } = self;
        for ct in model.cts {
            real.ct_cancel_triggered(ct).unwrap();
        }
        for out in &sending {
            end(&mut real, out, &mut effects);
        }
        for (_, delivery) in &in_flight {
            real.complete(delivery, FailType::Ok, &mut effects).unwrap();
            prop_assert!(in_flight.len() > 1 || real.complete(delivery, FailType::Ok, &mut effects).is_err());
        }
        for (i, entry) in model.entries.iter().enumerate() {
            for _ in 0..entry.holds {
                real.me_release(handles[i], &mut effects).unwrap();
            }
        }
        real.eq_consumed(model.eq, DEPTH).unwrap();
        let unlink = |real: &mut Interface| {
            for &handle in &handles {
                let _ = real.me_unlink(handle);
            }
        };
        unlink(&mut real);
        real.eq_consumed(model.eq, DEPTH).unwrap();
        for user in [User::Id(0), User::Id(1)] {
            let everything = Me { ignore_bits: !0, user, options: BOTH, ..Me::default() };
            // The search may fail for a lack of entries, because unexpected headers keep entries in use.
            let _ = real.me_search(0, everything, SearchOp::Delete, &mut effects);
            real.eq_consumed(model.eq, DEPTH).unwrap();
        }
        let everything = Me { ignore_bits: !0, options: BOTH, ..Me::default() };
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
}

fn run(ops: Vec<Op>, flow: bool) -> Result<(), TestCaseError> {
    let mut pair = Pair::new(flow);
    for op in ops {
        pair.step(op)?;
    }
    pair.tear_down()
}

/// Returns the number of random cases: `usual`, or more if `PROPTEST_CASES` asks for a long run.
fn cases(usual: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    // The default is `PROPTEST_CASES`, or 256 without it.
    ProptestConfig { cases: usual.max(default.cases), ..default }
}

proptest! {
    #![proptest_config(cases(10_000))]
    #[test]
    fn the_interface_agrees_with_the_reference_model(
        ops in prop::collection::vec(ops(), 1..80),
        flow in any::<bool>(),
    ) {
        run(ops, flow)?;
    }
}
