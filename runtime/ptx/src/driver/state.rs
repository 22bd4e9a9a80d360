//! What the stand-in holds: allocations, handles, and what went wrong.

use super::code::Code;
use super::work::Node;
use crate::module::Storage;
use crate::{Memory, Module, Options};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

/// An allocation; pinned host memory is accessible from every device.
#[derive(Clone)]
pub struct Allocation {
    pub storage: Owner,
    pub bytes: u64,
    /// None for host memory.
    pub device: Option<i32>,
}

/// Who keeps an allocation's memory.
#[derive(Clone)]
pub enum Owner {
    /// The stand-in; whoever holds this keeps the memory.
    Standin(#[allow(dead_code)] Arc<Storage>),
    /// The caller, who registered it.
    Caller,
}

/// A loaded text.
pub struct Loaded {
    pub module: Module,
    pub device: i32,
    /// Dynamic shared memory that kernels were allowed to have, by their names.
    pub most_shared: Mutex<BTreeMap<String, i32>>,
}

/// What a handle stands for.
#[derive(Clone)]
pub enum Object {
    Module(Arc<Loaded>),
    Function(Arc<Loaded>, String),
    Stream(i32),
    /// When it was recorded, and in which capture.
    Event(Option<Instant>, Option<usize>),
    Graph(Arc<Vec<Node>>),
    GraphExec(Arc<Vec<Node>>),
    /// The text of a linker, which is its result as well.
    Link(Arc<CString>),
}

/// Work that is kept for a graph.
pub struct Capture {
    pub device: i32,
    pub nodes: Vec<Node>,
}

#[derive(Default)]
pub struct State {
    pub allocations: BTreeMap<u64, Allocation>,
    /// Bytes allocated per device.
    pub used: BTreeMap<i32, u64>,
    objects: BTreeMap<usize, Object>,
    next: usize,
    /// Faults that nobody has heard of, per device: a synchronisation brings them out.
    pending: BTreeMap<i32, Code>,
    /// The error that stays, per device.
    sticky: BTreeMap<i32, Code>,
    /// Captures, by the stream that began one.
    pub captures: BTreeMap<usize, Capture>,
    /// Streams that take part in a capture of another one.
    pub joined: BTreeMap<usize, usize>,
    /// Primary contexts: how often they were retained.
    pub retained: BTreeMap<i32, u32>,
}

/// The stand-in's state.
pub fn state() -> MutexGuard<'static, State> {
    static STATE: OnceLock<Mutex<State>> = OnceLock::new();
    STATE.get_or_init(Mutex::default).lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

thread_local! {
    /// The devices of the contexts that are current, the innermost last.
    pub static CONTEXTS: RefCell<Vec<Option<i32>>> = const { RefCell::new(Vec::new()) };
}

/// The current device.
pub fn current() -> Result<i32, Code> {
    CONTEXTS.with_borrow(|stack| stack.last().copied().flatten()).ok_or(Code::INVALID_CONTEXT)
}

/// The current device, unless something went wrong on it.
pub fn healthy() -> Result<i32, Code> {
    let device = current()?;
    state().check(device)?;
    Ok(device)
}

/// The current device, after all of its work: now its faults show.
pub fn synchronised() -> Result<i32, Code> {
    let device = current()?;
    let mut state = state();
    if let Some(code) = state.pending.remove(&device) {
        state.sticky.insert(device, code);
    }
    state.check(device)?;
    Ok(device)
}

/// A number of the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(default)
}

/// The compute capability: major, minor.
pub fn capability() -> (u32, u32) {
    let text = std::env::var("TESSERA_STANDIN_ARCH").unwrap_or_default();
    let parts = text.trim().split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parts.unwrap_or((9, 0))
}

pub fn devices() -> i32 {
    setting("TESSERA_STANDIN_DEVICES", 1).min(64) as i32
}

/// Bytes of memory of each device.
pub fn memory_bytes() -> u64 {
    setting("TESSERA_STANDIN_MEMORY", 4 << 30)
}

pub fn options() -> Options {
    Options {
        seed: setting("TESSERA_STANDIN_SEED", 0),
        races: setting("TESSERA_STANDIN_RACES", 1) != 0,
        workers: setting("TESSERA_STANDIN_WORKERS", 0) as usize,
        limit: setting("TESSERA_STANDIN_LIMIT", 0),
    }
}

/// Whether `cuInit` was called.
pub static INITIALISED: AtomicBool = AtomicBool::new(false);

/// A device's ordinal, if there is such a device.
pub fn device(ordinal: i32) -> Result<i32, Code> {
    if !INITIALISED.load(Ordering::Relaxed) {
        return Err(Code::NOT_INITIALIZED);
    }
    if (0..devices()).contains(&ordinal) { Ok(ordinal) } else { Err(Code::INVALID_DEVICE) }
}

impl State {
    /// The error that stays on a device.
    pub fn check(&self, device: i32) -> Result<(), Code> {
        self.sticky.get(&device).map_or(Ok(()), |code| Err(*code))
    }

    /// A fault: it stays, and is said once.
    pub fn fail(&mut self, device: i32, code: Code, what: &str) {
        if !self.is_faulty(device) {
            self.pending.insert(device, code);
            eprintln!("cuda stand-in: {what}");
        }
    }

    /// Whether something went wrong on a device, heard of or not: it does no work any more.
    pub fn is_faulty(&self, device: i32) -> bool {
        self.pending.contains_key(&device) || self.sticky.contains_key(&device)
    }

    /// Forgets a device's fault, as the reset of its context does.
    pub fn forget(&mut self, device: i32) {
        self.sticky.remove(&device);
        self.pending.remove(&device);
    }

    /// A new handle. It is no address of anything, so that a wrong one is an error and nothing worse.
    pub fn insert(&mut self, object: Object) -> usize {
        self.next += 1;
        let handle = 0x7E55_0000_0000 + 16 * self.next;
        self.objects.insert(handle, object);
        handle
    }

    pub fn get(&self, handle: usize) -> Result<&Object, Code> {
        self.objects.get(&handle).ok_or(Code::INVALID_HANDLE)
    }

    pub fn get_mut(&mut self, handle: usize) -> Result<&mut Object, Code> {
        self.objects.get_mut(&handle).ok_or(Code::INVALID_HANDLE)
    }

    pub fn remove(&mut self, handle: usize) -> Result<Object, Code> {
        self.objects.remove(&handle).ok_or(Code::INVALID_HANDLE)
    }

    pub fn function(&self, handle: usize) -> Result<(Arc<Loaded>, String), Code> {
        match self.get(handle)? {
            Object::Function(loaded, name) => Ok((loaded.clone(), name.clone())),
            _ => Err(Code::INVALID_HANDLE),
        }
    }

    /// The handle of a function of a module; asking again gives the same.
    pub fn function_handle(&mut self, loaded: &Arc<Loaded>, name: &str) -> usize {
        let same = |object: &Object| matches!(object, Object::Function(l, n) if Arc::ptr_eq(l, loaded) && n == name);
        match self.objects.iter().find(|(_, object)| same(object)).map(|(handle, _)| *handle) {
            Some(handle) => handle,
            None => self.insert(Object::Function(loaded.clone(), name.to_string())),
        }
    }

    /// Removes a module's functions.
    pub fn remove_functions(&mut self, loaded: &Arc<Loaded>) {
        self.objects.retain(|_, object| !matches!(object, Object::Function(l, _) if Arc::ptr_eq(l, loaded)));
    }

    /// Whether this is a stream: one that was created, or one that is always there.
    pub fn stream(&self, handle: usize) -> Result<(), Code> {
        match handle {
            0..=2 => Ok(()),
            _ => match self.get(handle)? {
                Object::Stream(_) => Ok(()),
                _ => Err(Code::INVALID_HANDLE),
            },
        }
    }

    /// The capture that a stream takes part in.
    pub fn capture_of(&self, stream: usize) -> Option<usize> {
        let root = self.joined.get(&stream).copied().unwrap_or(stream);
        self.captures.contains_key(&root).then_some(root)
    }

    /// Work that names no stream waits for those of its device, and is refused while one of them captures. What other
    /// devices capture does not matter.
    pub fn captures_nothing(&self, device: i32) -> Result<(), Code> {
        let captures = self.captures.values().any(|capture| capture.device == device);
        if captures { Err(Code::CAPTURE_UNSUPPORTED) } else { Ok(()) }
    }

    /// The allocation that an address lies in: its start and itself.
    pub fn allocation(&self, address: u64) -> Option<(u64, &Allocation)> {
        let (start, found) = self.allocations.range(..=address).next_back()?;
        (address - start < found.bytes).then_some((*start, found))
    }

    /// Whether a range lies in one allocation, or in one variable of a module.
    pub fn covers(&self, address: u64, bytes: u64) -> bool {
        let inside =
            |start: u64, size: u64| address >= start && address - start <= size && size - (address - start) >= bytes;
        if self.allocation(address).is_some_and(|(start, found)| inside(start, found.bytes)) {
            return true;
        }
        self.objects.values().any(|object| match object {
            Object::Module(loaded) => loaded.module.ranges().any(|(start, size)| inside(start, size)),
            _ => false,
        })
    }

    /// What kernels of a device may access, and what keeps that alive for as long as one runs.
    pub fn memory(&self, device: i32) -> (Memory, Vec<Owner>) {
        let mut memory = Memory::new();
        let mut owners = Vec::new();
        for (start, found) in &self.allocations {
            if found.device.is_none_or(|d| d == device) {
                // SAFETY: the storage is kept by its owner in `owners` for as long as the launch lasts; of registered
                // memory the caller promised that.
                unsafe { memory.register(*start, found.bytes) };
                owners.push(found.storage.clone());
            }
        }
        (memory, owners)
    }
}
