//! Channels from processes of a host to its card. The package `go/nicety` makes the calls, and the commands of `nicety::commands`
//! execute them.
//!
//! - `codes.rs`: numbers of `shim/channels.h`;
//! - `calls.rs`: the calls.
//!
//! A goroutine is a thread of the host's program. One goroutine runs at a time: the reply to its call lets it run until its next
//! call. So the simulation determines the order in which goroutines change shared state.

mod calls;
mod codes;

use crate::pages;
use crate::protocol::Call;
use crate::protocol::WORDS;
use crate::turns::{Next, Turns};
use codes::{code, op};
use nicety::commands::{Api, Loaded, Program, Setup};
use nicety::{Duration, Error, Host, Thread};
use nicety_kernel::{Either, Signal, race};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

type Words = [u64; WORDS];

/// The transfers of a process that uses channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) sends: u64,
    pub(crate) bytes: u64,
    pub(crate) receives: u64,
    /// Calls, except the first.
    pub(crate) calls: u64,
}

/// The goroutines of one process.
pub(crate) struct Goroutines {
    host: Host,
    turns: Rc<Turns>,
    rank: u32,
    program: Program,
    /// Goroutines that no call has waited for yet.
    threads: RefCell<BTreeMap<u64, Thread<()>>>,
    started: Cell<u64>,
    /// Free host buffers for indirect messages. The key is the logarithm of the buffer's length in pages.
    free: RefCell<BTreeMap<u32, Vec<u32>>>,
    failed: RefCell<Option<Error>>,
    /// The signal of a failed goroutine.
    failure: Signal,
    moved: Cell<Moved>,
}

/// A reply to a call.
struct Reply {
    code: i64,
    reason: String,
    words: Words,
}

const WELL: Reply = Reply { code: 0, reason: String::new(), words: [0; WORDS] };

fn written_over() -> Error {
    Error::Program(
        "the process made a call of another interface, or overwrote memory that it shares with the \
         simulation; a program with go/nicety makes calls only by go/nicety"
            .to_owned(),
    )
}

impl Goroutines {
    pub(crate) fn new(host: &Host, turns: &Rc<Turns>) -> Rc<Goroutines> {
        Rc::new(Goroutines {
            host: host.clone(),
            turns: turns.clone(),
            rank: host.rank(),
            program: Program::new(host.clone(), Loaded::default()),
            threads: RefCell::default(),
            started: Cell::new(0),
            free: RefCell::default(),
            failed: RefCell::default(),
            failure: host.signal(),
            moved: Cell::default(),
        })
    }

    pub(crate) fn moved(&self) -> Moved {
        self.moved.get()
    }

    /// Serves the calls of a process, from its first call until its last goroutine has ended.
    pub(crate) async fn serve(self: Rc<Self>, first: u32) -> Result<(), Error> {
        if first != op::OPEN {
            return Err(written_over());
        }
        self.program.set_up(Setup::Has(Api::Channels))?;
        let main = self.clone().goroutine(self.host.clone(), 0);
        let failure = self.failure.wait_until(|| self.failed.borrow().is_some());
        match race(failure, main).await {
            Either::Left(()) => self.failed.take().map_or(Ok(()), Err),
            Either::Right(ended) => ended,
        }
    }

    /// Serves the calls of a goroutine until it ends.
    async fn goroutine(self: Rc<Self>, host: Host, number: u64) -> Result<(), Error> {
        let mut reply = WELL;
        loop {
            let (op, mut words, spent_ps) = self.resume(number, &reply)?;
            if spent_ps > 0 {
                host.compute(Duration::from_ps(spent_ps)).await;
            }
            let mut moved = self.moved.get();
            moved.calls += 1;
            self.moved.set(moved);
            if op == op::END {
                if number == 0 {
                    self.end().await?;
                }
                return Ok(());
            }
            reply = match self.carry_out(&host, op, &mut words).await.map_err(code) {
                Ok(()) => Reply { words, ..WELL },
                Err(told) => {
                    let (code, reason) = told?;
                    Reply { code, reason, ..WELL }
                }
            };
        }
    }

    /// Lets a goroutine run until its next call. Returns the call, its words, and the CPU time that the goroutine took before it.
    fn resume(&self, number: u64, reply: &Reply) -> Result<(u32, Words, u64), Error> {
        self.reply(number, reply);
        match self.turns.next(self.rank)? {
            Next::Call(Call::Channels(op), spent_ps) => Ok((op, self.turns.pages.words(self.rank), spent_ps)),
            _ => Err(written_over()),
        }
    }

    fn reply(&self, number: u64, reply: &Reply) {
        let mut words = reply.words;
        words[WORDS - 1] = number;
        self.turns.pages.set_words(self.rank, &words);
        self.turns.pages.set_reason(self.rank, &reply.reason);
        let told = pages::Reply { now_ps: self.host.now().ps(), result: reply.code, ..Default::default() };
        self.turns.reply(self.rank, &told);
    }

    /// Starts a goroutine. It runs as soon as its starter waits in a call that takes virtual time.
    fn start(self: &Rc<Self>) -> u64 {
        let number = self.started.get() + 1;
        self.started.set(number);
        let own = self.clone();
        let thread = self.host.spawn(move |host| async move {
            if let Err(error) = own.clone().goroutine(host, number).await {
                own.failed.borrow_mut().get_or_insert(error);
                own.failure.notify_all();
            }
            Ok(())
        });
        self.threads.borrow_mut().insert(number, thread);
        number
    }

    /// Ends the first goroutine. When all other goroutines have ended, the process ends.
    async fn end(&self) -> Result<(), Error> {
        let first = || self.threads.borrow_mut().pop_first();
        while let Some((_, thread)) = first() {
            thread.join().await?;
        }
        self.reply(0, &WELL);
        Ok(())
    }
}
