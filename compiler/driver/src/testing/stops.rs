//! Ctrl-C while tests run: what runs stops, and what was found is told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Time that programs have to stop by themselves.
const GRACE: Duration = Duration::from_millis(1500);

/// The programs that run.
#[derive(Default)]
pub struct Stops(Arc<Inner>);

#[derive(Default)]
struct Inner {
    stopped: AtomicBool,
    flags: Mutex<Vec<Arc<AtomicBool>>>,
}

impl Inner {
    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let flags = self.flags.lock().unwrap_or_else(|e| e.into_inner());
        flags.iter().for_each(|f| f.store(true, Ordering::SeqCst));
    }
}

fn end() -> ! {
    tessera_runtime::io::replace::remove_pending();
    crate::interrupt::tell();
    std::process::exit(crate::interrupt::INTERRUPTED.into())
}

impl Stops {
    /// Watches for interrupts; the second one, or programs that do not stop, end the process.
    pub fn watch() -> Stops {
        let stops = Stops::default();
        let Ok(mut signals) = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT]) else { return stops };
        let inner = stops.0.clone();
        let watch = move || {
            for _ in signals.forever() {
                if inner.stopped.load(Ordering::SeqCst) {
                    end();
                }
                inner.stop();
                std::thread::spawn(|| {
                    std::thread::sleep(GRACE);
                    end();
                });
            }
        };
        // Without the thread Ctrl-C ends the process, by the system's default.
        let _ = std::thread::Builder::new().name("interrupts".into()).spawn(watch);
        stops
    }

    /// Whether there was an interrupt.
    pub fn stopped(&self) -> bool {
        self.0.stopped.load(Ordering::SeqCst)
    }

    /// Runs `f`, which registers the flags of the programs that it starts; they are set by an interrupt.
    pub fn during<T>(&self, f: impl FnOnce(&dyn Fn(Arc<AtomicBool>)) -> T) -> T {
        let mine = Mutex::new(vec![]);
        let register = |flag: Arc<AtomicBool>| {
            flag.store(self.stopped(), Ordering::SeqCst);
            self.0.flags.lock().unwrap_or_else(|e| e.into_inner()).push(flag.clone());
            mine.lock().unwrap_or_else(|e| e.into_inner()).push(flag);
        };
        let value = f(&register);
        let mine = mine.into_inner().unwrap_or_else(|e| e.into_inner());
        let done = |flag: &Arc<AtomicBool>| mine.iter().any(|m| Arc::ptr_eq(m, flag));
        self.0.flags.lock().unwrap_or_else(|e| e.into_inner()).retain(|flag| !done(flag));
        value
    }
}
