//! Starts programs as processes, observes their state, and ends them.

use crate::launcher::Launcher;
use crate::offload::Offload;
use crate::pages::Pages;
use crate::protocol::LAUNCHER_FILE;
use crate::words::Words;
use nicety::Error;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The library that is loaded into processes.
const LIBRARY: (&str, &[u8]) = ("libnicety-fi", nicety_shim::PROVIDER);
/// The library that is loaded before it, if cards execute collective operations.
const OFFLOAD: (&str, &[u8]) = ("libnicety-offload", nicety_shim::OFFLOAD);
/// Real time in which a process must end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// Real time that a process may take for an exec from one program to the next.
const BEGINS: Duration = Duration::from_millis(10);
/// Returns the real time that a launcher has to end by itself after a process has died. In this time, Open MPI's launcher
/// forwards the output of processes.
const fn ends_itself(launcher: Launcher) -> Duration {
    Duration::from_secs(if matches!(launcher, Launcher::Openmpi) { 4 } else { 1 })
}
/// Maximum number of searches for leftover processes. Each search may find processes that were started after the previous one.
const SWEEPS: u32 = 20;

/// The processes of a run. They end when this value is dropped.
pub(crate) struct Processes {
    launcher: Launcher,
    /// The launcher; without a launcher, the processes by rank.
    children: RefCell<Vec<Started>>,
    /// The watched processes, by process id.
    known: RefCell<BTreeMap<u32, OwnedFd>>,
    /// The output of the processes, if their launcher does not forward it.
    words: RefCell<Option<Words>>,
    /// The launcher's program.
    pub(crate) mpiexec: String,
}

struct Started {
    child: Child,
    status: Option<ExitStatus>,
}

impl Started {
    /// Returns the exit status once the process has ended. Later calls return `None`, because the system forgets the status.
    fn ended(&mut self) -> Option<ExitStatus> {
        self.status = self.status.or_else(|| self.child.try_wait().unwrap_or(None));
        self.status
    }
}

/// The program to start, and the way to start it.
pub(crate) struct Program<'p> {
    pub(crate) launcher: Launcher,
    /// The launcher's program.
    pub(crate) mpiexec: &'p str,
    pub(crate) command: &'p [String],
    /// The folder of the library. It is kept for later runs.
    pub(crate) folder: &'p Path,
    /// Whether the output of processes goes to standard error.
    pub(crate) to_stderr: bool,
    /// The collective operations that cards execute, if any.
    pub(crate) offload: Option<&'p Offload>,
}

/// Returns a hash of the libraries that this build loads into processes, in hexadecimal. It is a part of folder names. So builds
/// of one version do not overwrite each other's libraries.
pub fn build() -> String {
    let mut hasher = DefaultHasher::new();
    [LIBRARY, OFFLOAD].hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Installs the library in a folder, unless it exists already.
pub(crate) fn install(folder: &Path) -> io::Result<PathBuf> {
    put(folder, LIBRARY)
}

fn put(folder: &Path, (name, bytes): (&str, &[u8])) -> io::Result<PathBuf> {
    // The name is unique, because two threads of this process may install at the same time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    let path = folder.join(format!("{name}.so"));
    if fs::read(&path).is_ok_and(|there| there == bytes) {
        return Ok(path);
    }
    fs::create_dir_all(folder)?;
    let beside = folder.join(format!("{name}.{}.new", std::process::id()));
    fs::write(&beside, bytes)?;
    fs::rename(&beside, &path)?;
    Ok(path)
}

/// Returns the environment variables for the processes of ranks. Launchers do not get these variables.
fn variables(
    pages: &Pages,
    libraries: &[PathBuf],
    program: &Program<'_>,
    words: Option<&Words>,
) -> Vec<(&'static str, String)> {
    let folder = program.folder.display().to_string();
    let library = libraries.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(":");
    let preload = match std::env::var("LD_PRELOAD") {
        Ok(others) if !others.is_empty() => format!("{library}:{others}"),
        _ => library.clone(),
    };
    let mut all = vec![
        ("NICETY_EXEC", pages.path()),
        ("LD_PRELOAD", preload),
        ("FI_PROVIDER_PATH", folder),
        ("FI_PROVIDER", "nicety".to_owned()),
    ];
    let more: &[(&str, &str)] = match program.launcher {
        Launcher::Mpich => &[("MPIR_CVAR_CH4_NETMOD", "ofi"), ("MPIR_CVAR_NOLOCAL", "1")],
        Launcher::Openmpi => &[
            ("OMPI_MCA_pml", "cm"),
            ("OMPI_MCA_mtl", "ofi"),
            ("OMPI_MCA_btl", "self"),
            ("OMPI_MCA_osc", "^sm,ucx,rdma"),
            // Every 10 ms by the CPU's counter, Open MPI also looks at files between its looks at the network. Runs would
            // depend on this machine's time; no network of these runs uses files. Zero: never.
            ("OMPI_MCA_mpi_event_tick_rate", "0"),
        ],
        Launcher::None => &[],
    };
    all.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
    all.extend(words.map(|words| ("NICETY_WORDS", words.path().to_owned())));
    all.extend(program.offload.iter().flat_map(|offload| offload.variables()));
    all
}

/// Returns a command that starts in a new process group.
fn command(program: &Program<'_>, words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).process_group(0);
    // A background process group may not read from a terminal.
    if io::stdin().is_terminal() {
        command.stdin(Stdio::null());
    }
    if program.to_stderr {
        command.stdout(io::stderr());
    }
    command
}

fn commands(
    program: &Program<'_>,
    pages: &Pages,
    libraries: &[PathBuf],
    words: Option<&Words>,
) -> Vec<Command> {
    let variables = variables(pages, libraries, program, words);
    let number = pages.ranks().to_string();
    let launched = |option: &[&str], both: &dyn Fn(&str, &str) -> Vec<String>| {
        let mut words = vec![program.mpiexec.to_owned()];
        words.extend(option.iter().map(|option| (*option).to_owned()));
        words.extend(["-n".to_owned(), number.clone()]);
        words.extend(variables.iter().flat_map(|(name, value)| both(name, value)));
        words.extend_from_slice(program.command);
        vec![command(program, &words)]
    };
    match program.launcher {
        Launcher::Mpich => {
            launched(&[], &|name, value| vec!["-env".to_owned(), name.to_owned(), value.to_owned()])
        }
        Launcher::Openmpi => {
            launched(&["--oversubscribe"], &|name, value| vec!["-x".to_owned(), format!("{name}={value}")])
        }
        Launcher::None => (0..pages.ranks())
            .map(|rank| {
                let mut one = command(program, program.command);
                one.envs(variables.iter().map(|(name, value)| (*name, value)));
                one.env("NICETY_RANK", rank.to_string());
                one
            })
            .collect(),
    }
}

/// Returns the exit status of a process that has ended and that its parent has not reaped.
fn zombie(pid: u32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Fields after the name: the state is the third field of the line, and the exit status the 52nd.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    if fields[0] != "Z" {
        return None;
    }
    fields.get(52 - 3)?.parse().ok()
}

/// Returns the exit status of a reaped process, if the kernel still has it.
fn reaped(process: &OwnedFd) -> Option<i32> {
    /// The first version of `struct pidfd_info` in linux/pidfd.h.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        mask: u64,
        cgroup: u64,
        numbers: [u32; 11],
        exit_code: i32,
    }
    /// `_IOWR(0xff, 11, struct pidfd_info)`.
    const GET_INFO: u64 = 3 << 30 | (size_of::<Info>() as u64) << 16 | 0xff << 8 | 11;
    const EXIT: u64 = 1 << 3;
    let mut info = Info { mask: EXIT, ..Info::default() };
    // SAFETY: the descriptor is open, and the structure has the length in the request number.
    let error = unsafe { libc::ioctl(process.as_raw_fd(), GET_INFO as _, &raw mut info) };
    (error == 0 && info.mask & EXIT != 0).then_some(info.exit_code)
}

/// Removes the session folder of an Open MPI `mpiexec` with this process id: `ompi.HOST.USER/pid.NUMBER`. Also removes the folder
/// above it, if that is empty.
fn remove_session(mpiexec: u32) {
    let places = ["TMPDIR", "TEMP", "TMP"].into_iter().find_map(std::env::var_os);
    let places = places.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    // SAFETY: the call has no conditions.
    let user = unsafe { libc::geteuid() };
    for folder in fs::read_dir(places).into_iter().flatten().flatten() {
        let name = folder.file_name();
        let is_ours = name
            .to_str()
            .is_some_and(|name| name.starts_with("ompi.") && name.ends_with(&format!(".{user}")))
            && folder.metadata().is_ok_and(|found| found.is_dir() && found.uid() == user);
        if is_ours && fs::remove_dir_all(folder.path().join(format!("pid.{mpiexec}"))).is_ok() {
            let _ = fs::remove_dir(folder.path());
        }
    }
}

/// Returns the environment variable that identifies the processes of a run and their children.
fn of_run(pages: &Pages) -> String {
    format!("NICETY_EXEC={}", pages.path())
}

/// Returns whether a process was started with all of these environment variables.
fn has_variables(pid: u32, variables: &[String]) -> bool {
    let all = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    variables.iter().all(|variable| all.split(|byte| *byte == 0).any(|each| each == variable.as_bytes()))
}

fn kill(process: &OwnedFd) {
    let none = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open, and the call reads nothing else.
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), libc::SIGKILL, none, 0) };
}

/// Returns the process ids of this machine.
fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Opens a process by its process id; `None` if it has ended.
fn open(pid: u32) -> Option<OwnedFd> {
    // SAFETY: the call takes numbers alone.
    let file = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: the descriptor is new, and nothing else owns it.
    (file >= 0).then(|| unsafe { OwnedFd::from_raw_fd(file as i32) })
}

/// Ends all leftover processes of a run, whatever their parent and session. The environment variable of the run identifies them.
fn sweep(pages: &Pages, except: &[u32]) {
    let (run, own) = ([of_run(pages)], std::process::id());
    for _ in 0..SWEEPS {
        let left: Vec<OwnedFd> = all()
            .filter(|pid| *pid != own && !except.contains(pid) && has_variables(*pid, &run))
            .filter_map(|pid| open(pid).filter(|_| has_variables(pid, &run)))
            .collect();
        if left.is_empty() {
            return;
        }
        left.iter().for_each(kill);
        // Waits until the processes are gone, so that their memory and files are free.
        let end = |process: &OwnedFd| {
            let mut look = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one entry, which lives as long as the call.
            unsafe { libc::poll(&raw mut look, 1, 100) };
        };
        left.iter().for_each(end);
    }
}

impl Processes {
    /// Starts a program.
    pub(crate) fn start(program: &Program<'_>, pages: &Pages) -> Result<Processes, Error> {
        let name = program.command.first();
        let name = name.ok_or_else(|| Error::Input("no program; name one after --".to_owned()))?;
        let libraries = program.offload.map(|_| OFFLOAD).into_iter().chain([LIBRARY]);
        let libraries = libraries.map(|library| put(program.folder, library)).collect::<io::Result<Vec<_>>>();
        let libraries = libraries.map_err(|error| {
            Error::Input(format!("{}: the library for processes: {error}", program.folder.display()))
        })?;
        let no_pipes =
            |error| Error::Program(format!("pipes for what processes print cannot be made: {error}"));
        let mut words = match program.launcher {
            Launcher::Mpich => Some(Words::new(program.to_stderr).map_err(no_pipes)?),
            // The processes use the standard streams of this process. Processes of Open MPI have terminals of its own.
            Launcher::Openmpi | Launcher::None => None,
        };
        let mut commands = commands(program, pages, &libraries, words.as_ref());
        if let Some(words) = &mut words {
            for command in &mut commands {
                words.of_launcher(command, program.to_stderr).map_err(no_pipes)?;
            }
        }
        let (children, known) = (RefCell::default(), RefCell::default());
        let words = RefCell::new(words);
        let mpiexec = program.mpiexec.to_owned();
        let processes = Processes { launcher: program.launcher, children, known, words, mpiexec };
        for mut command in commands {
            let child = command.spawn().map_err(|error| {
                let what = command.get_program().to_string_lossy().into_owned();
                let what = if what == *name { what } else { format!("{what}, which starts {name}") };
                Error::Input(format!("{what}: {error}"))
            })?;
            processes.children.borrow_mut().push(Started { child, status: None });
        }
        Ok(processes)
    }

    /// Returns whether the process of a rank has taken part in the run and has ended.
    pub(crate) fn is_gone(&self, rank: u32, pages: &Pages) -> bool {
        pages.process(rank).is_some_and(|pid| self.has_ended(pid))
    }

    fn has_ended(&self, pid: u32) -> bool {
        let mut known = self.known.borrow_mut();
        if let std::collections::btree_map::Entry::Vacant(entry) = known.entry(pid) {
            let Some(file) = open(pid) else { return true };
            entry.insert(file);
        }
        let mut look = libc::pollfd { fd: known[&pid].as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which lives as long as the call.
        unsafe { libc::poll(&raw mut look, 1, 0) == 1 }
    }

    /// Returns whether the process of a rank, or a process that had to start it, has ended before it took part.
    pub(crate) fn has_ended_early(&self, rank: u32, pages: &Pages) -> bool {
        if pages.process(rank).is_some() {
            return false;
        }
        let has_first_ended = pages.loaded(rank).is_some_and(|pid| {
            let has_ended = self.has_ended(pid);
            pages.watch(rank, pid);
            has_ended
        });
        match self.launcher {
            Launcher::None => self.children.borrow_mut()[rank as usize].ended().is_some(),
            Launcher::Mpich | Launcher::Openmpi => has_first_ended,
        }
    }

    /// Returns whether a process with the initial environment of a rank exists. The process that has ended may have been a helper
    /// without the library. Or it may have started the process that will take part.
    pub(crate) fn has_others(&self, rank: u32, pages: &Pages) -> bool {
        let own = match self.launcher {
            Launcher::Mpich => "PMI_RANK",
            Launcher::Openmpi => "OMPI_COMM_WORLD_RANK",
            Launcher::None => "NICETY_RANK",
        };
        let of_rank = [of_run(pages), format!("{own}={rank}")];
        let look = || all().any(|pid| has_variables(pid, &of_rank));
        // During an exec, a process briefly has no environment.
        look() || {
            std::thread::sleep(BEGINS);
            look()
        }
    }

    /// Returns whether the process of a rank is stopped, for example by SIGSTOP. A process that a debugger holds is not stopped.
    pub(crate) fn is_stopped(&self, rank: u32, pages: &Pages) -> bool {
        let Some(pid) = pages.process(rank) else { return false };
        let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The state follows the program's name, which may contain brackets.
        status.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
    }

    /// Returns the exit status of the process of a rank, if the system has it. The system has it until the launcher has reaped
    /// the process. Linux 6.15 and later also have it after that.
    pub(crate) fn status_of(&self, rank: u32, pages: &Pages) -> Option<ExitStatus> {
        let started = |children: &[Started]| match self.launcher {
            Launcher::None => children.get(rank as usize).map(|started| started.child.id()),
            Launcher::Mpich | Launcher::Openmpi => None,
        };
        let first = pages.process(rank).or_else(|| pages.loaded(rank));
        let pid = first.or_else(|| started(&self.children.borrow()))?;
        let own = self
            .children
            .borrow_mut()
            .iter_mut()
            .find_map(|started| (started.child.id() == pid).then(|| started.ended()).flatten());
        own.or_else(|| {
            let status = zombie(pid).or_else(|| self.known.borrow().get(&pid).and_then(reaped))?;
            Some(ExitStatus::from_raw(status))
        })
    }

    /// Returns the exit status of the program, once all started processes have ended. This is the first status that is not 0, if
    /// any.
    pub(crate) fn ended(&self) -> Option<ExitStatus> {
        let mut first = ExitStatus::from_raw(0);
        for started in self.children.borrow_mut().iter_mut() {
            let status = started.ended()?;
            if first.success() {
                first = status;
            }
        }
        Some(first)
    }

    /// Waits until all processes have ended, at most for `limit`.
    fn wait(&self, limit: Duration) {
        let until = Instant::now() + limit;
        while self.ended().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends all running processes. Returns whether the launcher was asked to end. If so, its message about the end is of no use.
    pub(crate) fn stop(&self, pages: &Pages) -> bool {
        // If a launcher has to end, it waits for stopped processes.
        for rank in (0..pages.ranks()).filter(|&rank| self.is_stopped(rank, pages)) {
            self.kill(rank, pages);
        }
        // After a process has died, a launcher ends the others by itself. Open MPI's launcher must not get a signal in that time.
        let has_died = |rank| self.is_gone(rank, pages) || self.has_ended_early(rank, pages);
        if self.launcher != Launcher::None && (0..pages.ranks()).any(has_died) {
            self.wait(ends_itself(self.launcher));
        }
        let is_asked = self.ended().is_none();
        if is_asked {
            // Helpers of a launcher have process groups of their own. They outlive the launcher if it has no time to end them.
            let helpers = self.descendants();
            self.signal(libc::SIGTERM);
            self.wait(GRACE);
            self.signal(libc::SIGKILL);
            helpers.iter().for_each(kill);
        }
        for rank in 0..pages.ranks() {
            self.kill(rank, pages);
        }
        sweep(pages, &[]);
        for started in self.children.borrow_mut().iter_mut().filter(|started| started.status.is_none()) {
            let _ = started.child.wait();
        }
        is_asked
    }

    /// Reads the remaining output of processes after all have ended. Returns the launcher's output about the end of processes.
    pub(crate) fn finish(&self) -> String {
        self.words.take().map(Words::finish).unwrap_or_default()
    }

    /// Kills the process of a rank, if there is one.
    fn kill(&self, rank: u32, pages: &Pages) {
        if let Some(pid) =
            pages.process(rank).or_else(|| pages.loaded(rank)).filter(|&pid| !self.has_ended(pid))
        {
            // SAFETY: the call takes numbers alone; the process is of this run, and has not ended.
            unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
        }
    }

    /// Removes leftovers of failed processes. MPICH leaves shared memory of each process and a file of its launcher. Open MPI
    /// leaves a folder with the launcher's process id.
    pub(crate) fn clean(&self, pages: &Pages, launcher: Launcher) {
        if launcher == Launcher::Openmpi {
            self.children.borrow().iter().for_each(|started| remove_session(started.child.id()));
        }
        for name in (0..pages.ranks()).flat_map(|rank| pages.shared(rank)) {
            let file = name
                .to_str()
                .ok()
                .filter(|name| name.strip_prefix(LAUNCHER_FILE).is_some_and(|rest| !rest.contains('/')));
            if let Some(file) = file {
                let _ = fs::remove_file(file);
                continue;
            }
            // SAFETY: the name ends with a zero, and lives as long as the call.
            unsafe { libc::shm_unlink(name.as_ptr()) };
        }
    }

    /// Ends leftover children of ended ranks, if a launcher waits for them because they hold its files open. Processes between
    /// the launcher and a rank, such as a shell around the program, continue.
    pub(crate) fn end_left(&self, pages: &Pages) {
        if (0..pages.ranks()).all(|rank| self.is_gone(rank, pages)) {
            sweep(pages, &self.tree());
        }
    }

    /// Returns all descendants of the running processes.
    fn descendants(&self) -> Vec<OwnedFd> {
        let own = self.children.borrow().iter().filter(|started| started.status.is_none()).count();
        self.tree()[own..].iter().filter_map(|&pid| open(pid)).collect()
    }

    /// Returns the running processes, and then their descendants.
    fn tree(&self) -> Vec<u32> {
        let parents: Vec<(u32, u32)> = all()
            .filter_map(|pid| {
                let status = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
                // Fields after the name: state, parent.
                Some((pid, status.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?))
            })
            .collect();
        let children = self.children.borrow();
        let mut found: Vec<u32> = children
            .iter()
            .filter(|started| started.status.is_none())
            .map(|started| started.child.id())
            .collect();
        let mut at = 0;
        while let Some(&parent) = found.get(at) {
            let started = parents.iter().filter(|(pid, of)| *of == parent && !found.contains(pid));
            let started: Vec<u32> = started.map(|(pid, _)| *pid).collect();
            found.extend(started);
            at += 1;
        }
        found
    }

    fn signal(&self, signal: i32) {
        for started in self.children.borrow().iter().filter(|started| started.status.is_none()) {
            // SAFETY: the call takes numbers alone; the group is the child's, which has not been waited for.
            unsafe { libc::kill(-(started.child.id() as libc::pid_t), signal) };
        }
    }
}
