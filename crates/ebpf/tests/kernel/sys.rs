//! The system call bpf(), as far as the comparison needs it.

use nicety_ebpf::{Instruction, MapDefinition};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const MAP_CREATE: i64 = 0;
const MAP_LOOKUP: i64 = 1;
const MAP_UPDATE: i64 = 2;
const MAP_DELETE: i64 = 3;
const MAP_NEXT_KEY: i64 = 4;
const PROG_LOAD: i64 = 5;
const TEST_RUN: i64 = 10;
const BTF_LOAD: i64 = 18;
const LOOKUP_AND_DELETE: i64 = 21;
const FREEZE: i64 = 22;

/// An argument of bpf(): bytes at places.
struct Attributes([u8; 168]);

impl Attributes {
    fn new() -> Attributes {
        Attributes([0; 168])
    }

    fn u32(mut self, at: usize, value: u32) -> Self {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn u64(mut self, at: usize, value: u64) -> Self {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn pointer<T>(self, at: usize, value: *const T) -> Self {
        self.u64(at, value as u64)
    }

    fn read(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().unwrap())
    }

    fn call(&mut self, command: i64, size: usize) -> Result<i64, i32> {
        // SAFETY: the attributes live during the call, and so does all that they point to.
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_mut_ptr(), size) };
        if result < 0 { Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)) } else { Ok(result) }
    }

    fn open(&mut self, command: i64, size: usize) -> Result<OwnedFd, i32> {
        let number = self.call(command, size)?;
        // SAFETY: the kernel has just given this descriptor, and nothing else has it.
        Ok(unsafe { OwnedFd::from_raw_fd(number as i32) })
    }
}

fn number(fd: &OwnedFd) -> u32 {
    fd.as_raw_fd() as u32
}

/// CPUs that the kernel may have.
pub(crate) fn possible_cpus() -> u32 {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap();
    let last = text.trim().rsplit(['-', ',']).next().unwrap();
    last.parse::<u32>().unwrap() + 1
}

/// Keeps this thread on the first CPU.
pub(crate) fn stay_on_first_cpu() {
    // SAFETY: the set is plain memory of the right size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(0, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// A map of the kernel.
pub(crate) struct KernelMap {
    pub(crate) fd: OwnedFd,
    key_size: usize,
    value_size: usize,
    copies: usize,
}

impl KernelMap {
    pub(crate) fn new(map: &MapDefinition, cpus: u32) -> Result<KernelMap, i32> {
        KernelMap::made(map, cpus, 0, None)
    }

    /// A map of maps like `inner`.
    pub(crate) fn with_inner(map: &MapDefinition, inner: &KernelMap) -> Result<KernelMap, i32> {
        KernelMap::made(map, 1, number(&inner.fd), None)
    }

    /// A map with a lock at the begin of each value.
    pub(crate) fn with_lock(map: &MapDefinition, cpus: u32) -> Result<KernelMap, i32> {
        let types = load_btf(&lock_btf(map))?;
        KernelMap::made(map, cpus, 0, Some(types))
    }

    fn made(map: &MapDefinition, cpus: u32, inner: u32, types: Option<OwnedFd>) -> Result<KernelMap, i32> {
        let (key, value) = match types {
            Some(_) if map.key_size == 4 => (1, 5),
            Some(_) => (6, 5),
            None => (0, 0),
        };
        let fd = Attributes::new()
            .u32(48, types.as_ref().map_or(0, number))
            .u32(52, key)
            .u32(56, value)
            .u32(0, map.kind)
            .u32(4, map.key_size)
            .u32(8, map.value_size)
            .u32(12, map.max_entries)
            .u32(16, map.flags)
            .u32(20, inner)
            .u64(64, map.extra)
            .open(MAP_CREATE, 72)?;
        let per_cpu = matches!(map.kind, 5 | 6 | 10);
        Ok(KernelMap {
            fd,
            key_size: map.key_size as usize,
            value_size: map.value_size as usize,
            copies: if per_cpu { cpus as usize } else { 1 },
        })
    }

    fn elem(&self, command: i64, key: &[u8], value: *const u8, flags: u64) -> Result<(), i32> {
        let key = if key.is_empty() { std::ptr::null() } else { key.as_ptr() };
        let attributes = Attributes::new().u32(0, number(&self.fd)).pointer(8, key).pointer(16, value);
        attributes.u64(24, flags).call(command, 32).map(|_| ())
    }

    fn stride(&self) -> usize {
        if self.copies > 1 { self.value_size.next_multiple_of(8) } else { self.value_size }
    }

    pub(crate) fn update(&self, key: &[u8], values: &[Vec<u8>], flags: u64) -> Result<(), i32> {
        let mut bytes = Vec::new();
        for value in values {
            bytes.extend(value);
            bytes.resize(bytes.len().next_multiple_of(self.stride()), 0);
        }
        self.elem(MAP_UPDATE, key, bytes.as_ptr(), flags)
    }

    pub(crate) fn delete(&self, key: &[u8]) -> Result<(), i32> {
        self.elem(MAP_DELETE, key, std::ptr::null(), 0)
    }

    pub(crate) fn lookup(&self, key: &[u8]) -> Result<Vec<Vec<u8>>, i32> {
        let mut bytes = vec![0u8; self.stride() * self.copies];
        self.elem(MAP_LOOKUP, key, bytes.as_mut_ptr(), 0)?;
        Ok(bytes.chunks(self.stride()).map(|value| value[..self.value_size].to_vec()).collect())
    }

    /// Ends changes by user space, so that the verifier follows the values.
    pub(crate) fn freeze(&self) -> Result<(), i32> {
        Attributes::new().u32(0, number(&self.fd)).call(FREEZE, 4).map(|_| ())
    }

    /// Takes a value of a queue or a stack.
    pub(crate) fn take(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0u8; self.value_size];
        self.elem(LOOKUP_AND_DELETE, &[], bytes.as_mut_ptr(), 0).ok().map(|()| bytes)
    }

    /// All entries, sorted.
    pub(crate) fn items(&self) -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
        let mut items = Vec::new();
        let (mut key, mut next) = (Vec::new(), vec![0u8; self.key_size]);
        while self.elem(MAP_NEXT_KEY, &key, next.as_mut_ptr(), 0).is_ok() {
            if let Ok(values) = self.lookup(&next) {
                items.push((next.clone(), values));
            }
            key.clone_from(&next);
        }
        items.sort();
        items
    }
}

/// Loads a program; its constants have descriptors of maps. The error has the verifier's last lines.
pub(crate) fn load(slots: &[Instruction], functions: &[usize]) -> Result<OwnedFd, (i32, String)> {
    let bytes: Vec<u8> = slots.iter().flat_map(|slot| slot.bytes()).collect();
    let types = load_btf(&btf()).map_err(|error| (error, "BTF".to_owned()))?;
    let info: Vec<u32> = functions.iter().flat_map(|&first| [first as u32, 3]).collect();
    let try_load = |log: &mut [u8]| {
        Attributes::new()
            .u32(0, 6)
            .u32(4, slots.len() as u32)
            .pointer(8, bytes.as_ptr())
            .pointer(16, c"GPL".as_ptr())
            .u32(24, u32::from(!log.is_empty()))
            .u32(28, log.len() as u32)
            .pointer(32, if log.is_empty() { std::ptr::null() } else { log.as_ptr() })
            .u32(68, 37)
            .u32(72, number(&types))
            .u32(76, 8)
            .pointer(80, info.as_ptr())
            .u32(88, functions.len() as u32)
            .open(PROG_LOAD, 144)
    };
    try_load(&mut []).map_err(|error| {
        let mut log = vec![0u8; 1 << 20];
        let _ = try_load(&mut log);
        let end = log.iter().position(|&byte| byte == 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&log[..end]);
        let lines: Vec<&str> = text.lines().collect();
        (error, lines[lines.len().saturating_sub(6)..].join(" | "))
    })
}

fn load_btf(btf: &[u8]) -> Result<OwnedFd, i32> {
    Attributes::new().pointer(0, btf.as_ptr()).u32(16, btf.len() as u32).open(BTF_LOAD, 28)
}

const INT: u32 = 1 << 24;
const ARRAY: u32 = 3 << 24;
const STRUCTURE: u32 = 4 << 24;
const FUNCTION: u32 = 12 << 24;
const PROTOTYPE: u32 = 13 << 24;

/// Types for functions: an int, a prototype, and a static function.
fn btf() -> Vec<u8> {
    let types = [1, INT, 4, (1 << 24) | 32, 0, PROTOTYPE, 1, 5, FUNCTION, 2];
    section(&types, b"\0int\0f\0")
}

/// Types for a map with a lock in its values: a word, the lock, a byte, bytes, the value, and the key.
fn lock_btf(map: &MapDefinition) -> Vec<u8> {
    let rest = map.value_size - 4;
    let word = [1, INT, 4, 32];
    let lock = [5, STRUCTURE | 1, 4, 19, 1, 0];
    let byte = [23, INT, 1, 8];
    let bytes = [0, ARRAY, 0, 3, 1, rest];
    let value = [28, STRUCTURE | 2, 4 + rest, 34, 2, 0, 39, 4, 32];
    let key = [0, ARRAY, 0, 3, 1, map.key_size];
    let types = [&word[..], &lock, &byte, &bytes, &value, &key].concat();
    section(&types, b"\0u32\0bpf_spin_lock\0val\0byte\0value\0lock\0rest\0")
}

fn section(types: &[u32], names: &[u8]) -> Vec<u8> {
    let size = 4 * types.len() as u32;
    let header = [0x0001_eb9f, 24, 0, size, size, names.len() as u32];
    let mut bytes: Vec<u8> = header.iter().chain(types).flat_map(|word| word.to_ne_bytes()).collect();
    bytes.extend(names);
    bytes
}

/// The result of a test run.
pub(crate) struct Ran {
    pub(crate) value: u32,
    pub(crate) packet: Vec<u8>,
}

/// Runs a program once.
pub(crate) fn run(program: &OwnedFd, packet: &[u8], metadata: usize) -> Result<Ran, i32> {
    let mut out = vec![0u8; 1 << 17];
    let context = [metadata as u32, packet.len() as u32, 0, 0, 0, 0];
    let mut attributes = Attributes::new()
        .u32(0, number(program))
        .u32(8, packet.len() as u32)
        .u32(12, out.len() as u32)
        .pointer(16, packet.as_ptr())
        .pointer(24, out.as_mut_ptr())
        .u32(40, 24)
        .pointer(48, context.as_ptr());
    attributes.call(TEST_RUN, 80)?;
    out.truncate(attributes.read(12) as usize);
    Ok(Ran { value: attributes.read(4), packet: out })
}

/// Puts a program into a program array.
pub(crate) fn set_program(map: &KernelMap, key: u32, program: &OwnedFd) -> Result<(), i32> {
    map.update(&key.to_ne_bytes(), &[number(program).to_ne_bytes().to_vec()], 0)
}

/// Whether bpf() is allowed here: the reason where it is not.
pub(crate) fn probe() -> Result<(), String> {
    let array =
        MapDefinition { kind: 2, key_size: 4, value_size: 8, max_entries: 1, ..MapDefinition::default() };
    let slots = [nicety_ebpf::asm::mov_imm(0, 2), nicety_ebpf::asm::exit()];
    KernelMap::new(&array, 1).map_err(|error| format!("bpf() gives errno {error}"))?;
    let program =
        load(&slots, &[0]).map_err(|(error, log)| format!("no program loads: errno {error} {log}"))?;
    run(&program, &[0; 64], 0).map(|_| ()).map_err(|error| format!("no test run: errno {error}"))
}
