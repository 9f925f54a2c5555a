//! Timers of the stack: the time of the next timer, and the handling of expired timers.

use super::{ConnectionId, Event, Source, Stack};
use crate::error::Error;
use crate::tcp::{Expired, State};
use nicety_types::Time;
use std::cmp::Reverse;

impl Stack {
    /// Returns the time at which the driver must call [`Stack::on_timer`] if no other call comes before.
    pub fn next_timer(&mut self) -> Option<Time> {
        // A connection may have postponed its deadline since the entry was made. Such entries move to the new deadline.
        while let Some(&Reverse((due, id))) = self.timers.peek() {
            let Some(connection) = self.connections.get_mut(id.0).filter(|c| c.armed == Some(due)) else {
                self.timers.pop();
                continue;
            };
            let now_due = connection.due();
            if now_due.is_some_and(|d| d <= due) {
                break;
            }
            self.timers.pop();
            connection.armed = now_due;
            if let Some(later) = now_due {
                self.timers.push(Reverse((later, id)));
            }
        }
        let first = self.timers.peek().map(|&Reverse((due, _))| due);
        first.into_iter().chain(self.neighbours.next_timer()).min()
    }

    /// Whether all timers of the stack are probes of closed windows at the longest interval, and each peer has answered
    /// the last probe. This is valid directly after [`Stack::next_timer`].
    pub fn only_probes(&self) -> bool {
        let probes = |&Reverse((due, id)): &Reverse<(Time, ConnectionId)>| {
            let connection = self.connections.get(id.0).filter(|connection| connection.armed == Some(due));
            connection.is_none_or(|connection| connection.only_probes())
        };
        // The first timer usually decides.
        self.timers.peek().is_some_and(probes)
            && self.neighbours.next_timer().is_none()
            && self.timers.iter().all(probes)
    }

    /// Handles all expired timers: retransmissions, delayed acknowledgements, probes, ends of connections.
    /// [`Stack::next_ready`] then returns the sources of the resulting frames.
    pub fn on_timer(&mut self, now: Time) {
        while let Some(&Reverse((due, id))) = self.timers.peek()
            && due <= now
        {
            self.timers.pop();
            let Some(connection) = self.connections.get_mut(id.0) else { continue };
            if connection.armed == Some(due) {
                connection.armed = None;
                self.expire(now, id);
            }
        }
        let (again, lost) = self.neighbours.on_timer(now);
        for address in again {
            self.ask(address);
        }
        for source in lost {
            match source {
                Source::Connection(id) => self.give_up(now, id, Error::HostUnreachable),
                Source::Datagram(id) => {
                    self.drop_datagrams(id);
                    self.events.push_back(Event::Undeliverable(id, Error::HostUnreachable));
                }
                Source::Host => {}
            }
        }
    }

    fn expire(&mut self, now: Time, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let is_late = connection.fin_at.is_some_and(|at| at <= now);
        if is_late || connection.tcb.on_timer(now) == Expired::TimedOut {
            return self.give_up(now, id, Error::TimedOut);
        }
        self.settle(now, id, None);
    }

    /// Ends a connection with a peer that does not reply.
    fn give_up(&mut self, now: Time, id: ConnectionId, why: Error) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        connection.resolving = false;
        if why == Error::HostUnreachable || connection.tcb.state() == State::SynSent {
            // A reset could not reach the peer.
            connection.tcb.forget();
        } else {
            connection.tcb.abort();
        }
        self.settle(now, id, Some(why));
    }
}
