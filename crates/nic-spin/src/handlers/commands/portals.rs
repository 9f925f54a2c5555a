//! The commands of handlers to the card, numbered as in nicety.h.
//!
//! A command takes effect in the cycle in which the handler reaches it. So commands of all handlers are in the order of
//! simulated time. In this cycle, a command reads its bytes from HPU memory.

use crate::Card;
use crate::transmit::{HostPart, Report};
use nicety_hpu::{DeviceAccess, TrapKind};
use nicety_nic_processors::commands::codes::{Stop, code, number};
use nicety_nic_processors::contention::exclusive::Act;
use nicety_nic_processors::pspin::ports::Ports;
use nicety_nic_processors::running::{Commands, Running};
use nicety_portals::{CtEvent, Error, Header, Me};
use nicety_types::{NodeId, Path, Payload, Stage, Starter};
use std::rc::Rc;

const SERVED: &str = "the card serves the functions of nicety.h, numbers 0x101 to 0x150";

impl Commands for Card {
    async fn command(self: &Rc<Card>, running: &mut Running, registers: [u32; 8]) -> Result<u32, Stop> {
        if running.attachment.program.handlers.pspin.is_some() {
            // The future is boxed because it would enlarge the task of every handler.
            return Box::pin(self.runtime_call(running, registers)).await;
        }
        let [a0, a1, a2, a3, a4, _, _, number] = registers;
        let long = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        match number {
            number::PUT_FROM_DEVICE => self.put_from_device(running, a0, a1, a2).await,
            number::PUT_FROM_HOST => self.put_from_host(running, a0, a1, a2).await,
            number::GET_TO_HOST => self.get_to_host(running, [a0, a1, a2, a3]).await,
            number::DMA_TO_HOST => self.dma_to_host(running, [a0, a1, a2, a3, a4]).await,
            number::DMA_FROM_HOST => self.dma_from_host(running, [a0, a1, a2, a3, a4]).await,
            number::DMA_CAS => {
                let expected = self.processors().read_u64(running, a1)?;
                let new = self.processors().read_u64(running, a2)?;
                let change = move |found: u64| if found == expected { new } else { found };
                self.dma_atomic(running, [a0, a1, a3, a4], Act::Take, change).await
            }
            number::DMA_FETCH_ADD => {
                let increment = self.processors().read_u64(running, a2)?;
                let change = move |found: u64| found.wrapping_add(increment);
                self.dma_atomic(running, [a0, a1, a3, a4], Act::Add, change).await
            }
            number::DMA_TEST => match self.transfers(running).state(a0 as usize) {
                // If the handle has no transfer, a wait has freed it, so its DMA is done.
                None => Ok(1),
                Some(false) => Ok(0),
                Some(true) => {
                    self.finished(running, a0 as usize).await?;
                    Ok(1)
                }
            },
            number::DMA_WAIT => match self.transfers(running).state(a0 as usize) {
                None => Ok(code::ARG_INVALID),
                Some(_) => {
                    self.finished(running, a0 as usize).await?;
                    Ok(code::OK)
                }
            },
            number::CT_INC | number::CT_GET | number::CT_SET => {
                Ok(self.counter(running, number, a0, long(a0, a1))?)
            }
            number::YIELD => {
                self.let_others_go(running).await;
                Ok(code::OK)
            }
            _ => self.processors().common_command(running, registers, SERVED),
        }
    }

    async fn register(
        self: &Rc<Card>,
        running: &mut Running,
        access: DeviceAccess,
    ) -> Result<Option<u32>, Stop> {
        // The future is boxed because it would enlarge the task of every handler.
        Box::pin(self.access_register(running, access)).await
    }

    fn ports(&self, core: usize) -> Option<&Ports> {
        self.handlers.scheduler.ports(core)
    }

    fn leave(&self, running: &mut Running) -> Result<(), Stop> {
        self.leave_transfers(running)
    }
}

impl Card {
    /// Returns the header of a put, and its report, which may increment a counter. For an invalid put, returns the
    /// return code of the command.
    fn put_header(&self, running: &mut Running, length: u32, put: u32) -> Result<Result<Put, u32>, TrapKind> {
        let mut fields = [0; 32];
        running.with_space(|space| {
            fields.copy_from_slice(space.read(put, 32)?);
            Ok(())
        })?;
        let word = |at: usize| u32::from_le_bytes(*fields[at..].first_chunk().expect("inside the fields"));
        let long = |at: usize| u64::from_le_bytes(*fields[at..].first_chunk().expect("inside the fields"));
        let (target, counted, ack) = (word(16), word(24) & 0xffff, word(24) >> 16);
        // A handler may not request an acknowledgement, because the handler would end before the acknowledgement
        // arrives.
        if target >= self.nodes || counted > 1 || ack != 0 {
            return Ok(Err(code::ARG_INVALID));
        }
        let report = match (counted, self.entry_of(running).ct) {
            (0, _) => None,
            (_, Some(ct)) => Some(Report::Count(ct)),
            (_, None) => return Ok(Err(code::ARG_INVALID)),
        };
        let pt = self.incoming.borrow_mut().get(running.place).header.pt;
        let header = Header {
            remote_offset: word(20).into(),
            hdr_data: long(8),
            ..Header::put(self.node, NodeId(target), pt, long(0), length.into())
        };
        Ok(Ok(Put { header, report }))
    }

    async fn put_from_device(
        self: &Rc<Card>,
        running: &mut Running,
        local: u32,
        length: u32,
        put: u32,
    ) -> Result<u32, Stop> {
        let Put { header, report } = match self.put_header(running, length, put)? {
            Ok(_) if u64::from(length) > self.spec.packet_payload => return Ok(code::ARG_INVALID),
            Ok(put) => put,
            Err(code) => return Ok(code),
        };
        let payload = self.processors().take_local(running, local, length)?;
        let place = self.transmit.place().await;
        running.path.advance(Stage::SEND_QUEUED, self.sim.now());
        let by = Starter::Handler(running.message);
        self.send_from_card(header, payload, report, Some(place), running.path.clone(), by);
        Ok(code::OK)
    }

    async fn put_from_host(
        self: &Rc<Card>,
        running: &mut Running,
        offset: u32,
        length: u32,
        put: u32,
    ) -> Result<u32, Stop> {
        let Put { header, report } = match self.put_header(running, length, put)? {
            Ok(put) => put,
            Err(code) => return Ok(code),
        };
        let Some(start) = self.host_range(running, offset, length, 0) else { return Ok(code::SEGV) };
        let place = self.transmit.place().await;
        running.path.advance(Stage::SEND_QUEUED, self.sim.now());
        let by = Starter::Handler(running.message);
        let memory = HostPart::at(start, length.into());
        self.sim.spawn(self.clone().fetch_and_send(
            header,
            memory,
            report,
            Some(place),
            running.path.clone(),
            by,
        ));
        Ok(code::OK)
    }

    /// Gets bytes of another process's match entry into host memory. The counter is incremented when the bytes have
    /// arrived.
    async fn get_to_host(
        self: &Rc<Card>,
        running: &mut Running,
        [offset, length, get, options]: [u32; 4],
    ) -> Result<u32, Stop> {
        let Put { header, report } = match self.put_header(running, length, get)? {
            Ok(get) => get,
            Err(code) => return Ok(code),
        };
        let Some(start) = self.host_range(running, offset, length, options) else { return Ok(code::SEGV) };
        let counted = report.and_then(|report| if let Report::Count(ct) = report { Some(ct) } else { None });
        let place = self.transmit.place().await;
        running.path.advance(Stage::SEND_QUEUED, self.sim.now());
        let started = self.interface.borrow_mut().card_get(start, &header, counted);
        let out = match started {
            Ok(out) => out,
            Err(Error::NoSpace { .. }) => return Ok(code::NO_SPACE),
            Err(_) => return Ok(code::ARG_INVALID),
        };
        let (report, by) = (Some(Report::Sent(out.operation)), Starter::Handler(running.message));
        self.send_from_card(out.header, Payload::empty(), report, Some(place), running.path.clone(), by);
        Ok(code::OK)
    }

    /// Returns the address of host memory at a handler's offset. `options` selects the region: 0 is the region of the
    /// match entry, and 1 is the handlers' own region.
    pub(crate) fn host_range(
        &self,
        running: &Running,
        offset: u32,
        length: u32,
        options: u32,
    ) -> Option<u64> {
        let (start, size) = match options {
            0 => {
                let entry = self.entry_of(running);
                (entry.start, entry.length)
            }
            1 => self.attachment_of(running.place)?.handler_memory?,
            _ => return None,
        };
        (u64::from(offset) + u64::from(length) <= size).then(|| start + u64::from(offset))
    }

    /// Returns the match entry of the handler's message.
    pub(crate) fn entry_of(&self, running: &Running) -> Me {
        let delivery = self.incoming.borrow_mut().get(running.place).delivery;
        let me = delivery.expect("only matched messages run handlers").me;
        *self.interface.borrow().me(me).expect("the entry lives until its messages complete")
    }

    fn counter(
        self: &Rc<Card>,
        running: &mut Running,
        number: u32,
        pointer: u32,
        value: u64,
    ) -> Result<u32, TrapKind> {
        let Some(ct) = self.entry_of(running).ct else { return Ok(code::ARG_INVALID) };
        let path: Path = running.path.clone();
        let by = CtEvent { success: value, failure: 0 };
        match number {
            number::CT_GET => {
                let found = self.interface.borrow().ct_get(ct).unwrap_or_default();
                self.processors().write_u64(running, pointer, found.success)?;
            }
            number::CT_INC => self.with_effects(path, |interface, effects| {
                interface.ct_inc(ct, by, effects).expect("the entry's counter lives as long as the entry");
            }),
            _ => self.with_effects(path, |interface, effects| {
                interface.ct_set(ct, by, effects).expect("the entry's counter lives as long as the entry");
            }),
        }
        Ok(code::OK)
    }
}

/// A put by a handler.
struct Put {
    header: Header,
    report: Option<Report>,
}
