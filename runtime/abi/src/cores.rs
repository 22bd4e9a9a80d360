//! How many threads can run at once.

use std::sync::OnceLock;

/// Cores that the system lets this process use, 1 where it does not say. Asked once: that reads several files.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}
