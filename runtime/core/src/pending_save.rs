//! The checkpoint that is being written while the program goes on, if there is one ([`crate::io::checkpoint::saving`] begins
//! it). At most one is.

use crate::fault::Fault;
use crate::world;
use crate::world::step::What;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A thread that writes.
pub type Job = JoinHandle<Result<(), Fault>>;

/// In the first of several processes: what follows when all parts are there.
pub type Commit = Arc<Mutex<Option<Result<Job, Fault>>>>;

/// A save that is on its way.
pub struct Saving {
    /// Where the program asked for it.
    pub span: u32,
    pub job: Job,
    pub commit: Commit,
}

static SAVING: Mutex<Option<Saving>> = Mutex::new(None);

fn taken() -> Option<Saving> {
    SAVING.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Remembers a save; there is none before it ([`finish`]).
pub fn begin(saving: Saving) {
    *SAVING.lock().unwrap_or_else(PoisonError::into_inner) = Some(saving);
}

/// Starts a thread that writes.
///
/// # Errors
/// E0710.
pub fn start(job: impl FnOnce() -> Result<(), Fault> + Send + 'static) -> Result<Job, Fault> {
    let made = std::thread::Builder::new().name("checkpoint".into()).spawn(job);
    made.map_err(|e| Fault::new(710, format!("a thread that writes a checkpoint cannot be had: {e}")))
}

fn joined(job: Job) -> Result<(), Fault> {
    job.join().unwrap_or_else(|_| Err(Fault::new(999, "the thread that writes a checkpoint ended early")))
}

fn placed(commit: &Commit) -> Result<(), Fault> {
    match commit.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(job) => joined(job?),
        None => Ok(()),
    }
}

/// Waits until what was saved is on the disk. All processes of a run come here at the same step.
///
/// # Errors
/// Why it could not be written, with the place of the save.
pub fn finish() -> Result<(), Fault> {
    let Some(Saving { span, job, commit }) = taken() else { return Ok(()) };
    let at = |outcome: Result<(), Fault>| outcome.map_err(|fault| fault.at(span));
    let written = at(joined(job));
    let Some(w) = world::world() else { return written };
    let told = w.agree(What::Write, world::hash(&[b"saved"]), written.is_err(), 0);
    written.and(told.map(|_| ()))?;
    let placed = at(placed(&commit));
    let told = w.agree(What::Write, world::hash(&[b"placed"]), placed.is_err(), 0);
    placed.and(told.map(|_| ()))
}

/// The same at the end of a program that failed: its processes do not come to the same steps any more, so nothing is
/// agreed.
pub fn leave() {
    let Some(Saving { job, commit, .. }) = taken() else { return };
    let _ = joined(job);
    let _ = placed(&commit);
}
