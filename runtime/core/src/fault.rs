//! What goes wrong in the world: a code of the diagnostics table with its message. The span is
//! added where the call is known.

use crate::tensor::OutOfMemory;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The number of the code: 706 is E0706.
    pub code: u16,
    pub message: String,
    pub notes: Vec<String>,
}

impl Fault {
    pub fn new(code: u16, message: impl Into<String>) -> Fault {
        Fault { code, message: message.into(), notes: vec![] }
    }

    pub fn note(mut self, text: impl Into<String>) -> Fault {
        self.notes.push(text.into());
        self
    }
}

impl From<OutOfMemory> for Fault {
    fn from(e: OutOfMemory) -> Fault {
        let limit = crate::tensor::memory_limit();
        let asked = if e.bytes == u64::MAX {
            "more than 2^64 bytes".to_owned()
        } else {
            format!("{} ({} bytes)", human_bytes(e.bytes), e.bytes)
        };
        let whose = if crate::tensor::memory_bound() == Some(limit) { "`--memory` allows" } else { "this machine has" };
        Fault::new(710, format!("{asked} of memory cannot be had")).note(format!("{whose} {}", human_bytes(limit)))
    }
}

/// Fails if there is no room for `count` pieces of `each` bytes.
pub fn check_memory(count: u128, each: u128) -> Result<(), Fault> {
    crate::memory::room(u64::try_from(count.saturating_mul(each)).unwrap_or(u64::MAX))
}

/// `1.5 GiB`.
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}
