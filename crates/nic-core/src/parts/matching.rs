//! Matching of messages with receives, without simulated time.
//!
//! A message goes to the oldest posted receive that takes it. A receive gets the oldest waiting message that it takes.
//! [`Matching`] keeps a list of receives and a list of messages. Its owner searches one list, and appends to the other
//! list if the search fails. Simulated time may pass between the search and the append, for example for the
//! comparisons. During this time the owner must not match another item.

use std::collections::VecDeque;

/// Posted receives, and messages that arrived before their receives. Both lists are in order.
#[derive(Debug)]
pub struct Matching<R, M> {
    receives: VecDeque<R>,
    messages: VecDeque<M>,
}

impl<R, M> Default for Matching<R, M> {
    fn default() -> Matching<R, M> {
        Matching { receives: VecDeque::new(), messages: VecDeque::new() }
    }
}

impl<R, M> Matching<R, M> {
    /// Removes and returns the oldest receive for which `takes` returns true. Also returns the number of receives
    /// compared.
    pub fn take_receive(&mut self, takes: impl Fn(&R) -> bool) -> (Option<R>, u64) {
        take_first(&mut self.receives, takes)
    }

    /// Removes and returns the oldest message for which `takes` returns true. Also returns the number of messages
    /// compared.
    pub fn take_message(&mut self, takes: impl Fn(&M) -> bool) -> (Option<M>, u64) {
        take_first(&mut self.messages, takes)
    }

    /// Posts a receive that takes no waiting message.
    pub fn post(&mut self, receive: R) {
        self.receives.push_back(receive);
    }

    /// Keeps a message that no posted receive takes.
    pub fn keep(&mut self, message: M) {
        self.messages.push_back(message);
    }

    /// Withdraws the posted receive for which `is` returns true. `None` if a message has taken it.
    pub fn withdraw(&mut self, is: impl Fn(&R) -> bool) -> Option<R> {
        take_first(&mut self.receives, is).0
    }

    /// The posted receives, in order.
    pub fn receives(&self) -> impl ExactSizeIterator<Item = &R> {
        self.receives.iter()
    }

    /// The messages without a receive, in order.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = &M> {
        self.messages.iter()
    }
}

fn take_first<T>(queue: &mut VecDeque<T>, takes: impl Fn(&T) -> bool) -> (Option<T>, u64) {
    match queue.iter().position(takes) {
        Some(at) => (queue.remove(at), at as u64 + 1),
        None => (None, queue.len() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Receives and messages, each with its number and its tag. A receive without a tag takes any message.
    type Tagged = Matching<(usize, Option<u8>), (usize, u8)>;

    fn takes(wanted: Option<u8>, tag: u8) -> bool {
        wanted.is_none_or(|wanted| wanted == tag)
    }

    /// Adds a message. Returns the number of the receive that takes it.
    fn come(lists: &mut Tagged, number: usize, tag: u8) -> Option<usize> {
        let found = lists.take_receive(|receive| takes(receive.1, tag)).0;
        if found.is_none() {
            lists.keep((number, tag));
        }
        found.map(|receive| receive.0)
    }

    /// Posts a receive. Returns the number of the message that it takes.
    fn post(lists: &mut Tagged, number: usize, tag: Option<u8>) -> Option<usize> {
        let found = lists.take_message(|message| takes(tag, message.1)).0;
        if found.is_none() {
            lists.post((number, tag));
        }
        found.map(|message| message.0)
    }

    #[test]
    fn the_oldest_that_fits_is_taken_and_comparisons_are_counted() {
        let mut lists = Tagged::default();
        assert_eq!(post(&mut lists, 0, Some(7)), None);
        assert_eq!(post(&mut lists, 1, None), None);
        assert_eq!(post(&mut lists, 2, Some(5)), None);
        // The message has tag 5. The receive of any tag is older than the receive of tag 5.
        assert_eq!(lists.take_receive(|receive| takes(receive.1, 5)), (Some((1, None)), 2));
        assert_eq!(lists.take_receive(|receive| takes(receive.1, 9)), (None, 2));
        assert_eq!(come(&mut lists, 3, 5), Some(2));
        assert_eq!(come(&mut lists, 4, 5), None);
        assert_eq!(come(&mut lists, 5, 6), None);
        assert_eq!(lists.take_message(|message| message.1 == 6), (Some((5, 6)), 2));
        assert_eq!((lists.receives().len(), lists.messages().len()), (1, 1));
        assert_eq!(post(&mut lists, 6, None), Some(4));
        assert_eq!(lists.take_message(|_| true), (None, 0));
        assert_eq!(lists.withdraw(|receive| receive.0 == 0), Some((0, Some(7))));
        assert_eq!((lists.withdraw(|receive| receive.0 == 0), come(&mut lists, 7, 7)), (None, None));
    }

    proptest! {
        /// Compares the lists with the definition. Every pair consists of the oldest message and the oldest receive
        /// that match. No message or receive is lost or in two pairs, and no message that is left matches a receive
        /// that is left.
        #[test]
        fn no_message_is_lost_or_taken_twice(steps in prop::collection::vec((any::<bool>(), 0..4u8), 0..80)) {
            let mut lists = Tagged::default();
            let (mut receives, mut messages) = (Vec::new(), Vec::new());
            for (number, (is_message, tag)) in steps.into_iter().enumerate() {
                if is_message {
                    let fits = receives.iter().position(|&(_, wanted)| takes(wanted, tag));
                    let expected = fits.map(|at| receives.remove(at).0);
                    prop_assert_eq!(come(&mut lists, number, tag), expected);
                    if expected.is_none() {
                        messages.push((number, tag));
                    }
                } else {
                    let wanted = (tag > 0).then_some(tag);
                    let fits = messages.iter().position(|&(_, tag)| takes(wanted, tag));
                    let expected = fits.map(|at| messages.remove(at).0);
                    prop_assert_eq!(post(&mut lists, number, wanted), expected);
                    if expected.is_none() {
                        receives.push((number, wanted));
                    }
                }
                prop_assert!(lists.receives().eq(&receives) && lists.messages().eq(&messages));
                for (receive, message) in receives.iter().flat_map(|r| messages.iter().map(move |m| (r, m))) {
                    prop_assert!(!takes(receive.1, message.1), "{receive:?} and {message:?} are both left");
                }
            }
        }
    }
}
