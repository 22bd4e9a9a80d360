//! The checkpoint that is being written while the program goes on, if there is one ([`crate::io::checkpoint::saving`] begins
//! it). At most one is.

use crate::fault::Fault;
use crate::world;
use crate::world::step::What;
use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};

/// What writes.
pub enum Job {
    Thread(JoinHandle<Result<(), Fault>>),
    /// No thread could be had, so the program waited.
    Done(Result<(), Fault>),
}

/// In the first of several processes: what follows when all parts are there.
pub type Commit = Arc<Mutex<Option<Job>>>;

/// A save that is on its way.
pub struct Saving {
    /// Where the program asked for it.
    pub span: u32,
    pub job: Job,
    pub commit: Commit,
}

static SAVING: Mutex<Option<Saving>> = Mutex::new(None);

thread_local! {
    static OTHERS: Cell<bool> = const { Cell::new(false) };
}

/// On this thread nothing is waited for: the one of the program does, which agrees with other processes.
pub fn leave_to_others() {
    OTHERS.set(true);
}

fn taken() -> Option<Saving> {
    SAVING.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Remembers a save; there is none before it ([`finish`]).
pub fn begin(saving: Saving) {
    *SAVING.lock().unwrap_or_else(PoisonError::into_inner) = Some(saving);
}

/// Writes on a thread. Where none can be had, the program waits: of several processes one that gave up would leave the
/// others to go on.
pub fn start(job: impl FnOnce() -> Result<(), Fault> + Send + 'static) -> Job {
    start_on(Builder::new(), job)
}

fn start_on<J: FnOnce() -> Result<(), Fault> + Send + 'static>(thread: Builder, job: J) -> Job {
    // A thread that is not made takes with it what it was to do, so that is given to one that is there.
    let (give, take) = mpsc::channel::<J>();
    let made = thread.name("checkpoint".into()).spawn(move || take.recv().map_or_else(|_| Ok(()), |job| job()));
    match made {
        Ok(thread) => match give.send(job) {
            Ok(()) => Job::Thread(thread),
            Err(mpsc::SendError(job)) => Job::Done(job()),
        },
        Err(_) => Job::Done(job()),
    }
}

fn joined(job: Job) -> Result<(), Fault> {
    match job {
        Job::Thread(thread) => {
            thread.join().unwrap_or_else(|_| Err(Fault::new(999, "the thread that writes a checkpoint ended early")))
        }
        Job::Done(outcome) => outcome,
    }
}

fn placed(commit: &Commit) -> Result<(), Fault> {
    match commit.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(job) => joined(job),
        None => Ok(()),
    }
}

/// Waits until what was saved is on the disk. All processes of a run come here at the same step.
///
/// # Errors
/// Why it could not be written, with the place of the save.
pub fn finish() -> Result<(), Fault> {
    if OTHERS.get() {
        return Ok(());
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_thread_can_write_is_written_all_the_same() {
        let told = || Err(Fault::new(706, "the disk is full"));
        // No stack is so large.
        for (thread, alone) in [(Builder::new(), false), (Builder::new().stack_size(usize::MAX >> 2), true)] {
            let job = start_on(thread, told);
            assert_eq!(matches!(job, Job::Done(_)), alone);
            assert_eq!(joined(job), told());
        }
    }
}
