//! The reason for the end of a run: the process that failed, and its failure.

use crate::launcher::Launcher;
use crate::pages::End;
use crate::turns::{Turns, written_over};
use nicety::Error;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

impl Turns {
    /// Returns the error if a process or its MPI has requested the end of all processes.
    pub(crate) fn aborted(&self) -> Option<Error> {
        let why = |rank| match self.pages.end_of(rank) {
            Some(End::Abort(code)) => Some(format!(
                "rank {rank} called MPI_Abort with code {code}, which ends all processes; the output of the \
                 rank may say why"
            )),
            Some(End::Error) => Some(format!(
                "MPI ended all processes after an error of rank {rank}; the output of the rank says why"
            )),
            _ => None,
        };
        (0..self.pages.ranks()).find_map(why).map(Error::Program)
    }

    /// Returns whether a process exited with a status other than 0 before it closed the network.
    fn failed(&self, rank: u32) -> bool {
        matches!(self.pages.end_of(rank), Some(End::Exit(1..)))
    }

    /// Returns the exit status of a process, if known.
    fn status_of(&self, rank: u32) -> Option<ExitStatus> {
        match self.pages.end_of(rank) {
            Some(End::Exit(status)) => Some(ExitStatus::from_raw(status << 8)),
            _ => self.processes.status_of(rank, &self.pages),
        }
    }

    /// Returns the signal that ended a process, if it is known.
    pub(crate) fn signal_of(&self, rank: u32) -> Option<i32> {
        self.status_of(rank).and_then(|status| status.signal())
    }

    /// Returns the exit status of a process, if it is known and not 0.
    pub(crate) fn failure_of(&self, rank: u32) -> Option<i32> {
        self.status_of(rank).and_then(|status| status.code()).filter(|code| *code != 0)
    }

    /// Returns whether a process ended by exit, not by a signal.
    pub(crate) fn has_exited(&self, rank: u32) -> bool {
        self.status_of(rank).is_some_and(|status| status.code().is_some())
    }

    /// Returns whether a signal ended a process. Signals that launchers send do not count.
    fn has_crashed(&self, rank: u32) -> bool {
        self.signal_of(rank).is_some_and(|signal| !matches!(signal, libc::SIGKILL | libc::SIGTERM))
    }

    /// Returns the process that caused the end, given the dead process `found`. A launcher ends the other processes by SIGKILL or
    /// SIGTERM.
    fn first(&self, found: u32) -> u32 {
        let is_gone = |rank| {
            self.processes.is_gone(rank, &self.pages) || self.processes.has_ended_early(rank, &self.pages)
        };
        let has_crashed = |rank: &u32| self.has_crashed(*rank) && is_gone(*rank);
        let mut ranks = 0..self.pages.ranks();
        let failed = ranks.clone().find(|&rank| self.failed(rank) && is_gone(rank));
        failed.or_else(|| ranks.find(has_crashed)).unwrap_or(found)
    }

    /// Returns a forked process that has requested the network, with the rank of its parent.
    fn fork(&self) -> Option<(u32, u32)> {
        (0..self.pages.ranks()).find_map(|rank| self.pages.fork_of(rank).map(|pid| (rank, pid)))
    }

    /// Returns the error for a range of a process's memory that cannot be accessed.
    pub(crate) fn unreachable(
        &self,
        rank: u32,
        what: &str,
        (address, bytes): (u64, u64),
        error: &io::Error,
    ) -> Error {
        if error.raw_os_error() == Some(libc::ESRCH) {
            return self.died(rank);
        }
        Error::Program(format!(
            "{bytes} bytes at {address:#x} of the process{what} cannot be reached: {error}; the simulation \
             reads and writes the memory of its processes (ptrace(2) names the possible reasons)"
        ))
    }

    pub(crate) fn died(&self, rank: u32) -> Error {
        let rank = self.died.get().unwrap_or_else(|| self.first(rank));
        self.died.set(Some(rank));
        if self.pages.is_damaged(rank) {
            return written_over(rank);
        }
        let status = self.status_of(rank);
        let how = match status.map(|status| (status.code(), status.signal())) {
            Some((Some(code), _)) => format!(" with status {code}"),
            Some((_, Some(signal))) => format!(", by signal {signal}{},", name_of(signal)),
            _ => String::new(),
        };
        let before = match self.pages.process(rank) {
            Some(_) => "closed the network (by MPI_Finalize, PtlFini, or nicety.Main in Go)",
            None => "opened the network (by MPI_Init, PtlInit, or nicety.Main in Go)",
        };
        Error::Program(format!(
            "the process of rank {rank} ended{how} before it had {before}; its output may say why"
        ))
    }

    /// Returns the error if processes use another MPI than their launcher.
    fn mixed(&self) -> Option<Error> {
        let (rank, (own, library)) =
            (0..self.pages.ranks()).find_map(|rank| Some((rank, self.pages.other_mpi(rank)?)))?;
        let (name, option) = match own {
            Launcher::Openmpi => ("Open MPI", "openmpi"),
            _ => ("MPICH", "mpich"),
        };
        let mpiexec = &self.processes.mpiexec;
        let of = if own == Launcher::Openmpi { "MPICH" } else { "Open MPI" };
        Some(Error::Input(format!(
            "two MPIs: the launcher {mpiexec} is from {of}, but rank {rank} uses {name}, {library}; use the \
             launcher of {name}, with --launcher {option}, or a program for {of}"
        )))
    }

    /// Corrects the text of a deadlock: the wait of a polling process begins with its first look. The kernel has recorded the
    /// start of the last look.
    fn with_begins(&self, text: &str) -> String {
        let begin = |line: &str| {
            let (head, wait) = line.split_once("program 'rank ")?;
            let (rank, wait) = wait.split_once("', waits since ")?;
            let (_, why) = wait.split_once(" for ")?;
            let rank = rank.parse().ok().filter(|rank| *rank < self.pages.ranks())?;
            let since = self.polls_since(rank)?;
            Some(format!("{head}program 'rank {rank}', waits since {since} for {why}"))
        };
        let lines = text.split('\n').map(|line| begin(line).unwrap_or_else(|| line.to_owned()));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Returns the error of a run. If a process or its start caused the error, returns an error that names this cause.
    pub(crate) fn explain(&self, error: Error) -> Error {
        if error == Error::Interrupted {
            return error;
        }
        if let Some(rank) = self.pages.damaged() {
            return written_over(rank);
        }
        if let Some(mixed) = self.mixed() {
            return mixed;
        }
        if let Some(aborted) = self.aborted() {
            return aborted;
        }
        let died = self.died.get();
        if let Some(rank) = died.filter(|&rank| self.failed(rank)) {
            return self.died(rank);
        }
        if let (Some((rank, pid)), Some(_)) = (self.fork(), died.filter(|&rank| !self.has_crashed(rank))) {
            return Error::Program(format!(
                "process {pid}, a fork of rank {rank}, tried to open the network, which only one process of \
                 a rank may use, and the processes ended; leave MPI to the process that has called MPI_Init; \
                 their output may say more"
            ));
        }
        let without_network = |rank: &u32| {
            (0..self.pages.ranks()).all(|rank| self.pages.process(rank).is_none())
                && self.status_of(*rank).is_some_and(|status| status.success())
        };
        if let Some(rank) = died.filter(|rank| !without_network(rank)) {
            return self.died(rank);
        }
        let error = match error {
            Error::Deadlock(text) => Error::Deadlock(self.with_begins(&text)),
            other => other,
        };
        let missing: Vec<u32> =
            (0..self.pages.ranks()).filter(|&rank| self.pages.process(rank).is_none()).collect();
        let (Error::Deadlock(_) | Error::Program(_), [first, ..]) = (&error, missing.as_slice()) else {
            return error;
        };
        let who = match missing.len() {
            all if all == self.pages.ranks() as usize => "none of its processes has".to_owned(),
            1 => format!("rank {first} has not"),
            several => format!("{several} ranks, the first of them rank {first}, have not"),
        };
        // A program that failed before, or a launcher that starts nothing, has already printed an error.
        if let Some(status) = self.processes.ended().filter(|status| !status.success()) {
            return Error::Input(format!(
                "the program ended with {status}; its output, or the launcher's, may say why; {who} opened \
                 an endpoint of libfabric"
            ));
        }
        Error::Input(format!(
            "the program ended without the network: {who} opened an endpoint of libfabric; it has to use \
             MPI over libfabric, libfabric itself or Portals 4 (nicety cc --host), linked dynamically, or \
             go/nicety; it has to start the number of processes in -n"
        ))
    }
}

/// Returns the name of a signal that ends programs, in brackets.
const fn name_of(signal: i32) -> &'static str {
    match signal {
        libc::SIGABRT => " (SIGABRT)",
        libc::SIGBUS => " (SIGBUS)",
        libc::SIGFPE => " (SIGFPE)",
        libc::SIGHUP => " (SIGHUP)",
        libc::SIGILL => " (SIGILL)",
        libc::SIGINT => " (SIGINT)",
        libc::SIGKILL => " (SIGKILL)",
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGTERM => " (SIGTERM)",
        _ => "",
    }
}
