//! Ctrl-C while an input runs: it stops, the session goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Who is to be stopped by an interrupt.
#[derive(Clone, Default)]
pub struct Interrupts(Arc<Mutex<Running>>);

#[derive(Default)]
struct Running {
    /// The flag of what runs.
    flag: Option<Arc<AtomicBool>>,
    /// There was an interrupt since the input began: what it runs next stops too.
    asked: bool,
}

/// What an interrupt found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    Nothing,
    Running,
    /// Something that was interrupted before.
    Stopping,
}

impl Interrupts {
    /// Watches for interrupts. With `ends`, one that finds nothing running ends the process.
    pub fn watch(ends: bool) -> Interrupts {
        let this = Interrupts::default();
        let Ok(mut signals) = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT]) else { return this };
        let running = this.clone();
        let watch = move || {
            for _ in signals.forever() {
                match running.interrupt() {
                    Found::Running => {}
                    Found::Stopping if !ends => {
                        eprintln!("interrupting: the kernel that runs ends first (Ctrl-\\ ends the session)")
                    }
                    Found::Nothing if !ends => {}
                    _ => {
                        tessera_runtime::io::replace::remove_pending();
                        std::process::exit(crate::interrupt::INTERRUPTED.into());
                    }
                }
            }
        };
        // Without the thread Ctrl-C ends the process, by the system's default.
        let _ = std::thread::Builder::new().name("interrupts".into()).spawn(watch);
        this
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Stops what runs, or what the input that is worked on runs next.
    pub fn interrupt(&self) -> Found {
        let mut running = self.running();
        running.asked = true;
        match &running.flag {
            None => Found::Nothing,
            Some(flag) if flag.swap(true, Ordering::SeqCst) => Found::Stopping,
            Some(_) => Found::Running,
        }
    }

    /// An input begins: interrupts before it are not meant for it.
    pub fn forget(&self) {
        self.running().asked = false;
    }

    /// Whether there was an interrupt since the input began.
    pub fn asked(&self) -> bool {
        self.running().asked
    }

    /// Runs `f` so that an interrupt sets the flag.
    pub fn during<T>(&self, flag: Arc<AtomicBool>, f: impl FnOnce() -> T) -> T {
        {
            let mut running = self.running();
            flag.store(running.asked, Ordering::SeqCst);
            running.flag = Some(flag);
        }
        let value = f();
        self.running().flag = None;
        value
    }
}
