//! Starts the program on a thread with a stack of known size, and turns a bug of ours into a
//! message instead of a backtrace.

use tessera::commands;

/// Counts what the program's values take.
#[global_allocator]
static MEMORY: tessera_runtime::memory::Counting = tessera_runtime::memory::Counting;

/// Stack of the thread that checks, compiles and runs the program.
const STACK_BYTES: usize = 256 << 20;

fn main() {
    tessera_runtime::math::define(tessera_ops::numbers::apply);
    std::panic::set_hook(Box::new(|info| {
        // What a library says about a bad file becomes a diagnostic.
        if !tessera_runtime::io::tokens::is_guarded() {
            commands::report_bug(&info.to_string());
        }
    }));
    let worker = std::thread::Builder::new()
        .name("tessera".into())
        .stack_size(STACK_BYTES)
        .spawn(|| commands::main(STACK_BYTES));
    let code = match worker.map(|w| w.join()) {
        Ok(Ok(code)) => code,
        // The hook has told already.
        Ok(Err(_)) => 1,
        Err(e) => {
            eprintln!("error[E0710]: a stack of {STACK_BYTES} bytes cannot be had: {e}");
            1
        }
    };
    tessera_runtime::exit::exit(code)
}
