//! The reports of handlers and of processes to a session.

use crate::machine::CoreView;
use crate::session::{Inner, Session, Step};
use crate::subject::{CONTEXTS, ProcessView, Subject};
use nicety_hpu::{Context, Image, Trap};
use nicety_nic_nfp::{Messenger, Outcome, observe as processes};
use nicety_nic_processors::observe::{Instruction, Observe, ObservedRun};
use nicety_nic_processors::running::{Ended, Running};
use std::rc::Rc;

impl Observe for Session {
    fn begins(&self, running: &mut Running) {
        let (thread, run) = (running.thread.clone(), ObservedRun::of(running));
        self.inner.borrow_mut().begins(run.core, Subject::Handler { thread, run });
    }

    fn instruction(&self, at: &mut Instruction<'_, '_>) {
        let time = at.time();
        let Instruction { run, image, .. } = *at;
        let (context, space) = (&mut *at.context, &mut *at.space);
        let step = &mut Step { core: run.core, time, image, context, space, outer: None };
        self.inner.borrow_mut().instruction(step);
    }

    fn traps(&self, running: &mut Running, trap: &Trap) {
        let inner = &mut *self.inner.borrow_mut();
        let core = running.thread.core;
        let image = running.attachment.program.handlers.image.clone();
        let (mut context, time) = {
            let context = running.thread.state.borrow().context.clone();
            let time = running.edges.at(context.cycle());
            (context, time)
        };
        running.with_space(|space| {
            let step = &mut Step { core, time, image: &image, context: &mut context, space, outer: None };
            inner.traps(step, trap);
        });
    }

    fn ends(&self, running: &mut Running, _: &Ended) {
        self.inner.borrow_mut().ends(running.thread.core);
    }
}

impl Inner {
    /// A handler or a process begins on a core.
    fn begins(&mut self, core: usize, subject: Subject) {
        self.runs += 1;
        let old = self.machine.cores.remove(&core);
        let (last, before) = old.map_or((None, None), |view| (view.last, view.before));
        let view = CoreView { subject, running: true, last, before, hit: None, deferred: None };
        self.machine.cores.insert(core, view);
    }

    fn ends(&mut self, core: usize) {
        self.step_ended |= self.machine.alone() == Some(core);
        if let Some(view) = self.machine.cores.get_mut(&core) {
            view.running = false;
            // There is no later instruction of it to stop before.
            self.passed = self.passed.or(view.deferred.take().map(|(index, _)| index));
        }
    }

    /// Returns the view of a process, if its program is debugged.
    fn process(&mut self, process: &processes::ObservedProcess) -> Option<&mut ProcessView> {
        match &mut self.machine.cores.get_mut(&thread_of(process))?.subject {
            Subject::Process(view) if view.process.number == process.number => Some(view),
            _ => None,
        }
    }
}

/// The number of a process's context.
const fn thread_of(process: &processes::ObservedProcess) -> usize {
    process.place.core * CONTEXTS + process.place.context
}

/// The names of a program's functions, which identify it in several runs.
fn functions_of(image: &Image) -> String {
    let mut functions: Vec<&str> = image.functions().collect();
    functions.sort_unstable();
    functions.join(" ")
}

impl processes::Observe for Session {
    fn begins(&self, process: &Rc<processes::ObservedProcess>) {
        let inner = &mut *self.inner.borrow_mut();
        let functions = functions_of(&process.image);
        let debugged = match &inner.functions {
            Some(known) => *known == functions,
            None => !Messenger::is_of(&process.image),
        };
        if debugged {
            inner.functions.get_or_insert(functions);
            let view = ProcessView::new(process);
            inner.first.get_or_insert_with(|| view.name.clone());
            inner.begins(thread_of(process), Subject::Process(Box::new(view)));
        } else {
            inner.machine.cores.remove(&thread_of(process));
        }
    }

    fn instruction(&self, at: &mut processes::Instruction<'_, '_>) {
        let inner = &mut *self.inner.borrow_mut();
        let Some(view) = inner.process(at.process) else { return };
        view.outer.get_or_insert_with(|| at.outer.clone());
        inner.instruction(&mut step_of(at));
    }

    fn rests(&self, process: &processes::ObservedProcess, context: &Context, stack: processes::Stack<'_>) {
        if let Some(view) = self.inner.borrow_mut().process(process) {
            view.rests(context, stack);
        }
    }

    fn traps(&self, at: &mut processes::Instruction<'_, '_>, trap: &Trap) {
        let inner = &mut *self.inner.borrow_mut();
        if inner.process(at.process).is_some() {
            inner.traps(&mut step_of(at), trap);
        }
    }

    fn ends(&self, process: &processes::ObservedProcess, _: &Outcome) {
        let inner = &mut *self.inner.borrow_mut();
        if inner.process(process).is_some() {
            inner.ends(thread_of(process));
        }
    }
}

fn step_of<'s, 'm>(at: &'s mut processes::Instruction<'_, 'm>) -> Step<'s, 'm> {
    Step {
        core: thread_of(at.process),
        time: at.time(),
        image: at.image,
        context: at.context,
        space: at.space,
        outer: Some(at.outer),
    }
}
