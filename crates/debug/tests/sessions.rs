//! Stops, steps, changes and ways back, on a card with handlers in hand-assembled code.

use crate::client::{Client, bytes};
use crate::support::code::{Code, program_for};
use crate::support::{Rig, entry, spec};
use nicety_debug::{End, Listener, Session};
use nicety_fabric::Faults;
use nicety_hpu::asm::*;
use nicety_kernel::Config;
use nicety_nic_processors::map;
use nicety_types::Recorder;
use proptest::prelude::*;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Two cores, and packets of 8 bytes that arrive at once.
const CARD: [&str; 8] = [
    "packet.payload=8 B",
    "link.gap=1 ps/B",
    "match.first=0 ns",
    "match.further=0 ns",
    "send.gap=0 ns",
    "hpu.cores=2",
    "memory.state=l1",
    "hpu.stack=4 KiB",
];

/// The result of a session.
struct Seen {
    end: End,
    /// The runs of the simulation.
    runs: usize,
    /// The state of the handlers after the last run.
    state: Vec<u8>,
}

/// The first word of a core's instructions: it counts packets, and adds the first byte of each to a sum.
fn counter() -> Code {
    Code::enter()
        .with(&[lw(T0, 0, A0), lbu(T1, 0, T0)])
        .with(&[addi(T2, ZERO, 1), amoadd_w(ZERO, T2, S0)])
        .with(&[addi(T2, S0, 4), amoadd_w(ZERO, T1, T2)])
        .returns(0)
}

/// The address of an instruction.
fn at(index: u32) -> u32 {
    map::CODE + 4 * index
}

/// Lets a client debug a message of `packets` packets.
fn debug(
    keys: &[&str],
    code: Code,
    packets: usize,
    client: impl FnOnce(&mut Client) + Send + 'static,
) -> Seen {
    let listener = Listener::open(0).unwrap();
    let port = listener.port();
    assert_ne!(port, 0);
    let client = thread::spawn(move || client(&mut Client::connect(port)));
    let session = Rc::new(Session::new(Box::new(|| false)));
    let all: Vec<&str> = CARD.iter().chain(keys).copied().collect();
    simulate(&all, &code, packets, &session);
    assert!(session.repeats(), "no handler ran");
    session.connect(listener.accept(&|| false).unwrap().unwrap());
    let (mut runs, mut state);
    runs = 0;
    loop {
        runs += 1;
        assert!(runs < 100, "the session does not end");
        state = simulate(&all, &code, packets, &session);
        if !session.repeats() {
            break;
        }
    }
    let (end, _) = session.finish(0);
    drop(session);
    if let Err(panic) = client.join() {
        std::panic::resume_unwind(panic);
    }
    Seen { end, runs, state }
}

/// Makes one run. It ends early when the session wants so.
fn simulate(keys: &[&str], code: &Code, packets: usize, session: &Rc<Session>) -> Vec<u8> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let interrupt = nicety_kernel::Interrupt::new(move || flag.load(Ordering::Relaxed));
    let config = Config { interrupt: Some(interrupt), ..Config::default() };
    let mut rig = Rig::recorded(keys, config, &Faults::default(), [Recorder::off(), Recorder::off()]);
    let handlers = program_for(spec(keys).hpu.core, None, Some(code.clone()), None);
    rig.program(0, async move |a| {
        let payload: Vec<u8> = (0..packets).flat_map(|packet| [packet as u8 + 1; 8]).collect();
        let request = a.request(&a.alloc(&payload), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    rig.program(1, async move |b| {
        let memory = b.alloc(&vec![0; 8 * packets]);
        b.append_with(entry(&memory, 5), &handlers, &[0; 64]).await.unwrap();
    });
    let card = rig.nodes[1].card.clone();
    session.begins(stop);
    card.processors().observed_by(session.clone());
    let _ = rig.try_run();
    let [state, _] = card.processors().shared_bytes();
    state
}

fn word(state: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*state[at..].first_chunk().unwrap())
}

#[test]
fn a_session_begins_at_the_first_instruction_and_ends_with_the_run() {
    let seen = debug(&[], counter(), 3, |client| {
        assert!(client.ask("qSupported:multiprocess+;swbreak+").contains("ReverseStep+"));
        assert!(client.ask("?").starts_with('T') || client.ask("?").starts_with('S'));
        assert_eq!(client.pc(), at(0));
        assert_eq!(client.register(11), map::STATE, "a1");
        assert_eq!(client.ask("vCont;c"), "W00");
    });
    assert_eq!((seen.end, seen.runs), (End::Complete, 1));
    assert_eq!((word(&seen.state, 0), word(&seen.state, 4)), (3, 1 + 2 + 3));
}

#[test]
fn breakpoints_stop_every_core() {
    debug(&[], counter(), 4, |client| {
        client.ask("?");
        assert_eq!(client.ask(&format!("Z0,{:x},4", at(3))), "OK");
        let mut threads = Vec::new();
        for packet in 1..=4 {
            let stop = client.ask("vCont;c");
            assert!(stop.starts_with("T05") && stop.contains("swbreak"), "{stop}");
            threads.push(stop.split("thread:").nth(1).unwrap().split(';').next().unwrap().to_owned());
            assert_eq!(client.pc(), at(3));
            // The first byte of the packet is in t1.
            assert_eq!(client.register(6), packet);
        }
        threads.sort_unstable();
        threads.dedup();
        assert_eq!(threads.len(), 2, "both cores: {threads:?}");
        assert_eq!(client.ask(&format!("z0,{:x},4", at(3))), "OK");
        assert_eq!(client.ask("vCont;c"), "W00");
    });
}

#[test]
fn a_step_is_one_instruction() {
    debug(&[], counter(), 1, |client| {
        client.ask("?");
        for instruction in 1..8 {
            assert!(client.ask("vCont;s:1").starts_with("T05"));
            assert_eq!(client.pc(), at(instruction));
        }
        assert_eq!(client.word(map::STATE), 1);
        // A range of addresses is left in one step.
        assert_eq!(client.ask("vCont;c"), "W00");
    });
    debug(&[], counter(), 1, |client| {
        client.ask("?");
        assert!(client.ask(&format!("vCont;r{:x},{:x}:1", at(0), at(4))).starts_with("T05"));
        assert_eq!(client.pc(), at(4));
        client.ask("vCont;c");
    });
}

#[test]
fn watchpoints_stop_behind_an_access() {
    debug(&[], counter(), 2, |client| {
        client.ask("?");
        assert_eq!(client.ask(&format!("Z2,{:x},4", map::STATE + 4)), "OK");
        let stop = client.ask("vCont;c");
        assert!(stop.contains(&format!("watch:{:x}", map::STATE + 4)), "{stop}");
        assert_eq!((client.pc(), client.word(map::STATE + 4)), (at(7), 1));
        let stop = client.ask("vCont;c");
        assert!(stop.contains("watch:"), "{stop}");
        assert_eq!(client.word(map::STATE + 4), 3);
        assert_eq!(client.ask("vCont;c"), "W00");
    });
}

/// Returns the thread of a stop.
fn thread_of(stop: &str) -> &str {
    let mut parts = stop.split([';', ':']).skip_while(|part| !part.ends_with("thread"));
    parts.nth(1).unwrap_or_else(|| panic!("no thread: {stop}"))
}

/// Steps a thread alone from an instruction to the next one, as GDB does: by a breakpoint behind it.
fn step_alone(client: &mut Client, thread: &str, next: u32) -> String {
    assert_eq!(client.ask(&format!("Z0,{next:x},4")), "OK");
    let stop = client.ask(&format!("vCont;c:{thread}"));
    assert_eq!(client.ask(&format!("z0,{next:x},4")), "OK");
    stop
}

#[test]
fn a_watchpoint_of_another_core_is_reported_behind_a_step() {
    debug(&[], counter(), 2, |client| {
        client.ask("qSupported:multiprocess+;swbreak+");
        client.ask("?");
        client.ask(&format!("Z2,{:x},4", map::STATE + 4));
        let first = client.ask("vCont;c");
        assert!(first.contains("watch:"), "{first}");
        // The other core reaches the word during the step, from which GDB takes the watchpoint away.
        client.ask(&format!("z2,{:x},4", map::STATE + 4));
        let stepped = step_alone(client, thread_of(&first), at(8));
        assert_eq!(thread_of(&stepped), thread_of(&first), "{stepped}");
        assert!(!stepped.contains("watch"), "{stepped}");
        client.ask(&format!("Z2,{:x},4", map::STATE + 4));
        let second = client.ask("vCont;c");
        assert!(second.contains("watch:"), "{second}");
        assert_ne!(thread_of(&second), thread_of(&first));
        assert_eq!(client.word(map::STATE + 4), 3);
        assert_eq!(client.ask("vCont;c"), "W00");
    });
}

#[test]
fn a_breakpoint_of_another_core_is_reported_behind_a_step() {
    let seen = debug(&[], counter(), 2, |client| {
        client.ask("qSupported:multiprocess+;swbreak+");
        client.ask("?");
        client.ask(&format!("Z0,{:x},4", at(6)));
        let first = client.ask("vCont;c");
        client.ask(&format!("z0,{:x},4", at(6)));
        let stepped = step_alone(client, thread_of(&first), at(7));
        assert_eq!(thread_of(&stepped), thread_of(&first), "{stepped}");
        client.ask(&format!("Z0,{:x},4", at(6)));
        let second = client.ask("vCont;c");
        assert_ne!(thread_of(&second), thread_of(&first));
        assert_eq!(client.pc(), at(6));
        assert_eq!(client.ask("vCont;c"), "W00");
    });
    assert_eq!((word(&seen.state, 0), word(&seen.state, 4)), (2, 3));
}

#[test]
fn a_step_ends_with_its_handler() {
    debug(&[], counter(), 3, |client| {
        client.ask("qSupported:multiprocess+;swbreak+");
        client.ask("?");
        client.ask(&format!("Z0,{:x},4", at(8)));
        let first = client.ask("vCont;c");
        client.ask(&format!("z0,{:x},4", at(8)));
        let stepped = step_alone(client, thread_of(&first), 0xffff_fff0);
        assert_eq!(thread_of(&stepped), thread_of(&first), "{stepped}");
        assert_eq!(client.ask("vCont;c"), "W00");
    });
}

#[test]
fn a_stop_that_no_later_instruction_reports_takes_another_run() {
    // The handler of the first packet counts down, and ends long after the other one.
    let code = Code::enter()
        .with(&[lw(T0, 0, A0), lbu(T1, 0, T0), addi(T2, ZERO, 2), sub(T2, T2, T1), slli(T2, T2, 8)])
        .with(&[beq(T2, ZERO, 12), addi(T2, T2, -1), bne(T2, ZERO, -4)])
        .with(&[addi(T2, ZERO, 1), amoadd_w(ZERO, T2, S0)])
        .returns(0);
    let seen = debug(&[], code, 2, |client| {
        client.ask("qSupported:multiprocess+;swbreak+");
        client.ask("?");
        client.ask(&format!("Z0,{:x},4", at(3)));
        let first = client.ask("vCont;c");
        assert_eq!((client.pc(), client.register(6)), (at(3), 1));
        client.ask(&format!("z0,{:x},4", at(3)));
        // The other core passes the breakpoint in this step, and no instruction is behind the step.
        let stepped = step_alone(client, thread_of(&first), 0xffff_fff0);
        assert!(stepped.starts_with("T05") && !stepped.contains("swbreak"), "{stepped}");
        assert_eq!(thread_of(&stepped), thread_of(&first), "{stepped}");
        client.ask(&format!("Z0,{:x},4", at(3)));
        let second = client.ask("vCont;c");
        assert!(second.contains("swbreak"), "{second}");
        assert_ne!(thread_of(&second), thread_of(&first));
        assert_eq!((client.pc(), client.register(6)), (at(3), 2));
        assert_eq!(client.ask("vCont;c"), "W00");
    });
    assert_eq!((seen.end, seen.runs, word(&seen.state, 0)), (End::Complete, 3, 2));
}

#[test]
fn damaged_and_invalid_packets_keep_the_session() {
    let seen = debug(&[], counter(), 1, |client| {
        client.ask("?");
        client.send_bytes(b"$g#00");
        assert_eq!(client.acknowledgement(), '-');
        client.send_bytes(b"$g#zz");
        assert_eq!(client.acknowledgement(), '-');
        // Not commands at all, or with invalid arguments.
        for unknown in ["", "hello", "qUnknown:1", "vUnknown", "y1"] {
            assert_eq!(client.ask(unknown), "", "{unknown}");
        }
        for invalid in ["m", "m1c", "mxyz,4", "M0,4", "Z0,", "vCont;", "Hg", "G1"] {
            assert_eq!(client.ask(invalid), "E01", "{invalid}");
        }
        client.send(&"X".repeat(20_000));
        assert_eq!(client.receive().as_deref(), Some("E01"));
        let all = client.ask("g");
        client.send_bytes(b"-");
        assert_eq!(client.receive(), Some(all), "the answer again");
        assert_eq!(client.ask("QStartNoAckMode"), "OK");
        client.send_bytes(b"$g#00");
        assert_eq!(client.receive().as_deref(), Some("E01"), "it is not sent again");
        assert_eq!(client.pc(), at(0));
        assert_eq!(client.ask("vCont;c"), "W00");
    });
    assert_eq!((seen.end, seen.runs), (End::Complete, 1));
}

#[test]
fn registers_and_memory_can_be_changed() {
    let seen = debug(&[], counter(), 1, |client| {
        client.ask("?");
        client.ask(&format!("Z0,{:x},4", at(5)));
        client.ask("vCont;c");
        assert_eq!(client.ask(&format!("M{:x},4:64000000", map::STATE + 4)), "OK");
        let mut registers = client.ask("g");
        // t1 is 10.
        registers.replace_range(8 * 6..8 * 7, "0a000000");
        assert_eq!(client.ask(&format!("G{registers}")), "OK");
        assert_eq!(client.register(6), 10);
        assert_eq!(client.ask(&format!("M{:x},4:00000000", map::CODE)), "E0e", "code is read-only");
        assert_eq!(client.ask("m10,4"), "E0e", "there is no memory");
        assert_eq!(client.ask("vCont;c"), "W00");
    });
    assert_eq!((word(&seen.state, 0), word(&seen.state, 4)), (1, 110));
}

#[test]
fn a_step_back_undoes_an_instruction() {
    let seen = debug(&[], counter(), 3, |client| {
        client.ask("?");
        client.ask(&format!("Z0,{:x},4", at(7)));
        client.ask("vCont;c");
        let (sum, count) = (client.word(map::STATE + 4), client.word(map::STATE));
        assert!(client.ask("bs").starts_with("T05"));
        assert_eq!(client.pc(), at(6));
        let before = client.word(map::STATE + 4);
        assert!(before < sum, "{before} before {sum}");
        assert!(client.ask("bs").starts_with("T05"));
        assert_eq!((client.pc(), client.word(map::STATE + 4)), (at(5), before));
        // Forwards again, everything is as it was.
        assert!(client.ask("vCont;s:1").starts_with("T05"));
        assert!(client.ask("vCont;s:1").starts_with("T05"));
        assert_eq!((client.pc(), client.word(map::STATE + 4), client.word(map::STATE)), (at(7), sum, count));
        client.ask(&format!("z0,{:x},4", at(7)));
        assert_eq!(client.ask("vCont;c"), "W00");
    });
    assert_eq!(seen.runs, 3);
    assert_eq!((word(&seen.state, 0), word(&seen.state, 4)), (3, 6));
}

#[test]
fn a_continue_back_ends_at_the_last_breakpoint_or_the_beginning() {
    let seen = debug(&[], counter(), 4, |client| {
        client.ask("?");
        client.ask(&format!("Z0,{:x},4", at(3)));
        for _ in 0..3 {
            client.ask("vCont;c");
        }
        assert_eq!(client.register(6), 3);
        for packet in [2, 1] {
            let stop = client.ask("bc");
            assert!(stop.contains("swbreak"), "{stop}");
            assert_eq!((client.pc(), client.register(6)), (at(3), packet));
        }
        let stop = client.ask("bc");
        assert!(stop.contains("replaylog:begin"), "{stop}");
        assert_eq!(client.pc(), at(0));
        // There is nothing before.
        assert!(client.ask("bc").contains("replaylog:begin"));
        assert!(client.ask("bs").contains("replaylog:begin"));
        client.ask(&format!("z0,{:x},4", at(3)));
        assert_eq!(client.ask("vCont;c"), "W00");
    });
    assert_eq!((word(&seen.state, 0), word(&seen.state, 4)), (4, 10));
}

#[test]
fn changes_are_made_again_on_the_way_back() {
    let seen = debug(&[], counter(), 2, |client| {
        client.ask("?");
        assert_eq!(client.ask(&format!("M{:x},4:e8030000", map::STATE + 4)), "OK");
        client.ask(&format!("Z0,{:x},4", at(7)));
        client.ask("vCont;c");
        assert!(client.word(map::STATE + 4) > 1000);
        client.ask("bs");
        client.ask("bs");
        assert!(client.word(map::STATE + 4) >= 1000);
        client.ask(&format!("z0,{:x},4", at(7)));
        assert_eq!(client.ask("vCont;c"), "W00");
    });
    assert_eq!(word(&seen.state, 4), 1003);
}

#[test]
fn a_trap_stops_at_its_instruction() {
    let code = Code::enter().with(&[addi(T0, ZERO, 4), lw(T1, 0, T0)]).returns(0);
    debug(&[], code, 1, |client| {
        client.ask("?");
        let stop = client.ask("vCont;c");
        assert!(stop.starts_with("T0b"), "SIGSEGV: {stop}");
        assert_eq!((client.pc(), client.register(5)), (at(2), 4));
        let text = client.monitor("cores");
        assert!(text.contains("load of 4 bytes from 0x4"), "{text}");
        assert_eq!(client.ask(&format!("M{:x},4:00000000", map::STATE)), "E0e", "the handler has ended");
        assert!(client.ask("bs").starts_with("T05"));
        assert_eq!(client.pc(), at(1));
        client.ask("vCont;c");
        client.send("vCont;c");
        client.receive();
    });
}

#[test]
fn commands_show_packets_cores_memory_and_time() {
    debug(&[], counter(), 2, |client| {
        client.ask("?");
        let packet = client.monitor("packet");
        let [first, second, third] = packet.lines().collect::<Vec<_>>()[..] else { panic!("{packet}") };
        assert!(first.starts_with("core 0: payload handler, run 1, message "), "{first}");
        assert_eq!(second, "8 bytes at 0x1c400000 to 0x1c400008");
        assert_eq!(third.split_whitespace().nth(1), Some("01"));
        assert!(client.monitor("cores").contains("core 0 (thread 1): payload handler, run 1"));
        assert!(client.monitor("memory").contains("the state"));
        assert!(client.monitor("time").ends_with("ns, instruction 0\n"));
        assert!(client.monitor("help").contains("packet [N]"));
        assert!(client.monitor("halt").starts_with("monitor halt: no such command"));
        client.ask("vCont;c");
    });
}

#[test]
fn wide_cores_have_wide_registers() {
    let keys = ["hpu.isa=rv64imac_zicsr_zifencei"];
    debug(&keys, Code::enter().with(&[addi(T0, ZERO, -1)]).returns(0), 1, |client| {
        client.ask("?");
        let xml = client.ask("qXfer:features:read:target.xml:0,1000");
        assert!(xml.contains("riscv:rv64") && !xml.contains("fpu"), "{xml}");
        client.ask("vCont;s:1");
        client.ask("vCont;s:1");
        let registers = bytes(&client.ask("g"));
        assert_eq!(registers.len(), 33 * 8);
        assert_eq!(registers[8 * 5..8 * 6], [0xff; 8]);
        client.ask("vCont;c");
    });
}

#[test]
fn a_debugger_that_goes_away_lets_the_run_end() {
    let detached = debug(&[], counter(), 3, |client| {
        client.ask("?");
        assert_eq!(client.ask("D"), "OK");
    });
    assert_eq!((detached.end, word(&detached.state, 0)), (End::Complete, 3));
    let lost = debug(&[], counter(), 3, |client| {
        client.ask("?");
    });
    assert!(matches!(lost.end, End::Lost(_)), "{:?}", lost.end);
    assert_eq!(word(&lost.state, 0), 3);
    let killed = debug(&[], Code::enter().spin(1_000_000).returns(0), 3, |client| {
        client.ask("?");
        client.send("k");
    });
    assert_eq!(killed.end, End::Killed);
}

#[test]
fn an_interrupt_stops_a_long_run() {
    debug(&["hpu.cycle_limit=1000000000"], Code::enter().spin(10_000_000).returns(0), 1, |client| {
        client.ask("?");
        client.send("vCont;c");
        client.interrupt();
        let stop = client.receive().unwrap();
        assert!(stop.starts_with("T02"), "SIGINT: {stop}");
        client.send("k");
    });
}

#[test]
fn a_port_in_use_is_named() {
    let listener = Listener::open(0).unwrap();
    let port = listener.port();
    assert_eq!(
        Listener::open(port).unwrap_err().to_string(),
        format!("port {port} is in use; choose another with --port, or a free one with --port 0")
    );
    assert!(listener.accept(&|| true).unwrap().is_none());
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(30))]

    /// Packets with any arguments, and any bytes between them, are answered or refused. None ends the session.
    #[test]
    fn any_packets_end_the_session_in_an_orderly_way(
        packets in prop::collection::vec((packet(), prop::collection::vec(any::<u8>(), 0..8)), 1..12),
    ) {
        let seen = debug(&[], counter(), 2, move |client| {
            for (packet, bytes) in &packets {
                client.send_bytes(bytes);
                client.try_send(packet);
            }
            client.try_send("k");
            while client.receive().is_some() {}
        });
        prop_assert!(matches!(seen.end, End::Complete | End::Killed), "{:?}", seen.end);
    }
}

/// A packet of GDB with random arguments, mostly valid.
fn packet() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        Just(map::STATE.into()),
        Just(u64::from(map::CODE) + 8),
        Just(u64::from(map::STACK) + 4090),
        Just(u64::MAX),
        0..20u64,
        any::<u64>(),
    ];
    let kinds = prop::sample::select(vec![
        "?",
        "g",
        "m",
        "M",
        "X",
        "Z0",
        "Z2",
        "Z3",
        "Z4",
        "z0",
        "z2",
        "G",
        "Hg",
        "T",
        "vCont;s:",
        "vCont;c",
        "bs",
        "bc",
        "qRcmd,",
        "qXfer:features:read:target.xml:",
        "qThreadExtraInfo,",
        "vCont;r",
        "!",
        "D",
    ]);
    (kinds, number.clone(), number, prop::collection::vec(any::<u8>(), 0..12)).prop_map(
        |(kind, a, b, bytes)| {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            match kind {
                "m" | "qXfer:features:read:target.xml:" => format!("{kind}{a:x},{b:x}"),
                "M" => format!("M{a:x},{:x}:{hex}", bytes.len()),
                "X" => format!("X{a:x},{b:x}:"),
                "Z0" | "Z2" | "Z3" | "Z4" | "z0" | "z2" => format!("{kind},{a:x},{b:x}"),
                "G" | "qRcmd," => format!("{kind}{hex}"),
                "Hg" | "T" | "qThreadExtraInfo," => format!("{kind}{:x}", a % 40),
                "vCont;s:" => format!("vCont;s:{:x};c", a % 4),
                "vCont;r" => format!("vCont;r{a:x},{b:x}:1;c"),
                _ => kind.to_owned(),
            }
        },
    )
}
