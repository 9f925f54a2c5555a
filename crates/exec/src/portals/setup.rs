//! Set-up calls of Portals, which take no virtual time.

use super::codes::{ANY, Stop, options, register};
use super::handles::{Attached, Object, counter, queue};
use super::wire::{Attach as AskedAttach, Call, EqAlloc, HpuAlloc, MdBind, PtAlloc};
use super::{Interface, MOST_BYTES, Objects, Reporting};
use nicety::portals::{CtHandle, EqHandle, Md, MdHandle, MdOptions, PtOptions};
use nicety::spin::Card;
use nicety::{ApplicationId, Attach, HandlerNames, HpuMemoryId, Portals, State};

impl Interface {
    /// Executes a set-up call. Returns its result, which is 0 if the call has none. Returns `None` for a call that is not set-up.
    pub(super) fn set_up(&self, portals: &Portals, call: &Call) -> Result<Option<u64>, Stop> {
        let card = portals.card();
        let mut objects = self.objects.borrow_mut();
        Ok(Some(match *call {
            Call::NiStatus(asked) => portals.ni_status(register(asked.status_register)?),
            Call::Uid(_) => portals.uid().into(),
            Call::PtAlloc(asked) => objects.pt_alloc(card, asked)?,
            Call::PtFree(asked) => {
                card.pt_free(asked.pt as u32)?;
                objects.table.retain(|index| u64::from(*index) != asked.pt);
                0
            }
            Call::MdBind(asked) => objects.md_bind(card, asked)?,
            Call::MdRelease(asked) => {
                let md = MdHandle::of(asked.md)?;
                card.md_release(md)?;
                objects.descriptors.remove(&md);
                0
            }
            Call::EqAlloc(asked) => objects.eq_alloc(card, asked)?,
            Call::EqFree(asked) => {
                let eq = EqHandle::of(asked.eq)?;
                card.eq_free(eq)?;
                objects.queues.retain(|own| *own != eq);
                0
            }
            Call::CtAlloc(_) => {
                let ct = card.ct_alloc()?;
                objects.counters.insert(ct, card.ct_get(ct));
                ct.handle()
            }
            Call::CtFree(asked) => {
                let ct = CtHandle::of(asked.ct)?;
                card.ct_free(ct)?;
                objects.counters.remove(&ct);
                0
            }
            Call::HpuAlloc(asked) => objects.hpu_alloc(card, asked)?,
            Call::HpuFree(asked) => {
                let piece = HpuMemoryId::of(asked.memory)?;
                card.hpu_free(piece)?;
                objects.pieces.retain(|own| *own != piece);
                0
            }
            Call::Attach(asked) => {
                let attached = self.attach(portals, &asked)?;
                objects.attached.push(attached.0);
                attached.handle()
            }
            Call::Detach(asked) => {
                let attached = Attached::of(asked.handlers)?;
                card.detach(attached.0)?;
                objects.attached.retain(|own| *own != attached.0);
                0
            }
            _ => return Ok(None),
        }))
    }

    /// Loads handlers from a file that the process names, and attaches them.
    fn attach(&self, portals: &Portals, asked: &AskedAttach) -> Result<Attached, Stop> {
        let path =
            self.text(asked.program, asked.program_bytes)?.ok_or_else(|| Stop::invalid("no program"))?;
        let elf = std::fs::read(&path).map_err(|error| Stop::invalid(&format!("{path}: {error}")))?;
        let names = HandlerNames {
            header: self.text(asked.header, asked.header_bytes)?,
            payload: self.text(asked.payload, asked.payload_bytes)?,
            completion: self.text(asked.completion, asked.completion_bytes)?,
        };
        let handlers = portals.load_handlers(&elf, &names).map_err(|error| in_file(&path, error.into()))?;
        if asked.state_bytes > MOST_BYTES {
            let why = format!("a state of {} bytes: no card has as much HPU memory", asked.state_bytes);
            return Err(Stop::Refused("PTL_NO_SPACE", why));
        }
        let own = self.bytes(asked.state, if asked.state == 0 { 0 } else { asked.state_bytes })?;
        let state = match asked.memory {
            0 => State::Own(&own),
            handle => State::Shared(HpuMemoryId::of(handle)?),
        };
        let memory = match asked.start {
            0 => None,
            start => Some(Interface::place(start, asked.length)?),
        };
        let attach = Attach { handlers: &handlers, application: ApplicationId::default(), state, memory };
        portals.card().attach_as(&attach).map(Attached).map_err(|error| in_file(&path, error.into()))
    }
}

impl Objects {
    fn pt_alloc(&mut self, card: &Card, asked: PtAlloc) -> Result<u64, Stop> {
        let options = options(asked.options, PtOptions::from_bits, "portal table entry")?;
        let index = (asked.pt != ANY).then_some(asked.pt as u32);
        let index = card.pt_alloc_with(index, queue(asked.eq)?, options)?;
        self.table.push(index);
        Ok(index.into())
    }

    fn md_bind(&mut self, card: &Card, asked: MdBind) -> Result<u64, Stop> {
        let (start, length) = Interface::place(asked.start, asked.length)?;
        let (eq, ct) = (queue(asked.eq)?, counter(asked.ct)?);
        let options = options(asked.options, MdOptions::from_bits, "memory descriptor")?;
        let md = card.md_bind(Md { start, length, options, eq, ct })?;
        self.descriptors.insert(md, Reporting { by_events: eq.is_some(), by_counts: ct.is_some() });
        Ok(md.handle())
    }

    fn eq_alloc(&mut self, card: &Card, EqAlloc { count }: EqAlloc) -> Result<u64, Stop> {
        let depth = u32::try_from(count).map_err(|_| {
            Stop::Refused("PTL_NO_SPACE", format!("a queue of {count} events: no card has room for as many"))
        })?;
        let eq = card.eq_alloc(depth)?;
        self.queues.push(eq);
        Ok(eq.handle())
    }

    fn hpu_alloc(&mut self, card: &Card, HpuAlloc { length }: HpuAlloc) -> Result<u64, Stop> {
        if length > MOST_BYTES {
            let why = format!("{length} bytes of HPU memory: no card has as much");
            return Err(Stop::Refused("PTL_NO_SPACE", why));
        }
        let piece = card.hpu_alloc(ApplicationId::default(), vec![0; length as usize])?;
        self.pieces.push(piece);
        Ok(piece.handle())
    }
}

/// Adds the name of a file to the error of a call.
fn in_file(path: &str, stop: Stop) -> Stop {
    match stop {
        Stop::Refused(code, why) => Stop::Refused(code, format!("{path}: {why}")),
        failed => failed,
    }
}
