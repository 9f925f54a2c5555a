//! Compares concurrent puts, gets and atomics of several hosts with a simple model. No byte or count may be lost,
//! duplicated or misplaced. Small buffers must cause no deadlock, and results must not depend on the number of shards.

use nicety::spin::Report;
use nicety::{Buffer, Cluster, ClusterConfig, Error, Host, Run, Topology, cards};
use nicety_portals::{
    AckRequest, Atomic, AtomicOp, AtomicRequest, CtHandle, Datatype, Event, EventKind, FailType,
    FetchRequest, GetRequest, List, Md, MdHandle, MdOptions, Me, MeOptions, Operand, PtOptions, PutRequest,
    Request,
};
use nicety_types::{Duration, Level, NodeId};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

const PT: u32 = 1;
/// The match bits of the slots for puts, of the counters that all ranks share, and of the bytes to get.
const PUTS: u64 = 1;
const SUMS: u64 = 2;
const BYTES: u64 = 3;
/// Size in bytes of a slot, and of the memory that gets read.
const SLOT: u64 = 8192;
const COUNTERS: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Put,
    Get,
    Add,
    FetchAdd,
}

/// An operation of a rank: its target (possibly the same rank), length, and offset or counter.
#[derive(Clone, Copy, Debug)]
struct Op {
    from: u32,
    kind: Kind,
    other: u32,
    len: u64,
    offset: u64,
}

impl Op {
    fn target(&self, ranks: u32) -> u32 {
        self.other % ranks
    }

    fn counter(&self) -> u64 {
        self.offset % COUNTERS
    }

    /// The number of counters to which an add adds 1: its own counter and all later counters. So the sums of the
    /// counters differ.
    fn items(&self) -> u64 {
        COUNTERS - self.counter()
    }
}

fn op(ranks: u32) -> impl Strategy<Value = Op> {
    let kind = prop_oneof![Just(Kind::Put), Just(Kind::Get), Just(Kind::Add), Just(Kind::FetchAdd)];
    (0..ranks, kind, any::<u32>(), 0..=5000u64, 0..=3000u64).prop_map(|(from, kind, other, len, offset)| Op {
        from,
        kind,
        other,
        len,
        offset,
    })
}

fn byte(rank: u32, number: u64, at: u64) -> u8 {
    (u64::from(rank) * 89 + number * 31 + at * 7 + (at >> 8)) as u8
}

fn contents(rank: u32, number: u64, len: u64) -> Vec<u8> {
    (0..len).map(|at| byte(rank, number, at)).collect()
}

/// The final state of a rank.
#[derive(Clone, Debug, Default, PartialEq)]
struct Outcome {
    puts: Vec<u8>,
    sums: Vec<u64>,
    /// The number of each get or fetch, and the bytes that it returned.
    brought: Vec<(usize, Vec<u8>)>,
    /// The number of bytes that puts have written to the entry, according to the entry's counter.
    bytes_put: u64,
}

fn descriptor(host: &Host, buffer: &Buffer, ct: CtHandle) -> Result<MdHandle, Error> {
    let portals = host.portals()?;
    portals.md_bind(Md {
        start: buffer.address(),
        length: buffer.len(),
        options: MdOptions::EVENT_CT_REPLY | MdOptions::EVENT_CT_ACK | MdOptions::EVENT_SEND_DISABLE,
        eq: None,
        ct: Some(ct),
    })
}

async fn program(host: Host, ops: Rc<Vec<Op>>, outcome: Rc<RefCell<Vec<Outcome>>>) -> Result<(), Error> {
    let (rank, ranks) = (host.rank(), host.ranks());
    let puts = host.alloc(SLOT * ops.len().max(1) as u64)?;
    let (sums, bytes) = (host.alloc(8 * COUNTERS)?, host.alloc(SLOT)?);
    bytes.write(0, &contents(rank, 1000, SLOT));
    let portals = host.portals()?;
    portals.pt_alloc(Some(PT), None)?;
    let counted = portals.ct_alloc()?;
    for (buffer, match_bits) in [(&puts, PUTS), (&sums, SUMS), (&bytes, BYTES)] {
        let options =
            MeOptions::OP_PUT | MeOptions::OP_GET | MeOptions::EVENT_CT_COMM | MeOptions::EVENT_CT_BYTES;
        let ct = (match_bits == PUTS).then_some(counted);
        let options = if ct.is_some() { options } else { MeOptions::OP_PUT | MeOptions::OP_GET };
        let me =
            Me { start: buffer.address(), length: buffer.len(), match_bits, options, ct, ..Me::default() };
        let appending = portals.me_append(PT, me, List::Priority).await?;
        portals.appended(appending).await?;
    }
    host.barrier().await;

    let done = portals.ct_alloc()?;
    let (mut waiting, mut brought) = (0, Vec::new());
    for (number, op) in ops.iter().enumerate().filter(|(_, op)| op.from == rank) {
        let target = NodeId(op.target(ranks));
        let request: Request = match op.kind {
            Kind::Put => {
                let buffer = host.alloc(op.len.max(1))?;
                buffer.write(0, &contents(rank, number as u64, op.len));
                let put = PutRequest::new(descriptor(&host, &buffer, done)?, op.len, target, PT, PUTS);
                let remote_offset = SLOT * number as u64 + op.offset;
                PutRequest { ack: AckRequest::Counting, remote_offset, ..put }.into()
            }
            Kind::Get => {
                let buffer = host.alloc(op.len.max(1))?;
                let get = GetRequest::new(descriptor(&host, &buffer, done)?, op.len, target, PT, BYTES);
                brought.push((number, buffer, op.len));
                GetRequest { remote_offset: op.offset, ..get }.into()
            }
            Kind::Add | Kind::FetchAdd => {
                let (len, remote_offset) = (8 * op.items(), 8 * op.counter());
                let buffer = host.alloc(2 * len)?;
                for item in 0..op.items() {
                    buffer.write(8 * item, &1u64.to_le_bytes());
                }
                let md = descriptor(&host, &buffer, done)?;
                let put = PutRequest { remote_offset, ..PutRequest::new(md, len, target, PT, SUMS) };
                let atomic = Atomic::new(AtomicOp::Sum, Datatype::Uint64).expect("sums of integers are");
                if op.kind == Kind::Add {
                    let put = PutRequest { ack: AckRequest::Counting, ..put };
                    AtomicRequest { put, atomic }.into()
                } else {
                    brought.push((number, buffer.slice(len, len)?, len));
                    let operand = Operand::NONE;
                    Request::FetchAtomic(FetchRequest {
                        get_md: md,
                        local_get_offset: len,
                        put,
                        atomic,
                        operand,
                    })
                }
            }
        };
        portals.post(&request).await?;
        waiting += 1;
    }
    portals.ct_wait(done, waiting).await?;
    host.barrier().await;
    let word = |at: u64| u64::from_le_bytes(sums.read(8 * at, 8).try_into().expect("eight bytes"));
    outcome.borrow_mut()[rank as usize] = Outcome {
        puts: puts.read(0, puts.len()),
        sums: (0..COUNTERS).map(word).collect(),
        brought: brought.into_iter().map(|(number, buffer, len)| (number, buffer.read(0, len))).collect(),
        bytes_put: portals.ct_get(counted).success,
    };
    Ok(())
}

fn cluster(ranks: u32, overrides: &[String], shards: usize) -> Cluster {
    let card = cards::load("spin-discrete", overrides).unwrap();
    let config = ClusterConfig {
        topology: if ranks == 2 { Topology::Pair } else { Topology::Star },
        shards,
        recording: Level::Packets,
        ..ClusterConfig::new(ranks, card)
    };
    Cluster::new(config).unwrap()
}

fn outcomes(ranks: u32, ops: &[Op], overrides: &[String], shards: usize) -> (Run, Vec<Outcome>) {
    let mut cluster = cluster(ranks, overrides, shards);
    let (ops, outcome) =
        (Rc::new(ops.to_vec()), Rc::new(RefCell::new(vec![Outcome::default(); ranks as usize])));
    for rank in 0..ranks {
        let (ops, outcome) = (ops.clone(), outcome.clone());
        cluster.program(rank, move |host| program(host, ops, outcome));
    }
    let run = cluster.run().unwrap();
    let outcome = outcome.take();
    (run, outcome)
}

/// Returns the outcomes of the model. Its sums do not depend on the order of operations. `fetched` compares the results
/// of fetches with these sums.
fn expected(ranks: u32, ops: &[Op]) -> Vec<Outcome> {
    let mut all = vec![Outcome::default(); ranks as usize];
    for one in &mut all {
        one.puts = vec![0; SLOT as usize * ops.len().max(1)];
        one.sums = vec![0; COUNTERS as usize];
    }
    for (number, op) in ops.iter().enumerate() {
        let (rank, target) = (op.from as usize, op.target(ranks));
        let theirs = &mut all[target as usize];
        match op.kind {
            Kind::Put => {
                let at = (SLOT * number as u64 + op.offset) as usize;
                // Only a put into the last slot can reach beyond the memory, and is truncated.
                let len = (op.len as usize).min(theirs.puts.len() - at);
                theirs.puts[at..at + len].copy_from_slice(&contents(op.from, number as u64, op.len)[..len]);
                theirs.bytes_put += len as u64;
            }
            Kind::Get => {
                let source = contents(target, 1000, SLOT);
                let part = source[op.offset as usize..][..op.len as usize].to_vec();
                all[rank].brought.push((number, part));
            }
            Kind::Add | Kind::FetchAdd => {
                theirs.sums[op.counter() as usize..].iter_mut().for_each(|sum| *sum += 1);
            }
        }
    }
    all
}

/// Checks that each result of a fetching add occurs only once, and is possible with the other adds.
fn fetched(ranks: u32, ops: &[Op], all: &[Outcome]) {
    for target in 0..ranks {
        for counter in 0..COUNTERS {
            let mut seen = Vec::new();
            for (number, bytes) in all.iter().flat_map(|one| &one.brought) {
                let op = &ops[*number];
                if op.kind == Kind::FetchAdd && op.target(ranks) == target && op.counter() <= counter {
                    let at = 8 * (counter - op.counter()) as usize;
                    seen.push(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()));
                }
            }
            let found = seen.len();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), found, "two adds have found the same value");
            assert!(seen.iter().all(|&value| value < all[target as usize].sums[counter as usize]));
        }
    }
}

/// Checks for every message that the times of its stages add up to its latency.
fn rows_add_up(run: &Run) {
    for message in run.recording.messages() {
        let (Some(completed), Some(stages)) = (message.completed, &message.stages) else {
            panic!("{} {:?} did not complete: {}", message.kind, message.id, message.outcome)
        };
        let sum: u64 = stages.iter().map(|(_, time)| time.ps()).sum();
        assert_eq!(sum, completed.since(message.posted).ps(), "{} {:?}", message.kind, message.id);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48 * ProptestConfig::default().cases / 256))]

    #[test]
    fn operations_of_many_hosts_do_what_a_plain_model_does(
        (ranks, ops) in (2..=4u32).prop_flat_map(|ranks| (Just(ranks), prop::collection::vec(op(ranks), 1..40))),
        payload in prop_oneof![Just("64 B"), Just("1000 B"), Just("4 KiB")],
        buffer in prop_oneof![Just(1), Just(3), Just(256)],
        quick in any::<bool>(),
    ) {
        let post = if quick { "0 ns" } else { "65 ns" };
        let overrides = [
            format!("packet.payload={payload}"),
            format!("buffer.packets={buffer}"),
            format!("switch.buffer={buffer}"),
            format!("host.post={post}"),
        ];
        let (run, got) = outcomes(ranks, &ops, &overrides, 1);
        let mut plain = expected(ranks, &ops);
        for (one, other) in plain.iter_mut().zip(&got) {
            let fetches = other.brought.iter().filter(|(number, _)| ops[*number].kind == Kind::FetchAdd);
            one.brought.extend(fetches.cloned());
            one.brought.sort_by_key(|(number, _)| *number);
        }
        prop_assert_eq!(&got, &plain);
        fetched(ranks, &ops, &got);
        rows_add_up(&run);
        let (again, same) = outcomes(ranks, &ops, &overrides, ranks as usize);
        prop_assert_eq!(&got, &same);
        prop_assert_eq!(run, again);
    }
}

/// Number of messages that each sender sends to an entry with flow control.
const EACH: u64 = 25;

/// Slowly reads the messages of three senders from an entry with flow control. A message is a pair of rank and number.
/// Each time the entry is disabled, enables it again, and counts these times.
async fn read_slowly(
    host: Host,
    depth: u32,
    received: Rc<RefCell<Vec<(u32, u64)>>>,
    disabled: Rc<RefCell<u64>>,
) -> Result<(), Error> {
    let buffer = host.alloc(8 * 3 * EACH)?;
    let portals = host.portals()?;
    let eq = portals.eq_alloc(depth)?;
    portals.pt_alloc_with(Some(PT), Some(eq), PtOptions::FLOWCTRL)?;
    let options = MeOptions::OP_PUT | MeOptions::MANAGE_LOCAL | MeOptions::EVENT_LINK_DISABLE;
    let me = Me { start: buffer.address(), length: buffer.len(), options, ..Me::default() };
    let appending = portals.me_append(PT, me, List::Priority).await?;
    portals.appended(appending).await?;
    host.barrier().await;
    while (received.borrow().len() as u64) < 3 * EACH {
        let event = portals.eq_wait(eq, |_| true, || "a message".into()).await?;
        match event.kind {
            EventKind::PtDisabled => {
                *disabled.borrow_mut() += 1;
                host.compute(Duration::from_ns(3000)).await;
                portals.pt_enable(PT, true).await?;
            }
            _ => {
                // The bytes are at the address in the event.
                let at = event.start - buffer.address();
                let word = u64::from_le_bytes(buffer.read(at, 8).try_into().expect("eight bytes"));
                assert_eq!((event.kind, word), (EventKind::Put, event.hdr_data));
                received.borrow_mut().push((event.initiator.0, event.hdr_data));
                host.compute(Duration::from_ns(400)).await;
            }
        }
    }
    Ok(())
}

/// Sends each message until it is acknowledged, and counts the refusals.
async fn send_until_acknowledged(host: Host, refused: Rc<RefCell<u64>>) -> Result<(), Error> {
    let buffer = host.alloc(8 * EACH)?;
    for number in 0..EACH {
        buffer.write(8 * number, &number.to_le_bytes());
    }
    let portals = host.portals()?;
    let eq = portals.eq_alloc(1024)?;
    let md = portals.md_bind(Md {
        start: buffer.address(),
        length: buffer.len(),
        options: MdOptions::EVENT_SEND_DISABLE,
        eq: Some(eq),
        ct: None,
    })?;
    host.barrier().await;
    let mut left: Vec<u64> = (0..EACH).collect();
    while !left.is_empty() {
        for &number in &left {
            let put = PutRequest::new(md, 8, NodeId(0), PT, 0);
            let ack = AckRequest::Full;
            let (hdr_data, user_ptr, local_offset) = (number, number, 8 * number);
            portals.put(&PutRequest { ack, hdr_data, user_ptr, local_offset, ..put }).await?;
        }
        let mut again = Vec::new();
        for _ in 0..left.len() {
            let event: Event = portals.eq_wait(eq, |_| true, || "an ack".into()).await?;
            assert_eq!(event.kind, EventKind::Ack);
            match event.fail {
                FailType::Ok => {}
                FailType::PtDisabled => again.push(event.user_ptr),
                other => panic!("{other}"),
            }
        }
        *refused.borrow_mut() += again.len() as u64;
        left = again;
        host.compute(Duration::from_ns(10_000)).await;
    }
    Ok(())
}

/// Three senders overrun an entry with flow control. Its host reads slowly, and the senders resend refused messages.
#[test]
fn many_senders_overrun_an_entry_with_flow_control_and_nothing_is_lost() {
    for (depth, shards) in [(4, 1), (4, 4), (12, 1)] {
        let mut cluster = cluster(4, &["buffer.packets=2".to_string()], shards);
        let received: Rc<RefCell<Vec<(u32, u64)>>> = Rc::default();
        let (refused, disabled): (Rc<RefCell<u64>>, Rc<RefCell<u64>>) = Default::default();
        let (note, times) = (received.clone(), disabled.clone());
        cluster.program(0, move |host| read_slowly(host, depth, note, times));
        for rank in 1..4 {
            let refused = refused.clone();
            cluster.program(rank, move |host| send_until_acknowledged(host, refused));
        }
        let run = cluster.run().unwrap();
        let mut received = received.take();
        received.sort_unstable();
        let all: Vec<_> = (1..4).flat_map(|rank| (0..EACH).map(move |number| (rank, number))).collect();
        assert_eq!(received, all);
        assert!(*refused.borrow() > 0 && *disabled.borrow() > 0, "it was never overrun");
        assert_eq!(run.nodes[0].of::<Report>().portals.dropped_total(), *refused.borrow());
        assert_eq!(run.nodes[0].of::<Report>().portals.events_dropped, 0);
    }
}

#[test]
fn the_user_of_a_host_is_the_one_it_was_given() {
    let config = ClusterConfig::new(2, cards::load("spin-discrete", &[]).unwrap());
    let cluster = Cluster::new(ClusterConfig { uids: vec![42, 7], ..config }).unwrap();
    assert_eq!([0, 1].map(|rank| cluster.host(rank).portals().unwrap().uid()), [42, 7]);
}

#[test]
fn an_entry_that_is_freed_can_be_had_again() {
    let cluster = Cluster::new(ClusterConfig::new(2, cards::load("spin-discrete", &[]).unwrap())).unwrap();
    let portals = cluster.host(0).portals().unwrap();
    assert_eq!(portals.pt_alloc(Some(PT), None), Ok(PT));
    assert!(portals.pt_alloc(Some(PT), None).is_err());
    portals.pt_free(PT).unwrap();
    assert_eq!(portals.pt_alloc(Some(PT), None), Ok(PT));
}

#[test]
fn only_a_buffer_of_no_bytes_is_empty() {
    let cluster = Cluster::new(ClusterConfig::new(2, cards::load("spin-discrete", &[]).unwrap())).unwrap();
    let buffer = cluster.host(0).alloc(8).unwrap();
    assert!(!buffer.is_empty() && buffer.slice(3, 0).unwrap().is_empty());
}

#[test]
fn a_redelivered_message_has_its_bytes() {
    // Sizes of one packet, of several packets, and of no payload.
    const SIZES: [u64; 5] = [8, 4096, 0, 4097, 20_000];
    let card = cards::load("spin-discrete", &[]).unwrap();
    let mut cluster = Cluster::new(ClusterConfig::new(2, card)).unwrap();
    cluster.program(0, |host| async move {
        let portals = host.portals()?;
        let out = host.alloc(SIZES.iter().sum())?;
        out.write(0, &contents(0, 0, out.len()));
        let md = portals.md_bind(Md { start: out.address(), length: out.len(), ..Md::default() })?;
        let mut at = 0;
        for size in SIZES {
            let put = PutRequest::new(md, size, NodeId(1), 1, 7);
            portals.put(&PutRequest { local_offset: at, ..put }).await?;
            at += size;
        }
        Ok(())
    });
    cluster.program(1, |host| async move {
        let portals = host.portals()?;
        let eq = portals.eq_alloc(64)?;
        portals.pt_alloc(Some(1), Some(eq))?;
        let early = host.alloc(1 << 16)?;
        let quiet = MeOptions::OP_PUT | MeOptions::EVENT_LINK_DISABLE;
        let options = quiet | MeOptions::MANAGE_LOCAL | MeOptions::EVENT_COMM_DISABLE;
        let (start, length) = (early.address(), early.len());
        let overflow = Me { start, length, ignore_bits: !0, options, ..Me::default() };
        portals.me_set_up(1, overflow, List::Overflow)?;
        host.pause(Duration::from_ns(50_000)).await;
        let sent = contents(0, 0, SIZES.iter().sum());
        let mut at = 0;
        for size in SIZES {
            let late = host.alloc(1 << 15)?;
            let options =
                quiet | MeOptions::USE_ONCE | MeOptions::REDELIVER | MeOptions::EVENT_UNLINK_DISABLE;
            let (start, length) = (late.address(), late.len());
            let me = Me { start, length, match_bits: 7, options, ..Me::default() };
            portals.me_append(1, me, List::Priority).await?;
            let event = portals.eq_wait(eq, |_| true, || "the message".to_owned()).await?;
            assert_eq!((event.kind, event.mlength, event.list), (EventKind::Put, size, List::Overflow));
            assert_eq!(late.read(0, size), sent[at as usize..(at + size) as usize]);
            at += size;
        }
        Ok(())
    });
    cluster.run().unwrap();
}
