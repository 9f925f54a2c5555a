//! Set-up calls of Portals, without virtual time.

use super::codes::{ANY, Stop, op, options, register};
use super::handles::{Attached, Object, counter, queue};
use super::{Interface, MOST_BYTES, Reporting, Words};
use nicety::portals::{CtHandle, EqHandle, Md, MdHandle, MdOptions, PtOptions};
use nicety::{ApplicationId, Attach, HandlerNames, HpuMemoryId, Portals, State};

impl Interface {
    /// Carries out a set-up call and returns its result; `None` for other calls.
    pub(super) fn set_up(&self, portals: &Portals, op: u32, words: &Words) -> Result<Option<u64>, Stop> {
        let card = portals.card();
        let mut objects = self.objects.borrow_mut();
        let [a, b, c, d, e, ..] = *words;
        Ok(Some(match op {
            op::NI_STATUS => portals.ni_status(register(a)?),
            op::UID => portals.uid().into(),
            op::PT_ALLOC => {
                let options = options(a, PtOptions::from_bits, "portal table entry")?;
                let index = (c != ANY).then_some(c as u32);
                let index = card.pt_alloc_with(index, queue(b)?, options)?;
                objects.table.push(index);
                index.into()
            }
            op::PT_FREE => {
                card.pt_free(a as u32)?;
                objects.table.retain(|index| u64::from(*index) != a);
                a
            }
            op::MD_BIND => {
                let (start, length) = Interface::place(a, b)?;
                let (eq, ct) = (queue(d)?, counter(e)?);
                let options = options(c, MdOptions::from_bits, "memory descriptor")?;
                let md = card.md_bind(Md { start, length, options, eq, ct })?;
                let told = Reporting { by_events: eq.is_some(), by_counts: ct.is_some() };
                objects.descriptors.insert(md, told);
                md.handle()
            }
            op::MD_RELEASE => {
                let md = MdHandle::of(a)?;
                card.md_release(md)?;
                objects.descriptors.remove(&md);
                a
            }
            op::EQ_ALLOC => {
                let depth = u32::try_from(a).map_err(|_| {
                    Stop::Refused("PTL_NO_SPACE", format!("a queue of {a} events: no card has as many"))
                })?;
                let eq = card.eq_alloc(depth)?;
                objects.queues.push(eq);
                eq.handle()
            }
            op::EQ_FREE => {
                let eq = EqHandle::of(a)?;
                card.eq_free(eq)?;
                objects.queues.retain(|own| *own != eq);
                a
            }
            op::CT_ALLOC => {
                let ct = card.ct_alloc()?;
                objects.counters.insert(ct, card.ct_get(ct));
                ct.handle()
            }
            op::CT_FREE => {
                let ct = CtHandle::of(a)?;
                card.ct_free(ct)?;
                objects.counters.remove(&ct);
                a
            }
            op::HPU_ALLOC => {
                if a > MOST_BYTES {
                    let why = format!("{a} bytes of HPU memory: no card has as much");
                    return Err(Stop::Refused("PTL_NO_SPACE", why));
                }
                let piece = card.hpu_alloc(ApplicationId::default(), vec![0; a as usize])?;
                objects.pieces.push(piece);
                piece.handle()
            }
            op::HPU_FREE => {
                let piece = HpuMemoryId::of(a)?;
                card.hpu_free(piece)?;
                objects.pieces.retain(|own| *own != piece);
                a
            }
            op::ATTACH => {
                let attached = self.attach(portals, words)?;
                objects.attached.push(attached.0);
                attached.handle()
            }
            op::DETACH => {
                let attached = Attached::of(a)?;
                card.detach(attached.0)?;
                objects.attached.retain(|own| *own != attached.0);
                a
            }
            _ => return Ok(None),
        }))
    }

    /// Loads handlers from the file that the process names.
    fn attach(&self, portals: &Portals, words: &Words) -> Result<Attached, Stop> {
        let name = |at: usize| self.text(words[at], words[at + 1]);
        let [memory, state, state_bytes, start, length] = words[8..13] else { unreachable!("five words") };
        let path = name(0)?.ok_or_else(|| Stop::invalid("no program"))?;
        let elf = std::fs::read(&path).map_err(|error| Stop::invalid(&format!("{path}: {error}")))?;
        let names = HandlerNames { header: name(2)?, payload: name(4)?, completion: name(6)? };
        let handlers = portals.load_handlers(&elf, &names).map_err(|error| in_file(&path, error.into()))?;
        if state_bytes > MOST_BYTES {
            let why = format!("a state of {state_bytes} bytes: no card has as much HPU memory");
            return Err(Stop::Refused("PTL_NO_SPACE", why));
        }
        let own = self.bytes(state, if state == 0 { 0 } else { state_bytes })?;
        let state = match memory {
            0 => State::Own(&own),
            handle => State::Shared(HpuMemoryId::of(handle)?),
        };
        let memory = match start {
            0 => None,
            start => Some(Interface::place(start, length)?),
        };
        let attach = Attach { handlers: &handlers, application: ApplicationId::default(), state, memory };
        portals.card().attach_as(&attach).map(Attached).map_err(|error| in_file(&path, error.into()))
    }
}

/// Adds the name of a call's file to an error.
fn in_file(path: &str, stop: Stop) -> Stop {
    match stop {
        Stop::Refused(code, why) => Stop::Refused(code, format!("{path}: {why}")),
        failed => failed,
    }
}
