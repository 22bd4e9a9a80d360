//! Ctrl-C: the running program is asked to stop; if it does not soon, the process ends without
//! leaving half-written files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time that a program has to stop by itself.
const GRACE: Duration = Duration::from_millis(1500);

/// Exit code of an interrupted program (128 + SIGINT).
pub const INTERRUPTED: u8 = 130;

/// Sets the flag at the first interrupt; ends the process if the flag is still set after the
/// grace period or at the second interrupt.
pub fn on_interrupt(flag: Arc<AtomicBool>) {
    let Ok(mut signals) =
        signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM])
    else {
        return;
    };
    let watch = move || {
        for _ in signals.forever() {
            if flag.swap(true, Ordering::SeqCst) {
                end();
            }
            let flag = flag.clone();
            std::thread::spawn(move || {
                std::thread::sleep(GRACE);
                if flag.load(Ordering::SeqCst) {
                    end();
                }
            });
        }
    };
    // Without the thread Ctrl-C still ends the process, by the system's default.
    let _ = std::thread::Builder::new().name("interrupts".into()).spawn(watch);
}

/// Says that the program did not come to its end.
pub fn tell() {
    eprintln!("interrupted");
}

fn end() -> ! {
    tessera_runtime::io::files::remove_pending();
    tell();
    std::process::exit(INTERRUPTED.into())
}
