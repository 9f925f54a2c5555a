//! Host accesses over the bus to allocated HPU memory and to variables of programs, while handlers use them.
//!
//! Writes and reads do not wait for the matching unit, because HPU memory is behind the bus like any memory of a card.
//! A write is posted, in order with all other posts of the host. A read sends a request, and the card returns the bytes
//! that are in HPU memory when the request arrives. Accesses of hosts and handlers are ordered by the time at which
//! they take place. A write takes place when its last byte arrives.

use crate::{CallError, Card};
use nicety_host::Cpus;
use nicety_nic_processors::programs::attachments::{AttachError, HpuMemoryId};
use nicety_nic_processors::programs::memory::Piece;
use nicety_nic_processors::programs::program::map;
use nicety_nic_processors::pspin_map;
use nicety_types::{Path, Stage};
use std::rc::Rc;

impl Card {
    /// Posts a write of HPU memory from `offset` on. Returns when the write has been posted.
    ///
    /// # Errors
    /// When there is no such memory, or the write reaches beyond it.
    pub async fn hpu_write(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        memory: HpuMemoryId,
        offset: u64,
        contents: Vec<u8>,
    ) -> Result<(), CallError> {
        let bytes = contents.len() as u64;
        let (piece, at, address) = self.part(memory, offset, bytes)?;
        let message = self.next_message();
        cpus.post(path, message).await;
        let crossing = self.dma.bus().push(message, bytes, bytes.max(1), path.clone());
        let card = self.clone();
        self.sim.spawn(async move {
            let landed = crossing.packet(0).await.landed().at();
            card.sim.until(landed).await;
            piece.bytes.borrow_mut()[at..at + contents.len()].copy_from_slice(&contents);
            piece.application.reservations.borrow_mut().invalidate(address, contents.len() as u32);
        });
        Ok(())
    }

    /// Reads `bytes` bytes of HPU memory from `offset` on. The request crosses the bus, the bytes return, and the host
    /// notices them.
    ///
    /// # Errors
    /// When there is no such memory, or the read reaches beyond it.
    pub async fn hpu_read(
        &self,
        cpus: &Cpus,
        path: &mut Path,
        memory: HpuMemoryId,
        offset: u64,
        bytes: u64,
    ) -> Result<Vec<u8>, CallError> {
        let (piece, at, _) = self.part(memory, offset, bytes)?;
        let message = self.next_message();
        cpus.post(path, message).await;
        self.dma.ring(message, path).await;
        let found = piece.bytes.borrow()[at..at + bytes as usize].to_vec();
        let handover = self.dma.bus().deposit(message, 0, bytes, path.clone()).await;
        *path = handover.path;
        path.advance(Stage::DEPOSIT, handover.landed);
        self.sim.until(handover.landed).await;
        cpus.notice(path, None).await;
        Ok(found)
    }

    /// Returns a part of HPU memory: the piece, the offset in the piece, and the address for handlers.
    fn part(
        &self,
        memory: HpuMemoryId,
        offset: u64,
        bytes: u64,
    ) -> Result<(Rc<Piece>, usize, u32), AttachError> {
        let variable = self.processors().attachments.variables.borrow().get(&memory).cloned();
        let (piece, start, length, address) = match variable {
            Some(variable) => (variable.data, variable.offset, variable.bytes, variable.address),
            None => {
                let piece = self.hpu_piece(memory)?;
                let length = piece.bytes.borrow().len() as u64;
                let pspin = self.spec.hpu.pspin.is_some();
                let base = if pspin { pspin_map::HANDLER_MEMORY } else { map::STATE };
                let address = base + piece.start;
                (piece, 0, length, address)
            }
        };
        match offset.checked_add(bytes) {
            Some(end) if end <= length => Ok((piece, start + offset as usize, address + offset as u32)),
            _ => Err(AttachError::Outside { offset, bytes, length }),
        }
    }
}
