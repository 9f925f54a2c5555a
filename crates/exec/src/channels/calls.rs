//! Calls of goroutines on channels.

use super::codes::{ALTERNATIVES, ARGUMENTS, DIRECT, op};
use super::{Goroutines, Words};
use crate::memory;
use crate::protocol::ANY;
use nicety::commands::{Call, ChannelCall, Outcome, Part, ProcessCall, ProcessSetup, Setup, Wanted};
use nicety::{CardMemory, Duration, Error, Host, MemoryKind};
use std::rc::Rc;

/// The card that goroutines reach: the first one of the host.
const CARD: u32 = 0;

/// Maximum bytes of process memory in a call. No memory of a card is larger.
const MOST_BYTES: u64 = 1 << 30;
/// Bytes of a page of a host.
const PAGE: u64 = 4096;
/// The number of words of one alternative in a selection.
const ALTERNATIVE: usize = 3;

/// Memory of the process, and the host buffer that a card uses for an indirect message. The buffer starts at a page boundary. So
/// the virtual time of the message does not depend on its address in the process.
struct Place {
    part: Part,
    class: u32,
    address: u64,
}

impl Goroutines {
    /// Executes a call of a goroutine. `words` are the arguments, and then the results.
    pub(super) async fn carry_out(
        self: &Rc<Self>,
        host: &Host,
        op: u32,
        words: &mut Words,
    ) -> Result<(), Error> {
        match op {
            op::LOAD => {
                let [elf, bytes, ..] = *words;
                words[0] = self.set_up(ProcessSetup::Load { elf: self.read(elf, bytes)? })?;
            }
            op::START => words[0] = self.set_up(self.start_of(words)?)?,
            op::FINISHED => {
                let [process, ..] = *words;
                words[0] = number(
                    self.program
                        .call(host, Call::Processes { card: CARD, call: ProcessCall::Finished { process } })
                        .await?,
                );
            }
            op::MEMORY => words[0] = self.set_up(ProcessSetup::CardMemory { part: card_memory(words)? })?,
            op::READ => {
                let [_, _, _, _, into, ..] = *words;
                let read = ProcessSetup::ReadCard { part: card_memory(words)? };
                match self.program.set_up(Setup::Processes { card: CARD, setup: read })? {
                    Outcome::Bytes(bytes) => self.write(into, &bytes)?,
                    _ => unreachable!("the outcome of a read"),
                }
            }
            op::WRITE => {
                let [_, _, _, bytes, from, ..] = *words;
                let part = card_memory(words)?;
                let contents = self.read(from, bytes)?;
                let setup = ProcessSetup::WriteCard { part, contents };
                self.program.set_up(Setup::Processes { card: CARD, setup })?;
            }
            op::GO => words[0] = self.start(),
            op::JOIN => {
                let [goroutine, ..] = *words;
                let thread = self.threads.borrow_mut().remove(&goroutine);
                let thread = thread.ok_or_else(|| {
                    Error::Program(format!("another goroutine already waits for goroutine {goroutine}"))
                })?;
                thread.join().await?;
            }
            op::COMPUTE => host.compute(Duration::from_ps(words[0])).await,
            op::SLEEP => host.pause(Duration::from_ps(words[0])).await,
            op::BARRIER => host.barrier().await,
            _ => self.channel(host, op, words).await?,
        }
        Ok(())
    }

    /// Returns the process to start on the card, from the words of a call.
    fn start_of(&self, words: &Words) -> Result<ProcessSetup, Error> {
        let [processes, name, name_bytes, microengine, context, contexts, count, ..] = *words;
        let name = String::from_utf8(self.read(name, name_bytes)?)
            .map_err(|_| Error::Input("the function's name is not UTF-8".to_owned()))?;
        let arguments = words.get(7..7 + count.min(ARGUMENTS as u64 + 1) as usize);
        let arguments = arguments.expect("there are more words");
        Ok(ProcessSetup::Start {
            processes,
            name,
            microengine: word(microengine, "a microengine")?,
            context: word(context, "a context")?,
            contexts: (contexts != ANY).then(|| word(contexts, "a number of contexts")).transpose()?,
            arguments: arguments.iter().map(|argument| *argument as u32).collect(),
        })
    }

    /// Executes a call on channels.
    async fn channel(&self, host: &Host, op: u32, words: &mut Words) -> Result<(), Error> {
        let [channel, timeout_ps, bytes, address, ..] = *words;
        let timeout = limit(timeout_ps);
        let mut moved = (0, 0);
        match op {
            op::SUBSCRIBE => {
                let call = ChannelCall::Subscribe { target: word(channel, "a target")? };
                words[0] = number(self.call(host, call).await?);
            }
            op::CLOSE => drop(self.call(host, ChannelCall::Close { channel }).await?),
            op::SEND => {
                let contents = direct(words, bytes)?;
                self.call(host, ChannelCall::Send { channel, contents, timeout }).await?;
                moved = (1, bytes);
            }
            op::RECEIVE => {
                let wanted = word(bytes, "a length")?;
                match self.call(host, ChannelCall::Receive { channel, bytes: wanted, timeout }).await? {
                    Outcome::Bytes(contents) => set_contents(words, &contents),
                    _ => unreachable!("the outcome of a receive"),
                }
            }
            op::SEND_IND => {
                let contents = self.read(address, bytes)?;
                let place = self.place(address, bytes)?;
                self.with(&place, |there| there.write(0, &contents))?;
                let call = ChannelCall::SendInd { channel, part: place.part, timeout };
                let sent = self.call(host, call).await;
                self.give_back(place);
                sent?;
                moved = (1, bytes);
            }
            op::RECEIVE_IND => {
                let place = self.place(address, bytes)?;
                let call = ChannelCall::ReceiveInd { channel, part: place.part, timeout };
                let received = self.call(host, call).await;
                self.bring(place, received.is_ok())?;
                received?;
            }
            op::SELECT => self.select(host, words).await?,
            _ => {
                let text = format!("there is no call {op}: the process has another version of go/nicety");
                return Err(Error::Program(text));
            }
        }
        let mut all = self.moved.get();
        all.sends += moved.0;
        all.bytes += moved.1;
        all.receives += u64::from(matches!(op, op::RECEIVE | op::RECEIVE_IND | op::SELECT));
        self.moved.set(all);
        Ok(())
    }

    async fn select(&self, host: &Host, words: &mut Words) -> Result<(), Error> {
        let [address, count, timeout_ps, ..] = *words;
        if count > ALTERNATIVES {
            return Err(Error::Input(format!(
                "a selection of {count} alternatives; the maximum is {ALTERNATIVES}"
            )));
        }
        let given = self.read(address, count * ALTERNATIVE as u64 * 8)?;
        let (mut alternatives, mut places) = (Vec::new(), Vec::new());
        for each in given.chunks_exact(8 * ALTERNATIVE) {
            let word_of = |at: usize| u64::from_le_bytes(each[8 * at..8 * at + 8].try_into().expect("eight"));
            let [channel, bytes, address] = [0, 1, 2].map(word_of);
            if address == 0 {
                alternatives.push(Wanted::Direct { channel, bytes: word(bytes, "a length")? });
                places.push(None);
            } else {
                let place = self.place(address, bytes)?;
                alternatives.push(Wanted::Indirect { channel, part: place.part });
                places.push(Some(place));
            }
        }
        let call = ChannelCall::Select { alternatives, timeout: limit(timeout_ps) };
        let selected = self.call(host, call).await;
        let chosen = match &selected {
            Ok(Outcome::Selected(index, contents)) => {
                set_contents(words, contents);
                words[0] = u64::from(*index);
                Some(*index as usize)
            }
            _ => None,
        };
        for (at, place) in places.into_iter().enumerate() {
            if let Some(place) = place {
                self.bring(place, chosen == Some(at))?;
            }
        }
        selected.map(drop)
    }

    async fn call(&self, host: &Host, call: ChannelCall) -> Result<Outcome, Error> {
        self.program.call(host, Call::Channels { card: CARD, call }).await
    }

    fn set_up(&self, setup: ProcessSetup) -> Result<u64, Error> {
        self.program.set_up(Setup::Processes { card: CARD, setup }).map(number)
    }

    fn process(&self) -> Result<u32, Error> {
        let none = || Error::Program(format!("rank {} has no process", self.rank));
        self.turns.pages.process(self.rank).ok_or_else(none)
    }

    /// Reads bytes from the memory of the process.
    fn read(&self, address: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        if bytes > MOST_BYTES {
            return Err(Error::Input(format!("{bytes} bytes in one call; the maximum is {MOST_BYTES}")));
        }
        let mut read = vec![0; bytes as usize];
        memory::read(self.process()?, address, &mut read)
            .map_err(|error| self.turns.unreachable(self.rank, "", (address, bytes), &error))?;
        Ok(read)
    }

    fn write(&self, address: u64, contents: &[u8]) -> Result<(), Error> {
        memory::write(self.process()?, address, contents)
            .map_err(|error| self.turns.unreachable(self.rank, "", (address, contents.len() as u64), &error))
    }

    /// Returns a host buffer for `bytes` bytes at an address of the process.
    fn place(&self, address: u64, bytes: u64) -> Result<Place, Error> {
        if bytes > MOST_BYTES {
            return Err(Error::Input(format!("a message of {bytes} bytes; the maximum is {MOST_BYTES}")));
        }
        let class = bytes.div_ceil(PAGE).max(1).next_power_of_two().ilog2();
        let free = self.free.borrow_mut().get_mut(&class).and_then(Vec::pop);
        let buffer = match free {
            Some(buffer) => buffer,
            None => match self.program.set_up(Setup::Alloc { bytes: PAGE << class })? {
                Outcome::Buffer { number, .. } => number,
                _ => unreachable!("the outcome of an allocation"),
            },
        };
        Ok(Place { part: Part { buffer, offset: 0, bytes }, class, address })
    }

    fn with<T>(&self, place: &Place, look: impl FnOnce(&nicety::HostBytes) -> T) -> Result<T, Error> {
        let bytes = self.program.memory(place.part.buffer)?;
        Ok(look(&bytes.expect("buffers for messages have bytes")))
    }

    fn give_back(&self, place: Place) {
        self.free.borrow_mut().entry(place.class).or_default().push(place.part.buffer);
    }

    /// Copies received bytes into the process, if a message has arrived.
    fn bring(&self, place: Place, has_come: bool) -> Result<(), Error> {
        if has_come {
            let mut contents = vec![0; place.part.bytes as usize];
            self.with(&place, |there| there.read(0, &mut contents))?;
            self.write(place.address, &contents)?;
        }
        self.give_back(place);
        Ok(())
    }
}

/// Returns the part of the card's memory that the words of a call describe.
fn card_memory(words: &Words) -> Result<CardMemory, Error> {
    let [kind, island, offset, bytes, ..] = *words;
    let kind = usize::try_from(kind).ok().and_then(|kind| MemoryKind::ALL.get(kind));
    Ok(CardMemory {
        kind: *kind.ok_or_else(|| {
            Error::Input("the card has no such memory; its memories are CLS, CTM, IMEM and EMEM".to_owned())
        })?,
        // An island number that is too large for its type does not exist either.
        island: usize::try_from(island).unwrap_or(usize::MAX),
        offset: word(offset, "an offset")?,
        bytes: word(bytes, "a length")?,
    })
}

fn word(value: u64, what: &str) -> Result<u32, Error> {
    u32::try_from(value).map_err(|_| Error::Input(format!("{what} is a number below 2^32, not {value}")))
}

fn number(outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Word(number) => number,
        _ => unreachable!("the outcome of what is numbered"),
    }
}

fn limit(ps: u64) -> Option<Duration> {
    (ps != ANY).then(|| Duration::from_ps(ps))
}

/// Returns the contents of a direct message from the words of a call.
fn direct(words: &Words, bytes: u64) -> Result<Vec<u8>, Error> {
    if bytes > DIRECT as u64 {
        return Err(Error::Input(format!(
            "a direct message of {bytes} bytes; it has 1 to {DIRECT}; send longer messages by SendInd"
        )));
    }
    let mut contents: Vec<u8> = words[3..3 + DIRECT / 8].iter().flat_map(|word| word.to_le_bytes()).collect();
    contents.truncate(bytes as usize);
    Ok(contents)
}

/// Writes the contents of a direct message into the result words, after the first one.
fn set_contents(words: &mut Words, contents: &[u8]) {
    for (word, part) in words[1..].iter_mut().zip(contents.chunks(8)) {
        let mut bytes = [0; 8];
        bytes[..part.len()].copy_from_slice(part);
        *word = u64::from_le_bytes(bytes);
    }
}
