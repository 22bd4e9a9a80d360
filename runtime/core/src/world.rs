//! A program that runs in several processes: each runs all of its host code and some of the devices
//! of its meshes.
//!
//! Host code does the same everywhere, so all processes come to the same steps in the same order: a
//! call on a mesh, a look at a tensor that lies on one, a file that is written. At each step they
//! agree ([`World::agree`]): everyone tells everyone what it is about to do. That is why processes
//! that have come apart end with an error instead of waiting for each other, and why a failure of
//! one ends all. What could differ (the time, the environment) is the first process's.

pub mod mpi;
pub mod launch;
pub mod step;
pub mod parts;
pub mod progress;

use crate::fault::Fault;
use launch::variable;
use mpi::{Message, Mpi};
use progress::Progress;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use step::{Record, Verdict, What, judge};
use tessera_base::bug;

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
const TAG_DEVICES: usize = 16;

/// How long a process waits without any answer, unless `TESSERA_MPI_TIMEOUT` says otherwise.
const PATIENCE: Duration = Duration::from_secs(300);

/// This process and the others.
pub struct World {
    mpi: Mpi,
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
    let joined = World {
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
        progress: Progress::default(),
    };
    let world = WORLD.get_or_init(|| joined);
    world.test()?;
    Ok(Some(world))
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

    /// The devices of a mesh that a process has: blocks, as even as they can be, and the first one has
    /// at least one.
    fn devices_of(&self, rank: usize, devices: usize) -> Range<usize> {
        let start = |r: usize| (r * devices).div_ceil(self.mpi.size);
        start(rank)..start(rank + 1)
    }

    /// The process that has a device.
    pub fn owner(&self, device: usize, devices: usize) -> usize {
        device * self.mpi.size / devices.max(1)
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
        /// How long a wait does nothing but look.
        const LOOK: Duration = Duration::from_micros(200);
        const PAUSE: Duration = Duration::from_micros(50);
        let start = Instant::now();
        loop {
            match self.mpi.is_done(message) {
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
        let text = format!("process {} of {}, at {}, {why}", self.mpi.rank, self.mpi.size, self.here());
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

    /// Tells all what this process does now, and whether it failed; returns the `value` of each. Fails
    /// where they do not all do the same, or one failed; that may be this one.
    pub fn agree(&self, what: What, hash: u64, failed: bool, value: u64) -> Result<Vec<u64>, Fault> {
        if let Some(fault) = self.why() {
            return Err(fault);
        }
        let step = self.steps.fetch_add(1, Ordering::Relaxed);
        let ready = self.later().as_ref().is_some_and(|l| l.word.get().is_some());
        let own = Record { what, failed, ready, step, place: self.place.load(Ordering::Relaxed), hash, value };
        let came = self.taken(self.mpi.gather(own.bytes()))?;
        let records: Vec<Record> = came.chunks_exact(Record::BYTES).map(Record::read).collect();
        match judge(&records, self.mpi.rank) {
            Verdict::Same => {
                if records.iter().all(|r| r.ready) {
                    self.words_of_all()?;
                }
                Ok(records.iter().map(|r| r.value).collect())
            }
            Verdict::Failed { tells } => Err(self.end_early(elsewhere(), tells)),
            Verdict::Differ if self.mpi.rank == 0 => Err(self.end_early(self.differ(&records), true)),
            Verdict::Differ => Err(self.end_early(elsewhere(), false)),
        }
    }

    fn later(&self) -> MutexGuard<'_, Option<Later>> {
        self.later.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// At the first step at which every process has its word, all get the words of all. Words are of one length, and all
    /// processes ask for them at the same step.
    pub fn when_all(&self, word: Arc<OnceLock<Vec<u8>>>, take: Box<dyn FnOnce(Vec<Vec<u8>>) + Send>) {
        *self.later() = Some(Later { word, take });
    }

    fn words_of_all(&self) -> Result<(), Fault> {
        let later = self.later().take();
        let Some((Later { take, .. }, own)) = later.and_then(|l| l.word.get().cloned().map(|word| (l, word))) else {
            bug!("a word that was there is gone");
        };
        let len = own.len().max(1);
        let came = self.taken(self.mpi.gather(own))?;
        take(came.chunks_exact(len).map(<[u8]>::to_vec).collect());
        Ok(())
    }

    fn end_early(&self, fault: Fault, tells: bool) -> Fault {
        self.over.get_or_init(|| (fault, tells)).0.clone()
    }

    fn why(&self) -> Option<Fault> {
        self.lost.get().or(self.over.get().map(|o| &o.0)).cloned()
    }

    fn differ(&self, records: &[Record]) -> Fault {
        if records.iter().all(|r| r.what == What::Start) {
            return Fault::new(DIFFER, "the processes of this run were not started alike")
                .note("program, files, arguments, options and the version of Tessera have to be the same")
                .note("and the instruction for products of bf16 that the processor has and the system allows");
        }
        let first = Fault::new(DIFFER, "the processes of this run do not do the same");
        let mut told: Vec<(String, Vec<usize>)> = vec![];
        for (rank, r) in records.iter().enumerate() {
            let text = match r.what {
                What::End => r.what.text().to_owned(),
                what => format!("{}, at {}", what.text(), self.place_text(r.place)),
            };
            let same = |t: &&mut (String, Vec<usize>)| records[t.1[0]].hash == r.hash && t.0 == text;
            match told.iter_mut().find(same) {
                Some((_, who)) => who.push(rank),
                None => told.push((text, vec![rank])),
            }
        }
        let one = told.iter().all(|t| t.0 == told[0].0);
        let notes = told.into_iter().fold(first, |fault, (text, who)| {
            let who: Vec<String> = who.iter().map(usize::to_string).collect();
            fault.note(format!("process {} {text}", who.join(", ")))
        });
        match one {
            true => notes.note("with other numbers, elements, shapes or layouts"),
            false => notes,
        }
    }

    /// Whether this process tells why the run ends early; `None` while it does not.
    pub fn tells(&self) -> Option<bool> {
        if self.lost.get().is_some() { Some(true) } else { self.over.get().map(|o| o.1) }
    }

    /// What the first process answers, in all.
    pub fn ask(&self, question: &str, answer: impl FnOnce() -> Vec<u8>) -> Result<Vec<u8>, Fault> {
        let answer = if self.mpi.rank == 0 { answer() } else { vec![] };
        let lens = self.agree(What::Ask, hash(&[question.as_bytes()]), false, answer.len() as u64)?;
        let len = lens.first().map_or(0, |n| *n as usize);
        self.from_first(if self.mpi.rank == 0 { answer } else { vec![0; len] })
    }

    /// As [`World::ask`] for a number, which costs one message less.
    pub fn ask_float(&self, question: &str, answer: impl FnOnce() -> f64) -> Result<f64, Fault> {
        let value = if self.mpi.rank == 0 { answer().to_bits() } else { 0 };
        let values = self.agree(What::Ask, hash(&[question.as_bytes()]), false, value)?;
        Ok(f64::from_bits(values.first().copied().unwrap_or(0)))
    }

    /// The first process's bytes, of which all know the number.
    pub fn from_first(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Fault> {
        self.taken(self.mpi.broadcast(bytes))
    }

    /// What each process says, in the first one; nothing in the others.
    pub fn to_first(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Fault> {
        let lens = self.agree(What::Rows, 0, false, bytes.len() as u64)?;
        if self.mpi.rank != 0 {
            self.taken(self.mpi.send(0, TAG_ROWS, bytes))?;
            return Ok(vec![]);
        }
        let others = lens.iter().enumerate().skip(1);
        let came = others.map(|(r, &len)| self.taken(self.mpi.receive(r, TAG_ROWS, len as usize)));
        std::iter::once(Ok(bytes)).chain(came).collect()
    }

    /// Does in the first process what is done once for all, as writing a file. The others go on when it is
    /// done.
    pub fn once(&self, what: &str, first: impl FnOnce() -> Result<(), Fault>) -> Result<(), Fault> {
        let done = if self.mpi.rank == 0 { first() } else { Ok(()) };
        let agreed = self.agree(What::Write, hash(&[what.as_bytes()]), done.is_err(), 0);
        done.and(agreed.map(|_| ()))
    }

    // ---- Beginning and end ------------------------------------------------------------------

    /// Sends known content around, each to the next.
    fn test(&self) -> Result<(), Fault> {
        /// More than goes along with the first message of any network.
        const BYTES: usize = 1 << 17;
        let content = |rank: usize| -> Vec<u8> { (0..BYTES).map(|i| (i * 7 + rank * 31) as u8).collect() };
        let wrong = |what: &str| unusable(format!("MPI does not work here: {what}"));
        let (rank, size) = (self.mpi.rank, self.mpi.size);
        let (before, after) = ((rank + size - 1) % size, (rank + 1) % size);
        let numbers = self.agree(What::Test, size as u64, false, rank as u64)?;
        if numbers.iter().ne((0..size as u64).collect::<Vec<_>>().iter()) {
            return Err(wrong("processes do not have the numbers that they should have"));
        }
        if variable(&["OMPI_COMM_WORLD_RANK", "PMI_RANK"]).is_some_and(|n| n != rank) {
            return Err(wrong("this process has another number than `mpirun` gave it"));
        }
        let coming = self.message(self.mpi.receive(before, TAG_TEST, BYTES))?;
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
        let Ok(mut message) = self.mpi.gather(vec![1]) else { return };
        let start = Instant::now();
        while start.elapsed() < GRACE && matches!(self.mpi.is_done(&mut message), Ok(false)) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
