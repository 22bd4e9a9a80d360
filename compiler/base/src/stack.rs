//! Room for recursion over deep programs.

/// Runs `f` on a thread with a stack of so many bytes; memory is taken only as it is used.
/// Where no such stack can be had, `f` runs on the caller's.
pub fn deep<T: Send>(bytes: usize, f: impl Fn() -> T + Sync) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("deep".into()).stack_size(bytes);
        match thread.spawn_scoped(scope, &f) {
            Ok(handle) => handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => f(),
        }
    })
}
