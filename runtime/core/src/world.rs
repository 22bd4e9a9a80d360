//! A program that runs in several processes: each runs all of its host code and some of the devices
//! of its meshes.
//!
//! Host code does the same everywhere, so all processes come to the same steps in the same order: a
//! call on a mesh, a look at a tensor that lies on one, a file that is read or written. At each step they
//! agree ([`World::agree`]): whether all are about to do the same is found out along a tree. That is why processes
//! that have come apart end with an error instead of waiting for each other, and why a failure of
//! one ends all. What could differ (the time, the environment) is the first process's.

pub mod mpi;
pub mod launch;
pub mod step;
pub mod nodes;
mod start_parts;
mod differ;
mod meshes;
pub mod parts;
pub mod progress;

use crate::fault::Fault;
use launch::variable;
use mpi::{Message, Mpi};
use nodes::Nodes;
use progress::Progress;
pub use start_parts::Part;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use step::{Record, Verdict, What, judge};
use tessera_base::{Mesh, bug};

/// The code of a fault that another process tells about.
pub const ELSEWHERE: u16 = 0;
/// The code of processes that do not do the same.
const DIFFER: u16 = 720;
/// The code of a process that does not answer.
const SILENT: u16 = 721;

/// Tags of messages. Those of devices follow.
const TAG_FAILED: usize = 1;
const TAG_PARTS: usize = 2;
const TAG_ROWS: usize = 3;
const TAG_TEST: usize = 4;
const TAG_PASSED: usize = 5;
const TAG_DEVICES: usize = 16;

/// How long a process waits without any answer, unless `TESSERA_MPI_TIMEOUT` says otherwise.
const PATIENCE: Duration = Duration::from_secs(300);

/// This process and the others.
pub struct World {
    mpi: Mpi,
    nodes: Nodes,
    patience: Duration,
    /// The source place that the program is at, as a number of its span.
    place: AtomicU32,
    places: OnceLock<Vec<String>>,
    /// Steps so far.
    steps: AtomicU32,
    /// Once it is clear that the run ends early: what this process has to say, and whether it is to say
    /// anything.
    over: OnceLock<(Fault, bool)>,
    /// Why the others cannot be reached any more.
    lost: OnceLock<Fault>,
    told_to_end: AtomicBool,
    closing: AtomicBool,
    later: Mutex<Option<Later>>,
    /// Messages that nobody waits for.
    left: Mutex<Vec<Message>>,
    /// What is to be the same at the start.
    parts: OnceLock<Vec<Part>>,
    /// The file that was read last.
    reading: Mutex<String>,
    /// Bytes that this process's devices sent along each axis of each mesh.
    along: Mutex<BTreeMap<Mesh, Vec<u64>>>,
    /// Bytes of values that this process sent to other nodes.
    crossed: AtomicU64,
    progress: Progress,
}

/// A word from each process, for when all have theirs ([`World::when_all`]).
struct Later {
    word: Arc<OnceLock<Vec<u8>>>,
    take: Box<dyn FnOnce(Vec<Vec<u8>>) + Send>,
}

static WORLD: OnceLock<World> = OnceLock::new();

/// The other processes, where there are any.
pub fn world() -> Option<&'static World> {
    WORLD.get()
}

/// Whether this process speaks for all: it prints and writes files.
pub fn is_first() -> bool {
    world().is_none_or(|w| w.mpi.rank == 0)
}

/// The devices of a mesh of so many that are in this process.
pub fn mine(devices: usize) -> Range<usize> {
    world().map_or(0..devices, |w| w.devices_of(w.mpi.rank, devices))
}

/// Notes the source place that the program is at.
pub fn at(span: u32) {
    if let Some(w) = world() {
        w.place.store(span, Ordering::Relaxed);
    }
}

/// Why the run ends early, once that is clear.
pub fn over() -> Option<Fault> {
    world().and_then(World::why)
}

/// What a process does that ends because another one failed.
pub fn elsewhere() -> Fault {
    Fault::new(ELSEWHERE, "another process failed")
}

/// The first eight bytes of a hash.
pub fn hash(parts: &[&[u8]]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    u64::from_le_bytes(hasher.finalize().as_bytes().first_chunk().copied().unwrap_or_default())
}

/// Joins the other processes that an `mpirun` started with this one, once; does nothing where none
/// did, or one alone. E0604 where MPI cannot be used.
pub fn join() -> Result<Option<&'static World>, Fault> {
    let started = variable(&["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]);
    if started == Some(1) || started.is_none() && std::env::var_os("PMIX_RANK").is_none() {
        return Ok(None);
    }
    let patience = patience()?;
    let hydra = launch::is_hydra();
    let (name, package) = if hydra { ("MPICH", "mpich") } else { ("Open MPI", "openmpi-bin") };
    let mpi = Mpi::join(hydra).map_err(|e| {
        unusable(format!("this process was started by `mpirun`, and {name} cannot be used: {e}"))
            .note(format!("on Debian it is in the package `{package}`; `TESSERA_MPI` may name the library's file"))
    })?;
    if let Some(n) = started.filter(|n| *n != mpi.size) {
        let text = format!("the launcher started {n} processes, and this one's library found {}", mpi.size);
        return Err(unusable(text).note("launcher and library belong to different installations of MPI"));
    }
    let mut joined = World {
        nodes: Nodes::alone(mpi.size),
        mpi,
        patience,
        place: AtomicU32::new(0),
        places: OnceLock::new(),
        steps: AtomicU32::new(0),
        over: OnceLock::new(),
        lost: OnceLock::new(),
        told_to_end: AtomicBool::new(false),
        closing: AtomicBool::new(false),
        later: Mutex::default(),
        left: Mutex::new(vec![]),
        parts: OnceLock::new(),
        reading: Mutex::default(),
        along: Mutex::default(),
        crossed: AtomicU64::new(0),
        progress: Progress::default(),
    };
    let tried = joined.test().and_then(|()| joined.meet());
    if let Ok(nodes) = &tried {
        joined.nodes.clone_from(nodes);
    }
    // Also where the others cannot be used: it has to leave them.
    let world = WORLD.get_or_init(|| joined);
    tried.map(|_| Some(world))
}

/// How long a process waits without any answer.
fn patience() -> Result<Duration, Fault> {
    let Ok(text) = std::env::var("TESSERA_MPI_TIMEOUT") else { return Ok(PATIENCE) };
    let seconds = text.trim().parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    let fault = || unusable(format!("`TESSERA_MPI_TIMEOUT` is `{text}`, and not a number of seconds above 0"));
    seconds.filter(|d| !d.is_zero()).ok_or_else(fault)
}

fn unusable(why: String) -> Fault {
    Fault::new(604, why)
}

/// Why a wait ended without what was waited for.
enum Waited {
    /// Another process says that it failed.
    Failed,
    Lost(Fault),
}

impl World {
    pub fn rank(&self) -> usize {
        self.mpi.rank
    }

    pub fn size(&self) -> usize {
        self.mpi.size
    }

    /// Names of the program's source places, by the numbers of spans.
    pub fn set_places(&self, places: Vec<String>) {
        let _ = self.places.set(places);
    }

    /// The devices of a mesh that a process has: blocks, as even as they can be, node by node, and the first process has
    /// at least one.
    fn devices_of(&self, rank: usize, devices: usize) -> Range<usize> {
        let start = |place: usize| (place * devices).div_ceil(self.mpi.size);
        let place = self.nodes.place(rank);
        start(place)..start(place + 1)
    }

    /// The process that has a device.
    pub fn owner(&self, device: usize, devices: usize) -> usize {
        self.nodes.at_place(device * self.mpi.size / devices.max(1))
    }

    fn along(&self) -> MutexGuard<'_, BTreeMap<Mesh, Vec<u64>>> {
        self.along.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes bytes of values on their way to a process.
    fn note_sent(&self, to: usize, bytes: usize) {
        if self.nodes.of(to) != self.nodes.of(self.mpi.rank) {
            self.crossed.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Bytes of values that processes sent to other nodes so far, those of all, in the first process; 0 in the others.
    pub fn crossed(&self) -> Result<u64, Fault> {
        let all = self.to_first(self.crossed.load(Ordering::Relaxed).to_le_bytes().to_vec())?;
        Ok(all.iter().filter_map(|b| b.first_chunk()).map(|b| u64::from_le_bytes(*b)).sum())
    }

    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// The node that a device is on.
    pub fn node_of(&self, device: usize, devices: usize) -> usize {
        self.nodes.of(self.owner(device, devices))
    }

    /// A process with its node, in words.
    pub fn process(&self, rank: usize) -> String {
        let node = if self.nodes.count() > 1 { format!(" on {}", self.nodes.quoted(rank)) } else { String::new() };
        format!("process {rank} of {}{node}", self.mpi.size)
    }

    /// Where a place in the program is, in words.
    fn place_text(&self, span: u32) -> String {
        let known = self.places.get().and_then(|all| all.get(span as usize)).filter(|p| !p.is_empty());
        known.map_or_else(|| "a place that is not known".into(), Clone::clone)
    }

    /// Where this process is, in words.
    pub fn here(&self) -> String {
        self.place_text(self.place.load(Ordering::Relaxed))
    }

    // ---- Waiting ----------------------------------------------------------------------------

    /// Waits for a message. With `heed` also for the news that another process failed.
    fn wait(&self, message: &mut Message, heed: bool) -> Result<(), Waited> {
        self.wait_until(heed, || self.mpi.is_done(message))
    }

    /// Waits until something is done.
    fn wait_until(&self, heed: bool, mut is_done: impl FnMut() -> Result<bool, String>) -> Result<(), Waited> {
        /// How long a wait does nothing but look.
        const LOOK: Duration = Duration::from_micros(200);
        const PAUSE: Duration = Duration::from_micros(50);
        let start = Instant::now();
        loop {
            match is_done() {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(e) => return Err(Waited::Lost(self.broken(&e))),
            }
            if let Some(fault) = self.lost.get() {
                return Err(Waited::Lost(fault.clone()));
            }
            if heed && self.mpi.has_come(TAG_FAILED) {
                return Err(Waited::Failed);
            }
            let waited = start.elapsed();
            if self.told_to_end.load(Ordering::Relaxed) {
                return Err(Waited::Lost(self.ended_from_outside()));
            }
            if waited > self.patience {
                return Err(Waited::Lost(self.unanswered()));
            }
            // The others may need this core.
            if waited < LOOK { std::thread::yield_now() } else { std::thread::sleep(PAUSE) }
        }
    }

    /// Gives the others up.
    fn lose(&self, why: &str, note: &str) -> Fault {
        let text = format!("{}, at {}, {why}", self.process(self.mpi.rank), self.here());
        self.lost.get_or_init(|| Fault::new(SILENT, text).note(note)).clone()
    }

    fn unanswered(&self) -> Fault {
        let why = format!("had no answer from the others for {} s", self.patience.as_secs_f64());
        self.lose(&why, "one of them hangs, or needs longer: `TESSERA_MPI_TIMEOUT` says how many seconds are waited")
    }

    /// The fault of a process that a signal ends.
    pub fn ended_from_outside(&self) -> Fault {
        self.lose("was told to end", "`mpirun` tells the others when one process has ended early")
    }

    fn broken(&self, e: &str) -> Fault {
        self.lose(&format!("cannot reach the others: {e}"), "MPI itself failed")
    }

    /// For the handler of signals: ends all waiting.
    pub fn tell_to_end(&self) {
        self.told_to_end.store(true, Ordering::SeqCst);
    }

    /// Whether this process is on its way out, so that no signal matters any more.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    fn message(&self, made: Result<Message, String>) -> Result<Message, Fault> {
        made.map_err(|e| self.broken(&e))
    }

    /// What came with a message.
    fn taken(&self, made: Result<Message, String>) -> Result<Vec<u8>, Fault> {
        let mut message = self.message(made)?;
        match self.wait(&mut message, false) {
            Ok(()) => Ok(message.into_received()),
            Err(Waited::Failed) => Err(elsewhere()),
            Err(Waited::Lost(fault)) => Err(fault),
        }
    }

    // ---- Steps that all take together ---------------------------------------------------------

    /// Finds out whether all do what this process does now, and none failed; returns the `value` of the first. Fails
    /// where they do not all do the same, or one failed; that may be this one.
    pub fn agree(&self, what: What, hash: u64, failed: bool, value: u64) -> Result<u64, Fault> {
        if let Some(fault) = self.why() {
            return Err(fault);
        }
        let step = self.steps.fetch_add(1, Ordering::Relaxed);
        let ready = self.later().as_ref().is_some_and(|l| l.word.get().is_some());
        let own = Record { what, failed, ready, step, place: self.place.load(Ordering::Relaxed), hash, value };
        let bits = self.taken(self.mpi.bits_of_all(own.bits(self.mpi.rank)))?;
        if let Some(common) = Record::common(&bits) {
            if common.ready {
                self.words_of_all()?;
            }
            return Ok(common.value);
        }
        // The run ends: once, everyone hears of everyone.
        let came = self.taken(self.mpi.gather(own.bytes()))?;
        let records: Vec<Record> = came.chunks_exact(Record::BYTES).map(Record::read).collect();
        match judge(&records, self.mpi.rank) {
            Verdict::Same => bug!("processes that differ do the same"),
            Verdict::Failed { tells } => Err(self.end_early(elsewhere(), tells)),
            Verdict::Differ => {
                let fault = self.differ(&records)?;
                Err(self.end_early(fault, self.mpi.rank == 0))
            }
        }
    }

    fn later(&self) -> MutexGuard<'_, Option<Later>> {
        self.later.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// At the first step at which every process has its word, the first one gets the words of all, and the others none.
    /// Words are of one length, and all processes ask for them at the same step.
    pub fn when_all(&self, word: Arc<OnceLock<Vec<u8>>>, take: Box<dyn FnOnce(Vec<Vec<u8>>) + Send>) {
        *self.later() = Some(Later { word, take });
    }

    fn words_of_all(&self) -> Result<(), Fault> {
        let later = self.later().take();
        let Some((Later { take, .. }, own)) = later.and_then(|l| l.word.get().cloned().map(|word| (l, word))) else {
            bug!("a word that was there is gone");
        };
        take(self.all_to_first(own)?);
        Ok(())
    }

    fn end_early(&self, fault: Fault, tells: bool) -> Fault {
        self.over.get_or_init(|| (fault, tells)).0.clone()
    }

    fn why(&self) -> Option<Fault> {
        self.lost.get().or(self.over.get().map(|o| &o.0)).cloned()
    }

    /// Whether this process tells why the run ends early; `None` while it does not.
    pub fn tells(&self) -> Option<bool> {
        if self.lost.get().is_some() { Some(true) } else { self.over.get().map(|o| o.1) }
    }

    /// What the first process answers, in all.
    pub fn ask(&self, question: &str, answer: impl FnOnce() -> Vec<u8>) -> Result<Vec<u8>, Fault> {
        let answer = if self.mpi.rank == 0 { answer() } else { vec![] };
        let len = self.agree(What::Ask, hash(&[question.as_bytes()]), false, answer.len() as u64)?;
        self.from_first(if self.mpi.rank == 0 { answer } else { vec![0; len as usize] })
    }

    /// As [`World::ask`] for a number, which costs one message less.
    pub fn ask_float(&self, question: &str, answer: impl FnOnce() -> f64) -> Result<f64, Fault> {
        let value = if self.mpi.rank == 0 { answer().to_bits() } else { 0 };
        Ok(f64::from_bits(self.agree(What::Ask, hash(&[question.as_bytes()]), false, value)?))
    }

    /// The first process's bytes, of which all know the number.
    pub fn from_first(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Fault> {
        self.taken(self.mpi.broadcast(bytes))
    }

    /// What each process says, in the first one; nothing in the others.
    pub fn to_first(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Fault> {
        self.agree(What::Rows, 0, false, 0)?;
        self.all_to_first(bytes)
    }

    /// The same without agreement; for processes that know that all come to it.
    fn all_to_first(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Fault> {
        if self.mpi.rank != 0 {
            let len = (bytes.len() as u64).to_le_bytes().to_vec();
            let going = [self.mpi.send(0, TAG_ROWS, len), self.mpi.send(0, TAG_ROWS, bytes)];
            going.into_iter().try_for_each(|m| self.taken(m).map(|_| ()))?;
            return Ok(vec![]);
        }
        let came = (1..self.mpi.size).map(|r| {
            let len = self.taken(self.mpi.receive(Some(r), TAG_ROWS, size_of::<u64>()))?;
            let len = len.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
            self.taken(self.mpi.receive(Some(r), TAG_ROWS, len as usize))
        });
        std::iter::once(Ok(bytes)).chain(came).collect()
    }

    /// Does in the first process what is done once for all, as writing a file. The others go on when it is
    /// done.
    pub fn once(&self, what: &str, first: impl FnOnce() -> Result<(), Fault>) -> Result<(), Fault> {
        let done = if self.mpi.rank == 0 { first() } else { Ok(()) };
        let agreed = self.agree(What::Write, hash(&[what.as_bytes()]), done.is_err(), 0);
        done.and(agreed.map(|_| ()))
    }

    /// What this process has read from a file is what the others have.
    pub fn read_alike(&self, path: &str, content: u64) -> Result<(), Fault> {
        self.set_reading(path);
        self.agree(What::Read, hash(&[path.as_bytes()]), false, content).map(|_| ())
    }

    // ---- Beginning and end ------------------------------------------------------------------

    /// Sends known content around, each to the next.
    fn test(&self) -> Result<(), Fault> {
        /// More than goes along with the first message of any network.
        const BYTES: usize = 1 << 17;
        // Who sends what another should have sent has another number.
        let content = |rank: usize| -> Vec<u8> {
            let filler = (size_of::<usize>()..BYTES).map(|i| (i * 7 + rank * 31) as u8);
            rank.to_le_bytes().into_iter().chain(filler).collect()
        };
        let wrong = |what: &str| unusable(format!("MPI does not work here: {what}"));
        let (rank, size) = (self.mpi.rank, self.mpi.size);
        let (before, after) = ((rank + size - 1) % size, (rank + 1) % size);
        self.agree(What::Test, size as u64, false, 0)?;
        if variable(&["OMPI_COMM_WORLD_RANK", "PMI_RANK"]).is_some_and(|n| n != rank) {
            return Err(wrong("this process has another number than `mpirun` gave it"));
        }
        let coming = self.message(self.mpi.receive(Some(before), TAG_TEST, BYTES))?;
        let going = self.message(self.mpi.send(after, TAG_TEST, content(rank)))?;
        let came = self.taken(Ok(coming))?;
        self.taken(Ok(going))?;
        if came != content(before) {
            return Err(wrong("what a process sends does not arrive as it was"));
        }
        Ok(())
    }

    /// From here on signals end nothing.
    pub fn closing(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    /// The end of this process. After an early end it is sudden, when those who tell why have done so:
    /// messages may be under way, for which the library would wait.
    pub fn close(&self, code: u8) -> u8 {
        self.closing();
        if self.tells().is_none() {
            self.mpi.leave();
            return code;
        }
        if self.lost.get().is_none() {
            self.wait_for_tellers();
        }
        use std::io::Write;
        let _ = std::io::stdout().flush();
        // SAFETY: nothing of this process is used afterwards.
        unsafe { libc::_exit(code.into()) }
    }

    fn wait_for_tellers(&self) {
        const GRACE: Duration = Duration::from_secs(2);
        let Ok(mut message) = self.mpi.bits_of_all(vec![1]) else { return };
        let start = Instant::now();
        while start.elapsed() < GRACE && matches!(self.mpi.is_done(&mut message), Ok(false)) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
