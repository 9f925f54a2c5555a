//! Indirect messages: lists of up to six pages. The card replies to each list, and the host posts a failed list again.

use super::{Call, Host, HostEffect, Phase, Transfer};
use crate::{Body, Completion, Direction, Failure, LIST_PAGES, PageList, Reply, Status, ThreadId};

impl Transfer {
    /// Resets the transfer, but keeps the memory of `pages` for the next message.
    pub fn clear(&mut self) {
        let mut pages = std::mem::take(&mut self.pages);
        pages.clear();
        *self = Transfer { pages, ..Transfer::default() };
    }

    /// Returns the page list in flight, or the next list.
    fn list(&self) -> PageList {
        PageList::new(self.size, self.done, &self.pages[self.first..self.first + self.count])
            .expect("the pages have the message's bytes, and there are some left")
    }
}

impl Host {
    /// Posts the next list of a thread's message.
    pub(super) fn post_list(&mut self, thread: ThreadId, effects: &mut Vec<HostEffect>) {
        let transfer = &mut self.thread_mut(thread).transfer;
        transfer.count = LIST_PAGES.min(transfer.pages.len() - transfer.first);
        self.post_again(thread, effects);
    }

    /// Posts the list in flight again.
    fn post_again(&mut self, thread: ThreadId, effects: &mut Vec<HostEffect>) {
        let list = Body::Pages(self.threads[thread.0 as usize].transfer.list());
        match self.threads[thread.0 as usize].call {
            // The first list of a message to the card begins the exchange.
            Call::Send(channel, _, Phase::Waiting) => {
                self.post_next(channel.mailbox(Direction::ToCard), list, effects);
            }
            _ => self.post_in_exchange(thread, list, effects),
        }
    }

    /// Posts a message in the current exchange of a thread.
    fn post_in_exchange(&mut self, thread: ThreadId, body: Body, effects: &mut Vec<HostEffect>) {
        let state = &self.threads[thread.0 as usize];
        let mailbox = match state.call {
            Call::Send(channel, ..) => channel.mailbox(Direction::ToCard),
            Call::Receive(phase) => state.guards[phase.guard()].from.mailbox(Direction::ToHost),
            call => unreachable!("{call:?} has no exchange"),
        };
        let exchange = self.lane_mut(mailbox).exchange;
        self.post(mailbox, exchange, body, effects);
    }

    /// Handles the card's reply to the page list in flight.
    pub(super) fn list_done(&mut self, thread: ThreadId, reply: Reply, effects: &mut Vec<HostEffect>) {
        let guard = self.commit(thread);
        let retries = self.limits.retries;
        let transfer = &mut self.thread_mut(thread).transfer;
        let (size, bytes) = (transfer.size, transfer.list().bytes());
        // A reply with other counts does not confirm this list, so the list counts as failed.
        let moved = reply.status == Status::Ok
            && (reply.done, reply.outstanding) == (transfer.done + bytes, size - transfer.done - bytes);
        if moved {
            transfer.done += bytes;
            transfer.first += transfer.count;
            transfer.attempts = 0;
            if transfer.done == size {
                self.end(thread, guard, Ok(Completion::bytes(size)), effects);
            } else {
                self.post_list(thread, effects);
            }
        } else if transfer.attempts < retries {
            transfer.attempts += 1;
            let attempt = transfer.attempts;
            effects.push(HostEffect::Retry { thread, attempt });
            self.post_again(thread, effects);
        } else {
            self.set_phase(thread, Phase::GivingUp(guard));
            self.post_in_exchange(thread, Body::GiveUp, effects);
        }
    }

    /// If the list in flight is the message's last list, ends the call successfully. Returns whether it is.
    pub(super) fn last_list_done(
        &mut self,
        thread: ThreadId,
        guard: usize,
        effects: &mut Vec<HostEffect>,
    ) -> bool {
        let transfer = &self.threads[thread.0 as usize].transfer;
        let (size, last) = (transfer.size, transfer.first + transfer.count == transfer.pages.len());
        if last {
            self.end(thread, guard, Ok(Completion::bytes(size)), effects);
        }
        last
    }

    /// Ends the call with a failure, after the card has acknowledged that the host gave the message up.
    pub(super) fn gave_up(&mut self, thread: ThreadId, guard: usize, effects: &mut Vec<HostEffect>) {
        let Transfer { done, size, .. } = self.threads[thread.0 as usize].transfer;
        self.end(thread, guard, Err(Failure::Dma { done, outstanding: size - done }), effects);
    }

    /// Marks a thread's call as in transfer, and stops its timer. Returns the index of the call's guard.
    fn commit(&mut self, thread: ThreadId) -> usize {
        let guard = match self.threads[thread.0 as usize].call {
            Call::Receive(phase) => phase.guard(),
            _ => 0,
        };
        self.stop_timer(thread);
        self.set_phase(thread, Phase::Moving(guard));
        guard
    }
}

impl Phase {
    /// Returns the index of the guard from which the receiver has taken a message, or zero if there is none.
    fn guard(self) -> usize {
        match self {
            Phase::Committed(guard) | Phase::Moving(guard) | Phase::GivingUp(guard) => guard,
            Phase::Pinning { .. } | Phase::Waiting | Phase::Cancelling => 0,
        }
    }
}
