//! The start of a messenger, and the thread that receives its envelopes.

use crate::card::Card;
use crate::messenger::envelope::Envelope;
use crate::messenger::error::MessageError;
use crate::messenger::mail::ReceivedEnvelope;
use crate::messenger::network::{Network, microengines};
use crate::messenger::{Messenger, MessengerCounters};
use crate::{ProgramError, stages};
use nicety_kernel::Sim;
use nicety_nic_core::library::Transport;
use nicety_types::Path;
use std::ops::Range;
use std::rc::Rc;

impl Messenger {
    /// Returns the microengines of the forwarding processes: the last four.
    pub fn microengines(cores: usize) -> Range<usize> {
        microengines(cores)
    }

    /// Prepares a card for messages among `ranks` hosts, and opens the channels if there are other hosts. This takes no
    /// virtual time. The forwarding processes start at the first message.
    ///
    /// # Errors
    /// When a resource of the card is too small, such as microengines.
    ///
    /// # Panics
    /// When channels were opened before.
    pub fn install(sim: &Sim, card: &Rc<Card>, ranks: u32) -> Result<Rc<Messenger>, ProgramError> {
        if ranks < 2 {
            return Ok(Messenger::local(sim, card, ranks));
        }
        let network = Network::prepare(sim, card, ranks)?;
        let messenger = Rc::new(Messenger::new(sim, card, ranks, Ok(Some(network))));
        let weak = Rc::downgrade(&messenger);
        card.on_message(move || {
            // If another process occupies the microengine, no process takes the frame.
            let _ = weak.upgrade().map(|messenger| messenger.start());
        });
        Ok(messenger)
    }

    /// Whether the forwarding processes have started.
    pub fn is_started(&self) -> bool {
        self.network.as_ref().is_some_and(Network::is_started)
    }

    /// Starts the forwarding processes, unless they already run or there are no other hosts. This takes no virtual
    /// time.
    ///
    /// # Errors
    /// When another process runs on the microengines of the forwarding processes.
    pub fn start(self: &Rc<Messenger>) -> Result<(), MessageError> {
        if let Some(network) = self.network.as_ref().filter(|network| !network.is_started()) {
            network.start(self.device.card())?;
            self.sim.spawn(self.clone().serve());
        }
        Ok(())
    }

    /// Returns the counters of invalid frames and envelopes.
    pub fn counters(&self) -> MessengerCounters {
        let frames = self.network.as_ref().map_or(0, |network| network.refused(self.device.card()));
        MessengerCounters { frames, envelopes: self.refused.get() }
    }

    /// The thread that receives envelopes. Returns only after the failure of its channel.
    async fn serve(self: Rc<Messenger>) {
        let mut path = Path::from(self.sim.now());
        loop {
            let payload = match self.device.receive(&mut path, self.network().come, 56, None).await {
                Ok(payload) => payload,
                Err(error) => return self.library.fail(error),
            };
            // If the envelope arrived while a process or this thread was busy, its path includes the wait.
            let mut its = path.clone();
            if let Some(came) = self.device.card().envelope_path(&payload)
                && came.at() <= path.at()
                && came.continued(&came, &path).is_none()
            {
                its = came;
                its.advance(stages::RECEIVER, path.at());
            }
            let envelope = Envelope::decode(&payload);
            let came = envelope.map(|envelope| self.mail.arrived(&envelope, &its));
            match (envelope, came) {
                (Some(envelope), Some(ReceivedEnvelope::Message)) => {
                    let met = self.arrive(envelope.into_message(its.clone()), its);
                    let recorder = self.device.card().recorder();
                    recorder.message_matched(envelope.message(), self.sim.now(), "not received");
                    if met {
                        self.library.early().note();
                    }
                }
                (_, Some(ReceivedEnvelope::Answer | ReceivedEnvelope::Room(_))) => {}
                _ => self.refused.set(self.refused.get() + 1),
            }
            self.library.changed.notify_all();
        }
    }
}
