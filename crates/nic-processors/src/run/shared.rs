//! Words of HPU memory that processors share. Accesses to words used by atomic operations are ordered.

use crate::Processors;
use crate::contention::exclusive::Act;
use crate::contention::{AtomicWord, ObservedAccess, Word};
use crate::programs::attachments::Attachment;
use crate::programs::memory::Piece;
use crate::running::Running;
use crate::spec::{self, Level};
use nicety_hpu::{Image, OrderPoint, TrapKind};

/// The first place of scratchpads of handlers written for PsPIN, in the numbering of words: behind the largest HPU
/// memory.
const PADS: u32 = 1 << 28;

/// Most words of an application with ordered accesses, because atomic operations use them.
const ATOMIC_WORDS: usize = 1 << 16;

impl Running {
    /// Returns the shared word, and its address, of an access that must wait for its turn. None for any other access.
    pub(crate) fn ordered_word(&self, point: &OrderPoint) -> Option<(u32, SharedWord)> {
        let (address, size, atomic) = match *point {
            OrderPoint::Atomic { address, size, .. } => (address & !3, size, true),
            OrderPoint::Memory { address, size, .. } => (address & !3, size, false),
            OrderPoint::Fence => return None,
        };
        // An access to a double word is one to its first ordered word.
        let words = (address..=address.saturating_add(size - 4.min(size))).step_by(4);
        let address = match atomic {
            true => address,
            false => {
                let ordered = self.application().atomic_words.borrow();
                // Without one, the access waits only for its memory.
                words.clone().find(|&word| ordered.contains(word))?
            }
        };
        let shared = shared_word(&self.attachment, address)?;
        if atomic {
            words.for_each(|word| order_word(&self.attachment, word));
        }
        Some((address, shared))
    }

    /// Orders accesses to a word that the slice may poll, because it has used up its cycles. So a store to the word
    /// by another handler is seen at its time.
    pub(crate) fn orders_polled(&self) {
        let attachment = &self.attachment;
        let polled = self.thread.state.borrow().context.polled(&attachment.program.handlers.image);
        for word in polled.into_iter().filter(|&word| shared_word(attachment, word).is_some()) {
            order_word(attachment, word);
        }
    }

    /// Orders accesses to the word of the next store. An atomic store may follow a fence.
    pub(crate) fn orders_next(&self) {
        let attachment = &self.attachment;
        let state = self.thread.state.borrow();
        let stored = state.context.next_store(&attachment.program.handlers.image);
        for word in stored.filter(|&word| shared_word(attachment, word).is_some()) {
            order_word(attachment, word);
        }
    }
}

impl Processors {
    /// Returns the words that are targets of handlers' atomic operations, those with the most accesses first.
    pub fn atomic_words(&self) -> Vec<AtomicWord> {
        let memories = &self.hpu.memories;
        let programs = self.attachments.programs.borrow();
        let is_data = |place: u32| {
            programs.iter().any(|program| {
                let (start, bytes) = (program.data.start, program.data.bytes.borrow().len());
                place.checked_sub(start).is_some_and(|offset| (offset as usize) < bytes)
            })
        };
        self.contention.atomic_words(|place| match place {
            PADS.. => Level::L1,
            place if is_data(place) => memories.place(spec::Piece::Data),
            _ => memories.place(spec::Piece::State),
        })
    }

    /// Returns the bytes that handlers share now: all states, and the variables of all programs.
    pub fn shared_bytes(&self) -> [Vec<u8>; 2] {
        let mut all = [Vec::new(), Vec::new()];
        for attachment in self.attachments.attached.borrow().iter().flatten() {
            all[0].extend_from_slice(&attachment.state.bytes.borrow());
        }
        for program in self.attachments.programs.borrow().iter() {
            all[1].extend_from_slice(&program.data.bytes.borrow());
        }
        all
    }

    /// Reports an access of a run to a word of its own memory.
    pub(crate) fn comes_to(&self, word: &SharedWord, access: &WordAccess<'_>) {
        let SharedWord { place, of, offset } = *word;
        let WordAccess { run, image, pc, act, changed } = *access;
        let seen =
            ObservedAccess { word: Word::Hpu(place), run, image, pc, now: self.sim.now(), act, changed };
        self.contention.see(&seen, || format!("byte {offset} of {of}"));
    }

    /// Carries out a command that works atomically on 8 bytes of a handler's own memory. `act` does the work, and
    /// returns whether their value changed.
    pub(crate) fn atomically<R>(
        &self,
        running: &mut Running,
        address: u32,
        kind: Act,
        act: impl FnOnce(&mut Running) -> Result<(R, bool), TrapKind>,
    ) -> Result<R, TrapKind> {
        let pc = running.thread.state.borrow().context.pc();
        if shared_word(&running.attachment, address).is_some() {
            order_word(&running.attachment, address);
            order_word(&running.attachment, address + 4);
        }
        let (result, changed) = act(running)?;
        if let Some(word) = shared_word(&running.attachment, address) {
            let image = &running.attachment.program.handlers.image;
            let access = WordAccess { run: running.number, image, pc, act: kind, changed };
            self.comes_to(&word, &access);
        }
        Ok(result)
    }

    /// Returns a handler's access that changes a word, at this instant and place.
    pub fn seen<'r>(&self, running: &'r Running, word: Word, pc: u32, act: Act) -> ObservedAccess<'r> {
        let image = &running.attachment.program.handlers.image;
        ObservedAccess { word, run: running.number, image, pc, now: self.sim.now(), act, changed: true }
    }
}

/// An access to a word that processors share.
pub(crate) struct WordAccess<'i> {
    /// The number of the handler's run.
    pub(crate) run: u64,
    pub(crate) image: &'i Image,
    pub(crate) pc: u32,
    pub(crate) act: Act,
    /// Whether it has changed the word.
    pub(crate) changed: bool,
}

/// A word of HPU memory shared between processors.
pub(crate) struct SharedWord {
    /// Its offset in the card's HPU memory.
    place: u32,
    of: &'static str,
    /// Its offset in `of`.
    offset: u32,
}

/// Returns the shared word at an address.
fn shared_word(attachment: &Attachment, address: u32) -> Option<SharedWord> {
    let (state, data) = (&attachment.state, &attachment.program.data);
    let inside = |piece: &Piece, base: u32| {
        let offset = address.checked_sub(base)?;
        (offset as usize + 4 <= piece.bytes.borrow().len()).then_some(offset)
    };
    if let Some(offset) = inside(state, attachment.state_address()) {
        return Some(SharedWord { place: state.start + offset, of: "the state", offset });
    }
    if let Some(offset) = inside(data, attachment.program.handlers.data_address()) {
        return Some(SharedWord { place: data.start + offset, of: "the program's data", offset });
    }
    attachment.program.handlers.pspin.as_ref()?;
    let offset = attachment.pad_offset(address, 4)? as u32;
    Some(SharedWord { place: PADS + offset, of: "the scratchpads", offset })
}

/// Orders accesses to this word from now on, because an atomic operation uses it.
fn order_word(attachment: &Attachment, address: u32) {
    let mut words = attachment.application().atomic_words.borrow_mut();
    if words.len() < ATOMIC_WORDS {
        words.insert(address);
    }
}
