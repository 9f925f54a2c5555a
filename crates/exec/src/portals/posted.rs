//! Calls of Portals that take virtual time: posts and waits.

use super::codes::{self, ANY, FOREVER, Stop, atomic, options};
use super::handles::{Attached, Object, counter};
use super::wire::{self, Call, Count, CtGet, CtPoll, HpuRead, MeAppend, Nothing, Number, Swap};
use super::{Interface, Words};
use crate::memory;
use nicety::portals::{
    AckRequest, AtomicRequest, CtEvent, CtHandle, EqHandle, Event, FetchRequest, GetRequest, MdHandle, Me,
    MeHandle, MeOptions, Operand, PutRequest, Request, Source, User,
};
use nicety::{Duration, HpuMemoryId, NodeId, PROCESS_ADDRESSES, Portals};

/// Maximum queues or counters in one poll.
const MOST_POLLED: u64 = 1 << 16;
const PS_PER_MS: u64 = 1_000_000_000;

/// Returns the match entry that the arguments of an append or a search describe.
macro_rules! entry_of {
    ($asked:ident) => {{
        let (start, length) = Interface::place($asked.start, $asked.length)?;
        let handlers = match $asked.handlers {
            0 => None,
            handle => Some(Attached::of(handle)?.0),
        };
        Me {
            start,
            length,
            match_bits: $asked.match_bits,
            ignore_bits: $asked.ignore_bits,
            source: match $asked.match_id {
                ANY => Source::Any,
                rank => Source::Rank(NodeId(rank as u32)),
            },
            user: if $asked.uid == ANY { User::Any } else { User::Id($asked.uid as u32) },
            options: options($asked.options, MeOptions::from_bits, "match entry")?,
            ct: counter($asked.ct)?,
            min_free: $asked.min_free,
            handlers,
            user_ptr: $asked.user_ptr,
        }
    }};
}

/// Returns the put that the arguments of an operation describe.
macro_rules! put_of {
    ($asked:ident, $ack:expr) => {
        PutRequest {
            ack: $ack,
            md: MdHandle::of($asked.md)?,
            local_offset: $asked.local_offset,
            length: $asked.length,
            target: NodeId($asked.target as u32),
            pt: $asked.pt as u32,
            match_bits: $asked.match_bits,
            remote_offset: $asked.remote_offset,
            user_ptr: $asked.user_ptr,
            hdr_data: $asked.hdr_data,
        }
    };
}

/// Returns the fetching operation that the arguments of a call describe.
macro_rules! fetch_of {
    ($asked:ident, $operand:expr) => {
        FetchRequest {
            put: put_of!($asked, AckRequest::None),
            get_md: MdHandle::of($asked.get_md)?,
            local_get_offset: $asked.local_get_offset,
            atomic: atomic($asked.operation, $asked.datatype)?,
            operand: Operand::new($operand).map_err(|error| Stop::invalid(&error.to_string()))?,
        }
    };
}

impl Interface {
    /// Executes a call that takes virtual time, and returns the words of its outcome.
    pub(super) async fn post(&self, portals: &Portals, call: Call) -> Result<Words, Stop> {
        match call {
            Call::NiFini(_) => self.close(portals).await,
            Call::PtEnable(asked) => portals.pt_enable(asked.pt as u32, asked.enabled != 0).await?,
            Call::MeAppend(asked) => return Ok(self.me_append(portals, asked).await?.into()),
            Call::MeUnlink(asked) => {
                let me = MeHandle::of(asked.me)?;
                portals.me_unlink(me).await?;
                self.objects.borrow_mut().entries.retain(|own| *own != me);
            }
            Call::MeSearch(asked) => {
                let me = entry_of!(asked);
                portals.me_search(asked.pt as u32, me, codes::search(asked.op)?).await?;
            }
            Call::EqGet(asked) => {
                return Ok(self.eq_poll(portals, &[EqHandle::of(asked.eq)?], 0).await?.into());
            }
            Call::EqPoll(asked) => {
                let queues = self.handles(asked.eqs, asked.size)?.into_iter().map(EqHandle::of);
                let queues = queues.collect::<Result<Vec<_>, _>>()?;
                return Ok(self.eq_poll(portals, &queues, asked.timeout).await?.into());
            }
            Call::CtGet(asked) => return Ok(self.ct_get(portals, asked).await?.into()),
            Call::CtWait(wire::CtWait { ct, test }) | Call::CtAwait(wire::CtAwait { ct, test }) => {
                return Ok(self.ct_wait(portals, ct, test).await?.into());
            }
            Call::CtPoll(asked) => return Ok(self.ct_poll(portals, asked).await?.into()),
            Call::AtomicSync(_) => portals.atomic_sync().await?,
            Call::HpuWrite(asked) => {
                let contents = self.bytes(asked.from, asked.length)?;
                portals.hpu_write(HpuMemoryId::of(asked.memory)?, asked.offset, contents).await?;
            }
            Call::HpuRead(asked) => self.hpu_read(portals, asked).await?,
            call => self.post_command(portals, &call).await?,
        }
        Ok(Nothing {}.into())
    }

    /// Posts an operation, or a change of a counter.
    async fn post_command(&self, portals: &Portals, call: &Call) -> Result<(), Stop> {
        match call {
            Call::CtCancel(asked) => {
                self.commands.set(true);
                return Ok(portals.ct_cancel_triggered(CtHandle::of(asked.ct)?).await?);
            }
            Call::CtSet(asked) => {
                let (ct, value) = self.change(asked.ct, asked.success, asked.failure)?;
                match counter(asked.trigger)? {
                    None => portals.ct_set(ct, value).await?,
                    Some(trigger) => portals.triggered_ct_set(ct, value, trigger, asked.threshold).await?,
                }
                Ok(())
            }
            Call::CtInc(asked) => {
                let (ct, by) = self.change(asked.ct, asked.success, asked.failure)?;
                let trigger = counter(asked.trigger)?;
                one_of_both(by)?;
                match trigger {
                    None => portals.ct_inc(ct, by).await?,
                    Some(trigger) => portals.triggered_ct_inc(ct, by, trigger, asked.threshold).await?,
                }
                Ok(())
            }
            call => self.post_operation(portals, call).await,
        }
    }

    /// Posts an operation. It starts now, or when a counter triggers it.
    async fn post_operation(&self, portals: &Portals, call: &Call) -> Result<(), Stop> {
        macro_rules! posting {
            ($asked:ident) => {
                ($asked.length, $asked.trigger, $asked.threshold)
            };
        }
        let (request, (length, trigger, threshold)) = match call {
            Call::Put(asked) => {
                (Request::Put(put_of!(asked, self.ack(asked.ack, asked.md)?)), posting!(asked))
            }
            Call::Get(asked) => (Request::Get(get_of(asked)?), posting!(asked)),
            Call::Atomic(asked) => {
                let put = put_of!(asked, self.ack(asked.ack, asked.md)?);
                let atomic = atomic(asked.operation, asked.datatype)?;
                (Request::Atomic(AtomicRequest { put, atomic }), posting!(asked))
            }
            Call::FetchAtomic(asked) => (Request::FetchAtomic(fetch_of!(asked, &[])), posting!(asked)),
            Call::Swap(asked) => (Request::Swap(swap_of(asked)?), posting!(asked)),
            other => unreachable!("{other:?} is no command"),
        };
        match counter(trigger)? {
            None => portals.post(&request).await?,
            Some(trigger) => {
                let trigger = self.own(trigger)?;
                portals.card().check_request(&request)?;
                self.commands.set(true);
                portals.triggered(request, trigger, threshold).await?;
            }
        }
        self.count(length);
        Ok(())
    }

    /// Returns the counter and the value of a change. The card does not answer the change, which may be in flight.
    fn change(&self, ct: u64, success: u64, failure: u64) -> Result<(CtHandle, CtEvent), Stop> {
        let ct = CtHandle::of(ct)?;
        self.commands.set(true);
        Ok((ct, CtEvent { success, failure }))
    }

    async fn me_append(&self, portals: &Portals, asked: MeAppend) -> Result<Number, Stop> {
        let me = entry_of!(asked);
        let appending = portals.me_append(asked.pt as u32, me, codes::list(asked.list)?).await?;
        let handle = portals.appended(appending).await?;
        if !me.options.contains(MeOptions::USE_ONCE) {
            self.objects.borrow_mut().entries.push(handle);
        }
        Ok(Number { value: handle.handle() })
    }

    async fn ct_get(&self, portals: &Portals, CtGet { ct }: CtGet) -> Result<Count, Stop> {
        let (ct, begun) = (self.own(CtHandle::of(ct)?)?, self.host.now());
        self.host.compute(self.look).await;
        let value = portals.ct_get(ct);
        let is_new = value != self.seen(ct, value);
        self.looked(portals, begun, is_new).await;
        Ok(count(value, 0))
    }

    async fn ct_wait(&self, portals: &Portals, ct: u64, test: u64) -> Result<Count, Stop> {
        let ct = self.own(CtHandle::of(ct)?)?;
        // A failure is counted, and the process reads the counts.
        if let Err(error) = portals.ct_wait(ct, test).await
            && portals.ct_get(ct).failure == 0
        {
            return Err(error.into());
        }
        Ok(count(portals.ct_get(ct), 0))
    }

    async fn ct_poll(&self, portals: &Portals, asked: CtPoll) -> Result<Count, Stop> {
        let (cts, tests) = (self.handles(asked.cts, asked.size)?, self.handles(asked.tests, asked.size)?);
        let cts = cts.into_iter().map(|ct| self.own(CtHandle::of(ct)?)).collect::<Result<Vec<_>, Stop>>()?;
        let tested: Vec<_> = cts.into_iter().zip(tests).collect();
        let begun = self.host.now();
        let reached = portals.ct_poll(&tested, limit(asked.timeout)).await?;
        self.looked(portals, begun, reached.is_some() || asked.timeout != 0).await;
        let (which, value) = reached.ok_or_else(|| Stop::Refused("PTL_CT_NONE_REACHED", String::new()))?;
        Ok(count(value, which))
    }

    async fn hpu_read(&self, portals: &Portals, asked: HpuRead) -> Result<(), Stop> {
        let HpuRead { memory: piece, offset, to, length } = asked;
        let contents = portals.hpu_read(HpuMemoryId::of(piece)?, offset, length).await?;
        let pid = self.turns.pages.process(self.rank).unwrap_or_default();
        memory::write(pid, to, &contents)
            .map_err(|error| Stop::invalid(&format!("{length} bytes at {to:#x} of the process: {error}")))
    }

    /// Returns the acknowledgement that an operation requests. It is none if the operation's descriptor cannot report it.
    fn ack(&self, ack: u64, md: u64) -> Result<AckRequest, Stop> {
        let asked = codes::ack(ack)?;
        let told = self.objects.borrow().descriptors.get(&MdHandle::of(md)?).copied();
        let Some(told) = told else { return Ok(asked) };
        Ok(match asked {
            AckRequest::Full if !told.by_events && told.by_counts => AckRequest::Counting,
            AckRequest::Full | AckRequest::Counting if !told.by_counts && !told.by_events => AckRequest::None,
            AckRequest::Counting if !told.by_counts => AckRequest::None,
            asked => asked,
        })
    }

    /// Checks that a counter belongs to the process.
    fn own(&self, ct: CtHandle) -> Result<CtHandle, Stop> {
        match self.objects.borrow().counters.contains_key(&ct) {
            true => Ok(ct),
            false => Err(Stop::invalid("this handle names no counter; the counter may have been freed")),
        }
    }

    /// Records the value of a counter that the process now reads, and returns the value that it has read before.
    fn seen(&self, ct: CtHandle, value: CtEvent) -> CtEvent {
        self.objects.borrow_mut().counters.insert(ct, value).unwrap_or_default()
    }

    /// Reads handles or numbers from the memory of the process.
    fn handles(&self, address: u64, count: u64) -> Result<Vec<u64>, Stop> {
        if count > MOST_POLLED {
            return Err(Stop::invalid("a list of more than 65536 event queues, counters or tests"));
        }
        let bytes = self.bytes(address, 8 * count)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    async fn eq_poll(&self, portals: &Portals, queues: &[EqHandle], ms: u64) -> Result<wire::Event, Stop> {
        let begun = self.host.now();
        let found = portals.eq_poll(queues, limit(ms)).await?;
        self.looked(portals, begun, found.is_some() || ms != 0).await;
        let (which, event) = found.ok_or_else(|| Stop::Refused("PTL_EQ_EMPTY", String::new()))?;
        Ok(event_of(&event, which))
    }
}

/// Returns the time limit of a wait, given in milliseconds; `None` if it is unlimited.
fn limit(ms: u64) -> Option<Duration> {
    (ms != FOREVER).then(|| Duration::from_ps(ms.saturating_mul(PS_PER_MS)))
}

fn one_of_both(by: CtEvent) -> Result<(), Stop> {
    match by.success != 0 && by.failure != 0 {
        true => Err(Stop::invalid("an increment has successes or failures, not both")),
        false => Ok(()),
    }
}

fn count(value: CtEvent, which: usize) -> Count {
    Count { success: value.success, failure: value.failure, which: which as u64 }
}

fn event_of(event: &Event, which: usize) -> wire::Event {
    wire::Event {
        kind: event.kind as u64,
        fail: event.fail as u64,
        initiator: event.initiator.0.into(),
        pt: event.pt.into(),
        list: event.list as u64,
        match_bits: event.match_bits,
        uid: event.uid.into(),
        operation: event.atomic.map_or(0, |atomic| atomic.op() as u64),
        datatype: event.atomic.map_or(0, |atomic| atomic.datatype() as u64),
        hdr_data: event.hdr_data,
        rlength: event.rlength,
        mlength: event.mlength,
        remote_offset: event.remote_offset,
        start: event.start.saturating_sub(PROCESS_ADDRESSES),
        user_ptr: event.user_ptr,
        which: which as u64,
    }
}

fn get_of(asked: &wire::Get) -> Result<GetRequest, Stop> {
    Ok(GetRequest {
        md: MdHandle::of(asked.md)?,
        local_offset: asked.local_offset,
        length: asked.length,
        target: NodeId(asked.target as u32),
        pt: asked.pt as u32,
        match_bits: asked.match_bits,
        remote_offset: asked.remote_offset,
        user_ptr: asked.user_ptr,
    })
}

fn swap_of(asked: &Swap) -> Result<FetchRequest, Stop> {
    let words = [asked.operand_low.to_le_bytes(), asked.operand_high.to_le_bytes()];
    let operand = words
        .as_flattened()
        .get(..asked.operand_bytes as usize)
        .ok_or_else(|| Stop::invalid("an operand of more than 16 bytes; the maximum is 16"))?;
    Ok(fetch_of!(asked, operand))
}
