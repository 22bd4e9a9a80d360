//! Messages move on while devices compute: the library sends and receives only during its calls, so while messages are under
//! way that nobody waits for, devices call it between steps, and a thread during long ones.

use super::{TAG_FAILED, World};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::Duration;

/// How long the thread sleeps between two calls.
const PAUSE: Duration = Duration::from_micros(100);

/// What the thread and the others tell each other.
#[derive(Default)]
pub struct Progress {
    /// Exchanges that have started and that nobody waits for.
    under_way: AtomicUsize,
    /// Whether the thread sleeps until there are some.
    asleep: AtomicBool,
    /// `None` where the system gave no thread: messages then move where somebody waits.
    thread: OnceLock<Option<Thread>>,
}

/// An exchange that is under way; until it is dropped its messages are moved on.
pub struct Moving(&'static Progress);

impl Drop for Moving {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl World {
    /// Moves messages on from now on.
    pub fn moving(&'static self) -> Moving {
        let progress = &self.progress;
        progress.under_way.fetch_add(1, Ordering::SeqCst);
        let start = || {
            let thread = std::thread::Builder::new().name("messages".into()).spawn(|| self.keep_moving());
            thread.ok().map(|t| t.thread().clone())
        };
        if let Some(thread) = progress.thread.get_or_init(start)
            && progress.asleep.swap(false, Ordering::SeqCst)
        {
            thread.unpark();
        }
        Moving(progress)
    }

    /// Moves messages on now, if large ones are under way.
    pub fn move_on(&self) {
        if self.progress.under_way.load(Ordering::SeqCst) > 0 {
            // Any call will do.
            self.mpi.has_come(TAG_FAILED);
        }
    }

    fn keep_moving(&self) {
        let progress = &self.progress;
        loop {
            while progress.under_way.load(Ordering::SeqCst) > 0 && !self.is_closing() {
                self.move_on();
                std::thread::sleep(PAUSE);
            }
            progress.asleep.store(true, Ordering::SeqCst);
            // One may have begun just before.
            if progress.under_way.load(Ordering::SeqCst) == 0 || self.is_closing() {
                std::thread::park();
            }
            progress.asleep.store(false, Ordering::SeqCst);
        }
    }
}
