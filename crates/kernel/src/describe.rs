//! Descriptions of the waits of programs, collected only when no event is left.
//!
//! When the kernel finds a deadlock, it polls the waiting programs once more. The programs still wait, but every
//! pending [`describe`] that the poll passes through adds its text. During a run a description costs only the test of a
//! flag.

use pin_project_lite::pin_project;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

/// Number of threads that collect descriptions. While it is zero, the test of the flag needs no access to the thread's
/// memory.
static COLLECTING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static DESCRIBING: Cell<bool> = const { Cell::new(false) };
    static REPORT: RefCell<Report> = const { RefCell::new(Report::new()) };
}

struct Report {
    /// The text so far. An arrow joins the texts of one chain of nested descriptions, and 'and' joins different chains.
    text: String,
    /// Nesting depth of descriptions in the current poll.
    depth: usize,
    /// Nesting depth of the last text. A text that is not nested deeper begins another chain.
    last_depth: Option<usize>,
    /// Texts of waiting primitives, used if `text` is empty.
    leaves: Vec<String>,
}

impl Report {
    const fn new() -> Report {
        Report { text: String::new(), depth: 0, last_depth: None, leaves: Vec::new() }
    }

    fn enter(&mut self, text: &str) {
        match self.last_depth {
            None => (),
            Some(last) if last < self.depth => self.text.push_str(" -> "),
            Some(_) => self.text.push_str(" and "),
        }
        self.text.push_str(text);
        self.last_depth = Some(self.depth);
        self.depth += 1;
    }
}

/// Whether the descriptions of programs are being collected.
#[inline]
pub(crate) fn is_describing() -> bool {
    // A thread sees its own change of the number.
    COLLECTING.load(Ordering::Relaxed) > 0 && DESCRIBING.get()
}

/// Adds the description of a primitive that waits.
pub(crate) fn leaf(text: impl FnOnce() -> String) {
    if is_describing() {
        let text = text();
        REPORT.with_borrow_mut(|report| report.leaves.push(text));
    }
}

/// Runs `poll` and returns the descriptions collected.
pub(crate) fn collect(poll: impl FnOnce()) -> String {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            DESCRIBING.set(false);
            COLLECTING.fetch_sub(1, Ordering::Relaxed);
        }
    }
    REPORT.set(Report::new());
    COLLECTING.fetch_add(1, Ordering::Relaxed);
    DESCRIBING.set(true);
    let reset = Reset;
    poll();
    drop(reset);
    let Report { text, leaves, .. } = REPORT.replace(Report::new());
    if !text.is_empty() {
        text
    } else if !leaves.is_empty() {
        leaves.join(" and ")
    } else {
        "something outside virtual time".to_owned()
    }
}

/// Describes the wait of `future`, in case its program is in a deadlock. Descriptions nest, outermost first: `receive
/// from node 1 -> an entry of the event queue`. Descriptions that are pending side by side are joined by 'and'. Without
/// a description, the waiting primitive describes itself.
pub fn describe<D: Fn() -> String, F: Future>(text: D, future: F) -> Describe<D, F> {
    Describe { text, future }
}

pin_project! {
    /// A future with a description of its wait; see [`describe`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Describe<D, F> {
        text: D,
        #[pin]
        future: F,
    }
}

impl<D: Fn() -> String, F: Future> Future for Describe<D, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if !is_describing() {
            return this.future.poll(context);
        }
        let text = (this.text)();
        REPORT.with_borrow_mut(|report| report.enter(&text));
        let result = this.future.poll(context);
        REPORT.with_borrow_mut(|report| report.depth -= 1);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::{collect, leaf};

    #[test]
    fn descriptions_are_made_only_while_they_are_collected() {
        let text = collect(|| leaf(|| "an event".to_owned()));
        assert!(text.contains("an event"), "{text}");
        leaf(|| unreachable!("nothing is collected any more"));
    }
}
