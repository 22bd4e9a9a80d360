//! Signals. Ctrl-C: the running program is asked to stop; if it does not soon, the process ends without
//! leaving half-written files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tessera_runtime::world::{self, World};

/// Time that a program has to stop by itself.
const GRACE: Duration = Duration::from_millis(1500);
/// The same under a launcher, which gives a process a second from its signal to its end.
const GRACE_OF_LAUNCHER: Duration = Duration::from_millis(500);

/// Exit code of an interrupted program (128 + SIGINT).
pub const INTERRUPTED: u8 = 130;

/// What goes beyond the size that a file may have (`ulimit -f`) fails as a write to a full disk does. The system would end the
/// process, which could tell nobody.
pub fn outlive_large_files() {
    // A flag that nobody reads: unlike an ignored signal, it is not passed on to other programs.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

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
            let world = world::world();
            // What a launcher kills when others have ended may already be on its way out.
            if world.is_some_and(World::is_closing) {
                continue;
            }
            world.inspect(|w| w.tell_to_end());
            if flag.swap(true, Ordering::SeqCst) {
                end();
            }
            let flag = flag.clone();
            let grace = if world.is_some() { GRACE_OF_LAUNCHER } else { GRACE };
            std::thread::spawn(move || {
                std::thread::sleep(grace);
                if flag.load(Ordering::SeqCst) {
                    end();
                }
            });
        }
    };
    // Without the thread Ctrl-C still ends the process, by the system's default.
    let _ = std::thread::Builder::new().name("interrupts".into()).spawn(watch);
}

/// The variable of the environment that has the number of the process for which this one works.
pub const WORKS_FOR: &str = "TESSERA_WORKS_FOR";

/// Ends the process soon after the one is gone that it works for ([`WORKS_FOR`]): a language server that is killed ends nothing
/// by itself, and what it runs would go on for nobody.
pub fn end_with_parent() {
    const LOOK: Duration = Duration::from_millis(200);
    let named = std::env::var(WORKS_FOR).ok().and_then(|n| n.parse::<u32>().ok());
    let Some(parent) = named else { return };
    let watch = move || {
        while std::os::unix::process::parent_id() == parent {
            std::thread::sleep(LOOK);
        }
        end();
    };
    // Without the thread the program comes to its end by itself, or never.
    let _ = std::thread::Builder::new().name("parent".into()).spawn(watch);
}

/// Says that the program did not come to its end.
pub fn tell() {
    eprintln!("interrupted");
}

fn end() -> ! {
    tessera_runtime::io::replace::remove_pending();
    if let Some(world) = world::world() {
        eprintln!("error[E0721]: {}", world.ended_from_outside().message);
        world.close(1);
    }
    tell();
    std::process::exit(INTERRUPTED.into())
}
