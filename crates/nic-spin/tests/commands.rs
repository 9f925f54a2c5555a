//! The commands of handlers to the card: their results, their effects, and the time for which each command blocks the
//! handler.

use crate::support::code::{Code, echo, number, payload, program_for, put, result, waited, word};
use crate::support::*;
use nicety_hpu::asm::*;
use nicety_nic_core::{LINES_KEPT, ProgramFailure, RefusedCommand};
use nicety_nic_processors::{Handlers, Printed};
use nicety_nic_spin::CallError;
use nicety_portals::{EventKind, FailType, Me};
use nicety_spec::{SHIPPED, Spec};
use std::cell::RefCell;
use std::rc::Rc;

/// Contents of the entry's host memory before the handler runs. Words from 64 on are free for the handler.
fn host_memory() -> Vec<u8> {
    (0..256_u32).flat_map(|i| if i < 64 { [0; 4] } else { i.to_le_bytes() }).collect()
}

struct Ran {
    memory: Vec<u8>,
    state: Vec<u8>,
    failures: Vec<ProgramFailure>,
    refused: Vec<RefusedCommand>,
    fail: FailType,
}

impl Ran {
    /// Returns the refused commands without their places, because this code has no line table.
    fn refused(&self) -> Vec<(&str, &str, u64)> {
        assert!(
            self.refused.iter().all(|refused| refused.place.starts_with("pc 0x1d0000")),
            "{:?}",
            self.refused
        );
        self.refused.iter().map(|refused| (refused.command, refused.code, refused.times)).collect()
    }
}

/// Runs a payload handler once on a packet of 8 bytes. Then writes the first 256 bytes of the handler's state to host
/// memory.
fn run(overrides: &[&str], body: Code, state: &[u8]) -> Ran {
    run_handlers(overrides, payload, body, state)
}

fn run_handlers(
    overrides: &[&str],
    handlers: impl FnOnce(Code) -> Handlers,
    body: Code,
    state: &[u8],
) -> Ran {
    let mut rig = Rig::new(overrides);
    rig.program(0, async |a| {
        let request = a.request(&a.alloc(&pattern(8, 1)), 5);
        a.append(entry(&a.alloc(&[0; 64]), 9)).await.unwrap();
        a.start().await;
        a.put(&request).await.unwrap();
    });
    let mut state = state.to_vec();
    state.resize(512, 0);
    let handlers = handlers(body.publish(256).returns(0));
    let result = Rc::new(RefCell::new(None));
    let note = result.clone();
    rig.program(1, async move |b| {
        let memory = b.alloc(&host_memory());
        let me = Me { ct: Some(b.ct), ..entry(&memory, 5) };
        b.append_with(me, &handlers, &state).await.unwrap();
        let event = b.event(EventKind::Put).await;
        *note.borrow_mut() = Some((event.fail, b.read(&memory)));
    });
    rig.run();
    let (fail, memory) = result.take().unwrap();
    Ran {
        state: memory[..256].to_vec(),
        memory,
        failures: rig.failures(),
        refused: rig.nodes[1].card.processors().refused_commands(),
        fail,
    }
}

/// Returns code that sets the arguments of a DMA in a0 to a4.
fn dma(a0: (i32, bool), a1: (i32, bool), a2: i32, a3: i32, handle: Option<i32>) -> Code {
    let argument = |code: Code, register, (value, in_state): (i32, bool)| {
        if in_state { code.at(register, value) } else { code.small(register, value) }
    };
    let code = argument(argument(Code::new(), A0, a0), A1, a1).small(A2, a2).small(A3, a3);
    match handle {
        Some(at) => code.at(A4, at),
        None => code.small(A4, 0),
    }
}

fn to_host(local: i32, offset: i32, len: i32, handle: Option<i32>) -> Code {
    dma((local, true), (offset, false), len, 0, handle)
}

fn from_host(offset: i32, local: i32, len: i32, handle: Option<i32>) -> Code {
    dma((offset, false), (local, true), len, 0, handle)
}

#[test]
fn cycles_begin_with_a_handler_and_time_with_the_run() {
    // In ns, the handler begins after post 65, bus 250, link 33.56 and match 30. The two counters are read 2 cycles
    // apart.
    let body = Code::enter().stamp(0).with(&[csrrs(T0, 0xc01, ZERO), sw(T0, 4, S0)]);
    let ran = run(&[], body, &[]);
    let began = after(378_560).ps() / 400;
    assert_eq!(u64::from(word(&ran.state, 4) - word(&ran.state, 0)), began + 2);
    assert!(word(&ran.state, 0) < 10);
}

#[test]
fn dma_to_host() {
    // 8 bytes are handed to the bus after 0.125 ns, within a cycle. 256 bytes take 3.994 ns, which is 9.985 and so 10
    // cycles.
    let body = Code::enter()
        .then(&to_host(256, 256, 8, None).timed(number::DMA_TO_HOST, 0))
        .then(&to_host(256, 512, 256, None).timed(number::DMA_TO_HOST, 12))
        .then(&to_host(256, 264, 0, None).timed(number::DMA_TO_HOST, 24));
    let mut state = vec![0; 256];
    state.extend(pattern(256, 9));
    let ran = run(&[], body, &state);
    assert_eq!(waited(&ran.state, 0), (1, result::OK));
    assert_eq!(waited(&ran.state, 12), (10, result::OK));
    assert_eq!(waited(&ran.state, 24), (0, result::OK));
    assert_eq!(ran.memory[256..264], pattern(256, 9)[..8]);
    assert_eq!(ran.memory[264..512], host_memory()[264..512]);
    assert_eq!(ran.memory[512..768], pattern(256, 9));
    assert_eq!((ran.fail, ran.failures), (FailType::Ok, vec![]));
}

#[test]
fn dma_to_host_without_waiting() {
    // The command takes no time. A test directly after it returns no. A wait takes the rest of the 10 cycles, and
    // another test then returns yes.
    let body = Code::enter()
        .then(&to_host(256, 512, 256, Some(128)).timed(number::DMA_TO_HOST, 0))
        .with(&[lw(A0, 128, S0)])
        .then(&Code::new().timed(number::DMA_TEST, 12))
        .with(&[lw(A0, 128, S0)])
        .then(&Code::new().timed(number::DMA_WAIT, 24))
        .with(&[lw(A0, 128, S0)])
        .then(&Code::new().timed(number::DMA_TEST, 36))
        .with(&[lw(A0, 128, S0)])
        .then(&Code::new().timed(number::DMA_WAIT, 48));
    let ran = run(&[], body, &[7; 512]);
    assert_eq!(waited(&ran.state, 0), (0, result::OK));
    assert_eq!(word(&ran.state, 128), 0, "the first handle");
    assert_eq!(waited(&ran.state, 12), (0, 0));
    let first_issued = word(&ran.state, 0) + 2;
    let wait_issued = word(&ran.state, 24) + 2;
    assert_eq!(waited(&ran.state, 24).0, (first_issued + 10).saturating_sub(wait_issued));
    assert_eq!(waited(&ran.state, 36), (0, 1), "a handle that was waited for is done");
    assert_eq!(waited(&ran.state, 48), (0, result::ARG_INVALID), "and cannot be waited for again");
    assert_eq!(ran.memory[512..768], [7; 256]);
}

#[test]
fn bytes_are_taken_when_the_command_is_given() {
    let body = Code::enter()
        .then(&to_host(256, 512, 8, Some(128)))
        .command(number::DMA_TO_HOST)
        .with(&[sw(ZERO, 256, S0)]);
    assert_eq!(run(&[], body, &[7; 512]).memory[512..520], [7; 8]);
}

#[test]
fn dma_from_host() {
    // 8 bytes take 250 + 0.125 + 250 ns, or 1250.3 cycles. 256 bytes take 503.994 ns, or 1259.98 cycles.
    let body = Code::enter()
        .then(&from_host(256, 128, 8, None).timed(number::DMA_FROM_HOST, 0))
        .then(&from_host(256, 256, 256, None).timed(number::DMA_FROM_HOST, 12))
        .then(&to_host(256, 768, 256, None).timed(number::DMA_TO_HOST, 24));
    let ran = run(&[], body, &[]);
    assert_eq!(waited(&ran.state, 0), (1251, result::OK));
    assert_eq!(waited(&ran.state, 12), (1260, result::OK));
    assert_eq!(ran.state[128..136], host_memory()[256..264]);
    assert_eq!(ran.memory[768..1024], host_memory()[256..512]);
    // With a handle, the bytes have arrived once the handle is done.
    let body = Code::enter()
        .then(&from_host(256, 136, 8, Some(128)).timed(number::DMA_FROM_HOST, 0))
        .with(&[lw(T2, 136, S0), sw(T2, 144, S0), lw(A0, 128, S0)])
        .then(&Code::new().timed(number::DMA_WAIT, 12));
    let ran = run(&[], body, &[]);
    assert_eq!(waited(&ran.state, 0), (0, result::OK));
    assert_eq!(word(&ran.state, 144), 0);
    assert_eq!(waited(&ran.state, 12).0, word(&ran.state, 0) + 2 + 1251 - (word(&ran.state, 12) + 2));
    assert_eq!(ran.state[136..144], host_memory()[256..264]);
    // A handler may end without a wait.
    let body = Code::enter().then(&from_host(256, 136, 8, Some(128))).command(number::DMA_FROM_HOST);
    assert_eq!(run(&[], body, &[]).failures, []);
}

#[test]
fn a_read_never_passes_a_write() {
    // Two writes are in flight when the read is issued. The read request stays behind the writes, so the read returns
    // the new bytes.
    let body = Code::enter()
        .then(&to_host(256, 256, 256, Some(128)))
        .command(number::DMA_TO_HOST)
        .then(&to_host(256, 512, 256, Some(132)))
        .command(number::DMA_TO_HOST)
        .then(&from_host(760, 136, 8, None).timed(number::DMA_FROM_HOST, 0));
    let ran = run(&[], body, &[7; 512]);
    assert_eq!(ran.state[136..144], [7; 8]);
    // The read is issued 6 and 8 cycles after the writes (addi x 6, csrr, sw). The writes occupy the bus for 2 x 3.994
    // ns.
    assert_eq!(waited(&ran.state, 0), ((7_988 - 5_600 + 500_125_u32).div_ceil(400), result::OK));
}

#[test]
fn atomic_operations_on_host_memory() {
    let mut state = vec![0; 256];
    state[128..136]
        .copy_from_slice(&u64::from_le_bytes(host_memory()[256..264].try_into().unwrap()).to_le_bytes());
    state[136..144].copy_from_slice(&77_u64.to_le_bytes());
    state[152..160].copy_from_slice(&u64::MAX.to_le_bytes());
    let cas = |at| dma((256, false), (128, true), 0, 0, None).at(A2, 136).timed(number::DMA_CAS, at);
    let add = dma((264, false), (144, true), 0, 0, None).at(A2, 152).timed(number::DMA_FETCH_ADD, 24);
    // The first CAS finds the expected value. The second CAS does not, and returns the current value.
    let ran = run(&[], Code::enter().then(&cas(0)).then(&cas(12)).then(&add), &state);
    for at in [0, 12, 24] {
        assert_eq!(waited(&ran.state, at), (1251, result::OK));
    }
    let long = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!(long(&ran.memory, 256), 77);
    assert_eq!(long(&ran.state, 128), 77, "the second found what the first had written");
    assert_eq!(long(&ran.state, 144), long(&host_memory(), 264));
    assert_eq!(long(&ran.memory, 264), long(&host_memory(), 264) - 1);
}

#[test]
fn atomic_operations_on_hpu_memory() {
    let mut state = vec![0; 256];
    state[128..136].copy_from_slice(&5_u64.to_le_bytes());
    let cas = |expected, at| {
        Code::new()
            .at(A0, 128)
            .small(A1, expected)
            .small(A2, 0)
            .small(A3, 9)
            .small(A4, 1)
            .timed(number::CAS, at)
    };
    let add = Code::new().at(A0, 128).at(A1, 136).small(A2, -1).small(A3, -1).timed(number::FADD, 24);
    let ran = run(&[], Code::enter().then(&cas(4, 0)).then(&cas(5, 12)).then(&add), &state);
    assert_eq!(waited(&ran.state, 0), (0, 0), "the expected value is gone");
    assert_eq!(waited(&ran.state, 12), (0, 1));
    assert_eq!(waited(&ran.state, 24), (0, result::OK));
    let long = |at: usize| u64::from_le_bytes(ran.state[at..at + 8].try_into().unwrap());
    assert_eq!(long(136), 1 << 32 | 9);
    assert_eq!(long(128), 1 << 32 | 8);
}

#[test]
fn commands_cost_what_the_spec_says() {
    let body = Code::enter().at(A0, 128).at(A1, 136).small(A2, 1).small(A3, 0).timed(number::FADD, 0);
    let overrides = ["hpu.cycles.command=17"];
    let handlers = |body: Code| program_for(spec(&overrides).hpu.core, None, Some(body), None);
    assert_eq!(waited(&run_handlers(&overrides, handlers, body, &[]).state, 0), (17, result::OK));
}

#[test]
fn printing_costs_what_the_spec_says() {
    let body = Code::enter().at(A0, 128).small(A1, 0).timed(number::PRINTF, 0);
    let mut state = vec![0; 128];
    state.extend(b"four\n\0");
    let overrides = ["hpu.cycles.printf=60", "hpu.cycles.printf_byte=20"];
    assert_eq!(waited(&run(&overrides, body.clone(), &state).state, 0), (60 + 5 * 20, 5));
    assert_eq!(waited(&run(&[], body, &state).state, 0), (0, 5));
    let shipped = Spec::load("spin-discrete", &[], SHIPPED).unwrap();
    let (card, _) = nicety_nic_core::read(&shipped, &[nicety_nic_spin::DESIGN]).unwrap();
    let hpu = &card.of::<nicety_nic_spin::SpinSpec>().unwrap().hpu;
    assert_eq!((hpu.printf, hpu.printf_byte), (60, 20), "assumed, as its source says");
}

#[test]
fn a_handler_that_prints_for_ever_is_stopped_and_its_lines_are_counted() {
    let mut rig = Rig::new(&["hpu.cycle_limit=1000000", "hpu.cycles.printf=60", "hpu.cycles.printf_byte=20"]);
    rig.program(0, async |a| {
        let request = a.request(&a.alloc(&[1; 8]), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    rig.program(1, async |b| {
        // A line takes 3 cycles for its code, 60 and 2 x 20 for the print, and 2 for the jump back.
        let body = Code::enter().print(0).with(&[j(-16)]);
        b.append_with(entry(&b.alloc(&[0; 8]), 5), &payload(body), b"x\n\0").await.unwrap();
        assert_eq!(b.event(EventKind::Put).await.fail, FailType::HandlerError);
    });
    rig.run();
    let text = &rig.failures()[0].text;
    assert!(text.contains("still running at its limit of 1000000 cycles"), "{text}");
    let printed = 1_000_000_u64.div_ceil(105);
    assert_eq!(rig.log().len() as u64, LINES_KEPT);
    let counted = Printed { lines: LINES_KEPT, suppressed: printed - LINES_KEPT };
    assert_eq!(rig.nodes[1].card.processors().printed(), counted);
    assert_eq!(rig.nodes[1].card.processors().handler_statistics().stalled, 0, "printing is work");
}

#[test]
fn arguments_out_of_range_are_refused() {
    // The entry has 1 KiB of host memory.
    let cases = [
        (to_host(0, 1020, 8, None), number::DMA_TO_HOST, result::SEGV),
        (to_host(0, 1016, 8, None), number::DMA_TO_HOST, result::OK),
        (to_host(0, -1, 2, None), number::DMA_TO_HOST, result::SEGV),
        (to_host(0, 0, 8, None).small(A3, 2), number::DMA_TO_HOST, result::SEGV),
        (to_host(0, 0, 8, None).small(A3, 1), number::DMA_TO_HOST, result::SEGV), // the handlers have no own region
        (from_host(1020, 64, 8, None), number::DMA_FROM_HOST, result::SEGV),
        (from_host(0, 64, -1, None), number::DMA_FROM_HOST, result::SEGV),
        (dma((1017, false), (64, true), 0, 0, None).at(A2, 72), number::DMA_CAS, result::SEGV),
        (dma((1017, false), (64, true), 0, 0, None).at(A2, 72), number::DMA_FETCH_ADD, result::SEGV),
        (Code::new().small(A0, 1000).small(A1, 100).at(A2, 256), number::PUT_FROM_HOST, result::SEGV),
        // The ranks are 0 and 1. This is rank 1, and it may send to itself.
        (Code::new().at(A0, 0).small(A1, 8).at(A2, 288), number::PUT_FROM_DEVICE, result::OK),
        (Code::new().at(A0, 0).small(A1, 8).at(A2, 320), number::PUT_FROM_DEVICE, result::ARG_INVALID),
        (Code::new().small(A0, 0).small(A1, 8).at(A2, 288), number::PUT_FROM_HOST, result::OK),
        // The first put exceeds a packet. The second put requests an acknowledgement, which no host would see. The
        // third put has a counting flag other than 0 and 1.
        (Code::new().at(A0, 0).set(A1, 4097).at(A2, 256), number::PUT_FROM_DEVICE, result::ARG_INVALID),
        (Code::new().at(A0, 0).small(A1, 8).at(A2, 352), number::PUT_FROM_DEVICE, result::ARG_INVALID),
        (Code::new().at(A0, 0).small(A1, 8).at(A2, 384), number::PUT_FROM_DEVICE, result::ARG_INVALID),
        (Code::new().at(A0, 0).small(A1, 0).at(A2, 256), number::PUT_FROM_DEVICE, result::OK),
        (Code::new().small(A0, 3), number::DMA_WAIT, result::ARG_INVALID),
        (Code::new().small(A0, 99), number::DMA_WAIT, result::ARG_INVALID),
        (Code::new().small(A0, 4), number::DMA_WAIT, result::ARG_INVALID), // the number of the blocking DMAs' slot
    ];
    let mut state = vec![0; 256];
    for (target, options) in [(0, 0), (1, 0), (2, 0), (0, 1 << 16), (0, 2)] {
        let mut put = put(9, target, 0, false);
        put[24..28].copy_from_slice(&u32::to_le_bytes(options));
        state.extend(put);
    }
    for (i, (arguments, number, result)) in cases.into_iter().enumerate() {
        let ran = run(&[], Code::enter().then(&arguments.timed(number, 0)), &state);
        assert_eq!(waited(&ran.state, 0).1, result, "case {i}, command {number:#x}");
        assert_eq!(ran.failures, []);
        let name = match number {
            number::DMA_TO_HOST => "PtlHandlerDMAToHostB",
            number::DMA_FROM_HOST => "PtlHandlerDMAFromHostB",
            number::DMA_CAS => "PtlHandlerDMACASB",
            number::DMA_FETCH_ADD => "PtlHandlerDMAFetchAddB",
            number::PUT_FROM_DEVICE => "PtlHandlerPutFromDevice",
            number::PUT_FROM_HOST => "PtlHandlerPutFromHost",
            _ => "PtlHandlerDMAWait",
        };
        let told = match result {
            result::OK => vec![],
            result::SEGV => vec![(name, "PTL_SEGV", 1)],
            _ => vec![(name, "PTL_ARG_INVALID", 1)],
        };
        assert_eq!(ran.refused(), told, "case {i}");
        if result != result::OK {
            assert_eq!(waited(&ran.state, 0).0, 0, "case {i}: refused at once");
            assert_eq!(ran.memory[256..], host_memory()[256..], "case {i}");
        }
    }
}

#[test]
fn too_many_transfers_are_refused_and_handles_used_again() {
    let start = |handle: i32, at: i32| from_host(256, 384, 8, Some(handle)).timed(number::DMA_FROM_HOST, at);
    let body = Code::enter()
        .then(&start(128, 0))
        .then(&start(132, 12))
        .then(&start(136, 24))
        .with(&[lw(A0, 132, S0)])
        .then(&Code::new().timed(number::DMA_WAIT, 36))
        .then(&start(140, 48));
    let mut state = vec![0xff; 512];
    state[140..144].fill(0xee);
    let ran = run(&["hpu.dma_handles=2"], body, &state);
    assert_eq!(
        [0, 12, 24, 48].map(|at| waited(&ran.state, at)),
        [(0, result::OK), (0, result::OK), (0, result::NO_SPACE), (0, result::OK)]
    );
    assert_eq!([128, 132, 136, 140].map(|at| word(&ran.state, at)), [0, 1, 0xffff_ffff, 1]);
    assert_eq!(ran.failures, []);
    assert_eq!(ran.refused(), [("PtlHandlerDMAFromHostNB", "PTL_NO_SPACE", 1)]);
}

#[test]
fn handlers_have_host_memory_of_their_own() {
    let mut rig = Rig::new(&[]);
    rig.program(0, async |a| {
        let request = a.request(&a.alloc(&[1; 8]), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    rig.program(1, async |b| {
        let (memory, own) = (b.alloc(&[0; 64]), b.alloc(&[3; 32]));
        let body = Code::enter()
            .then(&from_host(24, 0, 8, None).small(A3, 1))
            .command(number::DMA_FROM_HOST)
            .then(&to_host(0, 0, 8, None))
            .command(number::DMA_TO_HOST)
            .then(&to_host(16, 0, 8, None).small(A3, 1))
            .command(number::DMA_TO_HOST)
            .then(&to_host(16, 25, 8, None).small(A3, 1))
            .command(number::DMA_TO_HOST)
            .with(&[addi(A0, A0, -(result::SEGV as i32)), ret()]);
        let region = Some((own.address(), own.len()));
        let handlers = Some(b.card.attach(&payload(body), &[9; 32], region).unwrap());
        b.append(Me { handlers, ..entry(&memory, 5) }).await.unwrap();
        assert!(b.event(EventKind::Put).await.fail.is_ok(), "{:?}", b.card.processors().failures());
        assert_eq!(b.read(&memory)[..8], [3; 8]);
        assert_eq!((&b.read(&own)[..8], &b.read(&own)[8..]), (&[9; 8][..], &[3; 24][..]));
        let outside = b.card.attach(&payload(Code::enter().returns(0)), &[], Some((own.address(), 33)));
        assert!(matches!(outside, Err(CallError::Memory(_))));
    });
    rig.run();
    assert_eq!(rig.failures(), []);
}

#[test]
fn counters_of_the_entry() {
    // The handler gets the counter, adds 3 successes, gets it, sets it to 10 successes and 1 failure, and gets it.
    let get = |local, at| Code::new().at(A0, local).timed(number::CT_GET, at);
    let body = Code::enter()
        .then(&get(128, 0))
        .then(&Code::new().small(A0, 3).small(A1, 0).timed(number::CT_INC, 12))
        .then(&get(136, 24))
        .then(&Code::new().small(A0, 10).small(A1, 1).timed(number::CT_SET, 36))
        .then(&get(144, 48));
    let ran = run(&[], body, &[0xff; 160]);
    for at in [0, 12, 24, 36, 48] {
        assert_eq!(waited(&ran.state, at), (0, result::OK));
    }
    let long = |at: usize| u64::from_le_bytes(ran.state[at..at + 8].try_into().unwrap());
    assert_eq!([long(128), long(136), long(144)], [0, 3, 1 << 32 | 10]);
}

#[test]
fn a_counter_that_an_entry_does_not_have_is_refused() {
    let mut rig = Rig::new(&[]);
    rig.program(0, async |a| {
        let request = a.request(&a.alloc(&[1; 8]), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    rig.program(1, async |b| {
        // Each command's result goes to a word of the state. The put requests that its send is counted.
        let mut body = Code::enter();
        for (i, number) in [number::CT_GET, number::CT_INC, number::CT_SET].into_iter().enumerate() {
            body = body.at(A0, 64).small(A1, 0).command(number).with(&[sw(A0, 4 * i as i32, S0)]);
        }
        let body =
            body.at(A0, 0).small(A1, 8).at(A2, 64).command(number::PUT_FROM_DEVICE).with(&[sw(A0, 12, S0)]);
        let mut state = vec![0; 64];
        state.extend(put(9, 0, 0, true));
        let memory = b.alloc(&[0; 64]);
        b.append_with(entry(&memory, 5), &payload(body.publish(16).returns(0)), &state).await.unwrap();
        b.event(EventKind::Put).await;
        assert_eq!([0, 4, 8, 12].map(|at| word(&b.read(&memory), at)), [result::ARG_INVALID; 4]);
    });
    rig.run();
}

#[test]
fn a_handler_fires_a_triggered_put() {
    let mut rig = Rig::new(&["host.post=0 ns", "host.notice=0 ns"]);
    rig.program(0, async |a| {
        let (out, back) = (a.alloc(&[1; 8]), a.alloc(&[0; 8]));
        a.append(counted(&back, 9, a.ct)).await.unwrap();
        let request = a.request(&out, 5);
        a.start().await;
        a.put(&request).await.unwrap();
        a.count(a.ct, 1).await.unwrap();
        // In ns: bus 250, link 33.56 and match 30. The handler's four instructions mv, li, li, li precede CTInc, at
        // cycle 4. Then fetch, link, match, deposit and count.
        let fired = 250_000 + 33_560 + 30_000 + 4 * 400;
        assert_eq!(a.sim.now(), after(fired + 500_000 + 33_560 + 30_000 + 250_125));
        assert_eq!(a.read(&back), [8; 8]);
    });
    rig.program(1, async |b| {
        let (memory, answer) = (b.alloc(&[0; 8]), b.alloc(&[8; 8]));
        let body = Code::enter().small(A0, 1).small(A1, 0).command(number::CT_INC).spin(1000).returns(0);
        let me = Me { ct: Some(b.ct), ..entry(&memory, 5) };
        b.append_with(me, &payload(body), &[]).await.unwrap();
        b.triggered_put(b.request(&answer, 9), b.ct, 1).await.unwrap();
    });
    rig.run();
    assert_eq!(rig.failures(), []);
}

#[test]
fn a_put_from_host_memory_fetches_any_size() {
    let mut rig = Rig::new(&["host.post=0 ns", "host.notice=0 ns"]);
    rig.program(0, async |a| {
        let (out, back) = (a.alloc(&[1; 8]), a.alloc(&[0; 20_000]));
        a.append(entry(&back, 9)).await.unwrap();
        let request = a.request(&out, 5);
        a.start().await;
        a.put(&request).await.unwrap();
        let event = a.event(EventKind::Put).await;
        assert_eq!((event.rlength, event.hdr_data, event.remote_offset), (10_000, 0xabcd, 16));
        assert_eq!(a.read(&back)[16..10_016], pattern(20_000, 4)[100..10_100]);
        // In ns: the command is issued at cycle 7, and the fetch takes 500. The first packet takes 81.92 + 33.4 on the
        // link and 30 to match. Then the bus is busy with deposits of 63.898, 63.898 and 28.205. The event takes 250.
        let given = 250_000 + 33_560 + 30_000 + 7 * 400;
        assert_eq!(a.sim.now(), after(given + 500_000 + 115_320 + 30_000 + 2 * 63_898 + 28_205 + 250_000));
    });
    rig.program(1, async |b| {
        let memory = b.alloc(&pattern(20_000, 4));
        // The instructions mv, li, lui and addi, addi and li precede the ecall. With the nop, the ecall is at cycle 7.
        let body = Code::enter()
            .small(A0, 100)
            .set(A1, 10_000)
            .at(A2, 0)
            .with(&[nop()])
            .command(number::PUT_FROM_HOST);
        b.append_with(entry(&memory, 5), &payload(body.returns(0)), &put(9, 0, 16, false)).await.unwrap();
    });
    rig.run();
    assert_eq!(rig.failures(), []);
}

#[test]
fn handlers_count_their_sends() {
    // The echo's put is counted when its last byte has been handed to the link.
    let mut rig = Rig::new(&["host.post=0 ns", "host.notice=0 ns"]);
    rig.program(0, async |a| {
        a.append(entry(&a.alloc(&[0; 8]), 9)).await.unwrap();
        let request = a.request(&a.alloc(&[1; 8]), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    rig.program(1, async |b| {
        let memory = b.alloc(&[0; 8]);
        let me = Me { ct: Some(b.ct), ..entry(&memory, 5) };
        b.append_with(me, &payload(echo()), &put(9, 0, 0, true)).await.unwrap();
        b.start().await;
        b.count(b.ct, 1).await.unwrap();
        assert_eq!(b.sim.now(), after(250_000 + 33_560 + 30_000 + 2_000 + 160 + 250_000));
    });
    rig.run();
    assert_eq!(rig.failures(), []);
}

#[test]
fn a_yield_takes_no_time() {
    let body = Code::enter().timed(number::YIELD, 0);
    assert_eq!(waited(&run(&[], body, &[]).state, 0), (0, result::OK));
}
