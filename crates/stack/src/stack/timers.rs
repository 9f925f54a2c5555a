//! Times: when something is due, and what is done then.

use super::{ConnectionId, Event, Source, Stack};
use crate::error::Error;
use nicety_types::Time;
use smoltcp::socket::tcp::State;
use std::cmp::Reverse;

impl Stack {
    /// When [`Stack::on_timer`] has something to do, if nothing else happens.
    pub fn next_timer(&mut self) -> Option<Time> {
        // Deadlines that were put off since are moved to where they are now.
        while let Some(&Reverse((due, id))) = self.timers.peek() {
            let Some(connection) = self.connections.get_mut(id.0).filter(|c| c.armed == Some(due)) else {
                self.timers.pop();
                continue;
            };
            let spec = &self.spec;
            let stalled = connection.waiting_since.map(|since| since + spec.timeout);
            let own = [connection.watch.probe_at, stalled, connection.fin_at, connection.rescue_at];
            let smoltcp = match self.engine.wish(due, &connection.sockets) {
                crate::engine::Wish::At(at) => Some(at),
                crate::engine::Wish::Now => Some(due),
                crate::engine::Wish::Never => None,
            };
            let now_due = own.into_iter().flatten().chain(smoltcp).min();
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

    /// Does what is due: retransmissions, delayed acknowledgements, probes, ends of connections. What there is to
    /// send then is in [`Stack::next_ready`].
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
        if connection.waiting_since.is_some_and(|since| since + self.spec.timeout <= now) {
            return self.give_up(now, id, Error::TimedOut);
        }
        if connection.fin_at.is_some_and(|at| at <= now) {
            return self.give_up(now, id, Error::TimedOut);
        }
        let probe = connection.watch.probe_at.is_some_and(|at| at <= now);
        let rescue = connection.rescue_at.is_some_and(|at| at <= now);
        if probe || rescue {
            connection.rescue_at = None;
            connection.watch.probed();
            if connection.lacks_fin_only() {
                if let Some(mut packet) = connection.fin_again(self.link.room()) {
                    self.seal(&mut packet);
                    if let Some(connection) = self.connections.get_mut(id.0) {
                        connection.reply(packet);
                    }
                }
            } else {
                connection.nudge(&mut self.engine, now);
            }
            self.counters.recoveries += 1;
        }
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        // All else comes with the next packet: smoltcp forgets a fast retransmission that it finds no room for.
        if connection.view().state() == State::TimeWait {
            self.engine.expire(now, &mut connection.sockets);
        }
        self.settle(now, id, None);
    }

    /// Ends a connection whose peer does not answer.
    fn give_up(&mut self, now: Time, id: ConnectionId, why: Error) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        connection.resolving = false;
        let state = connection.view().state();
        connection.socket().abort();
        if why == Error::HostUnreachable || state == State::SynSent {
            // Nobody is there to be told of it.
            connection.replies.clear();
            self.engine.drop_output(now, &mut connection.sockets);
        }
        self.settle(now, id, Some(why));
    }
}
