//! Calls of Portals that are posted or waited for: they take virtual time.

use super::codes::{self, ANY, FOREVER, Stop, atomic, op, options};
use super::handles::{Attached, Object, counter};
use super::{Interface, Words};
use crate::memory;
use nicety::portals::{
    AckRequest, AtomicRequest, CtEvent, CtHandle, EqHandle, Event, FetchRequest, GetRequest, MdHandle, Me,
    MeHandle, MeOptions, Operand, PutRequest, Request, Source, User,
};
use nicety::{Duration, HpuMemoryId, NodeId, PROCESS_ADDRESSES, Portals};

/// The most queues or counters of one poll.
const MOST_POLLED: u64 = 1 << 16;
const PS_PER_MS: u64 = 1_000_000_000;

impl Interface {
    pub(super) async fn post(&self, portals: &Portals, op: u32, words: &mut Words) -> Result<(), Stop> {
        let [a, b, c, d, e, ..] = *words;
        match op {
            op::NI_FINI => self.close(portals).await,
            op::PT_ENABLE => portals.pt_enable(a as u32, b != 0).await?,
            op::ME_APPEND => {
                let (pt, me) = entry(words)?;
                let appending = portals.me_append(pt, me, codes::list(words[10])?).await?;
                let handle = portals.appended(appending).await?;
                if !me.options.contains(MeOptions::USE_ONCE) {
                    self.objects.borrow_mut().entries.push(handle);
                }
                words[0] = handle.handle();
            }
            op::ME_UNLINK => {
                let me = MeHandle::of(a)?;
                portals.me_unlink(me).await?;
                self.objects.borrow_mut().entries.retain(|own| *own != me);
            }
            op::ME_SEARCH => {
                let (pt, me) = entry(words)?;
                portals.me_search(pt, me, codes::search(words[10])?).await?;
            }
            op::EQ_GET => self.eq_poll(portals, &[EqHandle::of(a)?], 0, words).await?,
            op::EQ_POLL => {
                let queues =
                    self.handles(a, b)?.into_iter().map(EqHandle::of).collect::<Result<Vec<_>, _>>()?;
                self.eq_poll(portals, &queues, c, words).await?;
            }
            op::CT_CANCEL => {
                self.commands.set(true);
                portals.ct_cancel_triggered(CtHandle::of(a)?).await?;
            }
            op::CT_GET => {
                let (ct, begun) = (self.own(CtHandle::of(a)?)?, self.host.now());
                self.host.compute(self.look).await;
                let value = portals.ct_get(ct);
                let is_new = value != self.seen(ct, value);
                self.looked(portals, begun, is_new).await;
                set_count(words, value);
            }
            op::CT_WAIT | op::CT_AWAIT => {
                let ct = self.own(CtHandle::of(a)?)?;
                // Failures are counted, and the process reads the counts.
                if let Err(error) = portals.ct_wait(ct, b).await
                    && portals.ct_get(ct).failure == 0
                {
                    return Err(error.into());
                }
                set_count(words, portals.ct_get(ct));
            }
            op::CT_POLL => {
                let (cts, tests) = (self.handles(a, c)?, self.handles(b, c)?);
                let cts = cts
                    .into_iter()
                    .map(|ct| self.own(CtHandle::of(ct)?))
                    .collect::<Result<Vec<_>, Stop>>()?;
                let tested: Vec<_> = cts.into_iter().zip(tests).collect();
                let begun = self.host.now();
                let reached = portals.ct_poll(&tested, limit(d)).await?;
                self.looked(portals, begun, reached.is_some() || d != 0).await;
                let Some((which, value)) = reached else {
                    return Err(Stop::Refused("PTL_CT_NONE_REACHED", String::new()));
                };
                set_count(words, value);
                words[2] = which as u64;
            }
            op::CT_SET | op::CT_INC => {
                let (ct, value) = (CtHandle::of(a)?, CtEvent { success: b, failure: c });
                self.commands.set(true);
                match (op, counter(d)?) {
                    (op::CT_SET, None) => portals.ct_set(ct, value).await?,
                    (op::CT_SET, Some(trigger)) => portals.triggered_ct_set(ct, value, trigger, e).await?,
                    (_, None) => {
                        one_of_both(value)?;
                        portals.ct_inc(ct, value).await?;
                    }
                    (_, Some(trigger)) => {
                        one_of_both(value)?;
                        portals.triggered_ct_inc(ct, value, trigger, e).await?;
                    }
                }
            }
            op::PUT..=op::SWAP => {
                let request = request(op, words, self.ack(words)?)?;
                match counter(words[10])? {
                    None => portals.post(&request).await?,
                    Some(trigger) => {
                        let trigger = self.own(trigger)?;
                        portals.card().check_request(&request)?;
                        self.commands.set(true);
                        portals.triggered(request, trigger, words[11]).await?;
                    }
                }
                self.count(words[2]);
            }
            op::ATOMIC_SYNC => portals.atomic_sync().await?,
            op::HPU_WRITE => {
                let contents = self.bytes(c, d)?;
                portals.hpu_write(HpuMemoryId::of(a)?, b, contents).await?;
            }
            op::HPU_READ => {
                let contents = portals.hpu_read(HpuMemoryId::of(a)?, b, d).await?;
                let pid = self.turns.pages.process(self.rank).unwrap_or_default();
                memory::write(pid, c, &contents).map_err(|error| {
                    Stop::invalid(&format!("{d} bytes at {c:#x} of the process: {error}"))
                })?;
            }
            _ => {
                return Err(Stop::invalid(
                    "there is no such call: the process has another version of the library",
                ));
            }
        }
        Ok(())
    }

    /// Returns the acknowledgement of an operation: only one that its descriptor can report has an effect.
    fn ack(&self, words: &Words) -> Result<AckRequest, Stop> {
        let asked = codes::ack(words[3])?;
        let told = self.objects.borrow().descriptors.get(&MdHandle::of(words[0])?).copied();
        let Some(told) = told else { return Ok(asked) };
        Ok(match asked {
            AckRequest::Full if !told.by_events && told.by_counts => AckRequest::Counting,
            AckRequest::Full | AckRequest::Counting if !told.by_counts && !told.by_events => AckRequest::None,
            AckRequest::Counting if !told.by_counts => AckRequest::None,
            asked => asked,
        })
    }

    /// Checks that a counter is the process's own.
    fn own(&self, ct: CtHandle) -> Result<CtHandle, Stop> {
        match self.objects.borrow().counters.contains_key(&ct) {
            true => Ok(ct),
            false => Err(Stop::invalid("this handle names no counter: it was freed before")),
        }
    }

    /// Returns the value that the process had seen of a counter, and records the new one.
    fn seen(&self, ct: CtHandle, value: CtEvent) -> CtEvent {
        self.objects.borrow_mut().counters.insert(ct, value).unwrap_or_default()
    }

    /// Returns handles or numbers from the process's memory.
    fn handles(&self, address: u64, count: u64) -> Result<Vec<u64>, Stop> {
        if count > MOST_POLLED {
            return Err(Stop::invalid("more than 65536 of them"));
        }
        let bytes = self.bytes(address, 8 * count)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    async fn eq_poll(
        &self,
        portals: &Portals,
        queues: &[EqHandle],
        ms: u64,
        words: &mut Words,
    ) -> Result<(), Stop> {
        let begun = self.host.now();
        let found = portals.eq_poll(queues, limit(ms)).await?;
        self.looked(portals, begun, found.is_some() || ms != 0).await;
        let Some((which, event)) = found else {
            return Err(Stop::Refused("PTL_EQ_EMPTY", String::new()));
        };
        set_event(words, &event);
        words[EVENT_WORDS] = which as u64;
        Ok(())
    }
}

/// Returns the limit of a wait, from milliseconds.
fn limit(ms: u64) -> Option<Duration> {
    (ms != FOREVER).then(|| Duration::from_ps(ms.saturating_mul(PS_PER_MS)))
}

fn one_of_both(by: CtEvent) -> Result<(), Stop> {
    match by.success != 0 && by.failure != 0 {
        true => Err(Stop::invalid("an increment is of successes or of failures, not of both")),
        false => Ok(()),
    }
}

fn set_count(words: &mut Words, value: CtEvent) {
    (words[0], words[1]) = (value.success, value.failure);
}

/// Words of an event.
const EVENT_WORDS: usize = 15;

fn set_event(words: &mut Words, event: &Event) {
    let (op, datatype) = event.atomic.map_or((0, 0), |atomic| (atomic.op() as u64, atomic.datatype() as u64));
    let all: [u64; EVENT_WORDS] = [
        event.kind as u64,
        event.fail as u64,
        event.initiator.0.into(),
        event.pt.into(),
        event.list as u64,
        event.match_bits,
        event.uid.into(),
        op,
        datatype,
        event.hdr_data,
        event.rlength,
        event.mlength,
        event.remote_offset,
        event.start.saturating_sub(PROCESS_ADDRESSES),
        event.user_ptr,
    ];
    words[..EVENT_WORDS].copy_from_slice(&all);
}

/// Returns the portal table entry and the match entry of an append or a search.
fn entry(words: &Words) -> Result<(u32, Me), Stop> {
    let [
        pt,
        start,
        length,
        ct,
        uid,
        bits,
        rank,
        match_bits,
        ignore_bits,
        min_free,
        _,
        user_ptr,
        handlers,
        ..,
    ] = *words;
    let (start, length) = Interface::place(start, length)?;
    let handlers = match handlers {
        0 => None,
        handle => Some(Attached::of(handle)?.0),
    };
    let me = Me {
        start,
        length,
        match_bits,
        ignore_bits,
        source: if rank == ANY { Source::Any } else { Source::Rank(NodeId(rank as u32)) },
        user: if uid == ANY { User::Any } else { User::Id(uid as u32) },
        options: options(bits, MeOptions::from_bits, "match entry")?,
        ct: counter(ct)?,
        min_free,
        handlers,
        user_ptr,
    };
    Ok((pt as u32, me))
}

/// Returns an operation from the words of `struct operation` in `shim/portals_data.c`.
fn request(op: u32, words: &Words, ack: AckRequest) -> Result<Request, Stop> {
    let [md, local_offset, length, _, rank, pt, match_bits, remote_offset, user_ptr, hdr_data, ..] = *words;
    let put = PutRequest {
        md: MdHandle::of(md)?,
        local_offset,
        length,
        ack,
        target: NodeId(rank as u32),
        pt: pt as u32,
        match_bits,
        remote_offset,
        user_ptr,
        hdr_data,
    };
    let fetch = || {
        let mut operand = [0; 16];
        operand[..8].copy_from_slice(&words[16].to_le_bytes());
        operand[8..].copy_from_slice(&words[17].to_le_bytes());
        let operand =
            operand.get(..words[18] as usize).ok_or_else(|| Stop::invalid("an operand of over 16 bytes"))?;
        Ok::<_, Stop>(FetchRequest {
            get_md: MdHandle::of(words[14])?,
            local_get_offset: words[15],
            put,
            atomic: atomic(words[12], words[13])?,
            operand: Operand::new(operand).map_err(|error| Stop::invalid(&error.to_string()))?,
        })
    };
    Ok(match op {
        op::PUT => Request::Put(put),
        op::GET => Request::Get(GetRequest {
            md: put.md,
            local_offset,
            length,
            target: put.target,
            pt: put.pt,
            match_bits,
            remote_offset,
            user_ptr,
        }),
        op::ATOMIC => Request::Atomic(AtomicRequest { put, atomic: atomic(words[12], words[13])? }),
        op::FETCH_ATOMIC => Request::FetchAtomic(fetch()?),
        _ => Request::Swap(fetch()?),
    })
}
