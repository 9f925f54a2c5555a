//! What a program waits for, asked only when nothing can happen any more.
//!
//! When the kernel finds a deadlock, it polls the waiting programs once more. They still wait, but now every
//! [`describe`] on the way that is pending adds its text. During a run that costs nothing but a look at a flag.

use pin_project_lite::pin_project;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

thread_local! {
    static DESCRIBING: Cell<bool> = const { Cell::new(false) };
    static REPORT: RefCell<Report> = const { RefCell::new(Report::new()) };
}

struct Report {
    /// The text so far: parts of one chain are joined by an arrow, different chains by 'and'.
    text: String,
    /// How many descriptions the current poll is inside of.
    depth: usize,
    /// How deep the last text was; a text that is not deeper begins another chain.
    last_depth: Option<usize>,
    /// What primitives say, used where no description says more.
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

/// Whether programs are asked what they wait for.
pub(crate) fn is_describing() -> bool {
    DESCRIBING.get()
}

/// What a primitive that waits says of itself.
pub(crate) fn leaf(text: impl FnOnce() -> String) {
    if is_describing() {
        let text = text();
        REPORT.with_borrow_mut(|report| report.leaves.push(text));
    }
}

/// Runs `poll` and returns what those that wait said.
pub(crate) fn collect(poll: impl FnOnce()) -> String {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            DESCRIBING.set(false);
        }
    }
    REPORT.set(Report::new());
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

/// Says what `future` waits for, should its program be found in a deadlock. Descriptions nest, outermost first:
/// `receive from node 1 -> an entry of the event queue`. Of several that are pending side by side, each is told,
/// with an 'and' between them. Where there is none, the primitive that waits says what it is.
pub fn describe<D: Fn() -> String, F: Future>(text: D, future: F) -> Describe<D, F> {
    Describe { text, future }
}

pin_project! {
    /// A future that can say what it waits for; see [`describe`].
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
