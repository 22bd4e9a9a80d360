//! Ctrl-C while an input runs: it stops, the session goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Who is to be stopped by an interrupt.
#[derive(Clone, Default)]
pub struct Interrupts(Arc<Mutex<Option<Arc<AtomicBool>>>>);

impl Interrupts {
    /// Watches for interrupts. With `ends`, one that finds nothing running ends the process.
    pub fn watch(ends: bool) -> Interrupts {
        let this = Interrupts::default();
        let Ok(mut signals) = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT]) else { return this };
        let running = this.clone();
        let watch = move || {
            for _ in signals.forever() {
                match &*running.slot() {
                    Some(flag) if !flag.swap(true, Ordering::SeqCst) => {}
                    Some(_) if !ends => {
                        eprintln!("interrupting: the kernel that runs ends first (Ctrl-\\ ends the session)")
                    }
                    None if !ends => {}
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

    fn slot(&self) -> MutexGuard<'_, Option<Arc<AtomicBool>>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Runs `f` so that an interrupt sets the flag.
    pub fn during<T>(&self, flag: Arc<AtomicBool>, f: impl FnOnce() -> T) -> T {
        flag.store(false, Ordering::SeqCst);
        *self.slot() = Some(flag);
        let value = f();
        *self.slot() = None;
        value
    }
}
