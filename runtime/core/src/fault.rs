//! What goes wrong in the world: a code of the diagnostics table with its message. The span is
//! added where the call is known.

use crate::memory::{OutOfMemory, memory_bound, memory_limit};
use std::ffi::OsStr;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The number of the code: 706 is E0706.
    pub code: u16,
    pub message: String,
    pub notes: Vec<String>,
    /// Where it comes from, if that is not the place at which it shows.
    pub span: Option<u32>,
}

impl Fault {
    pub fn new(code: u16, message: impl Into<String>) -> Fault {
        Fault { code, message: message.into(), notes: vec![], span: None }
    }

    /// E0708: `text` is the message, then a note on each further line; each `{}` is one of `sizes`.
    pub fn sizes_differ(text: &str, sizes: &[i64]) -> Fault {
        let mut sizes = sizes.iter();
        let mut lines = text.lines().map(|line| {
            let mut parts = line.split("{}");
            let mut out = parts.next().unwrap_or("").to_owned();
            for part in parts {
                out.push_str(&sizes.next().map_or_else(|| "?".into(), i64::to_string));
                out.push_str(part);
            }
            out
        });
        let fault = Fault::new(708, lines.next().unwrap_or_default());
        lines.fold(fault, Fault::note)
    }

    /// The fault of another place than the one at which it shows.
    pub fn at(mut self, span: u32) -> Fault {
        self.span.get_or_insert(span);
        self
    }

    pub fn note(mut self, text: impl Into<String>) -> Fault {
        self.notes.push(text.into());
        self
    }
}

impl From<OutOfMemory> for Fault {
    fn from(e: OutOfMemory) -> Fault {
        let asked = if e.bytes == u64::MAX {
            "more than 2^64 bytes".to_owned()
        } else {
            format!("{} ({} bytes)", human_bytes(e.bytes), e.bytes)
        };
        Fault::new(710, format!("{asked} of memory cannot be had")).note(allowed_memory())
    }
}

/// How much memory one thing may take, and by whose word.
pub fn allowed_memory() -> String {
    let limit = memory_limit();
    let whose = if memory_bound() == Some(limit) { "`--memory` allows" } else { "this machine has" };
    format!("{whose} {}", human_bytes(limit))
}

/// Fails where the values of the program and so many bytes more are too much.
///
/// # Errors
/// E0710.
pub fn room(bytes: u64) -> Result<(), Fault> {
    if crate::memory::has_room(bytes) { Ok(()) } else { Err(OutOfMemory { bytes }.into()) }
}

/// Room for more elements. A vector grows to twice its length, so asking costs little.
///
/// # Errors
/// E0710.
pub fn reserve<T>(v: &mut Vec<T>, more: usize) -> Result<(), Fault> {
    if v.capacity() - v.len() >= more {
        return Ok(());
    }
    let elems = v.len().saturating_add(more).max(v.capacity().saturating_mul(2));
    let bytes = (elems as u64).saturating_mul(size_of::<T>() as u64);
    room(bytes)?;
    v.try_reserve(more).map_err(|_| OutOfMemory { bytes }.into())
}

/// The same of a text.
///
/// # Errors
/// E0710.
pub fn reserve_text(s: &mut String, more: usize) -> Result<(), Fault> {
    if s.capacity() - s.len() >= more {
        return Ok(());
    }
    let bytes = (s.len() as u64).saturating_add(more as u64).max((s.capacity() as u64).saturating_mul(2));
    room(bytes)?;
    s.try_reserve(more).map_err(|_| OutOfMemory { bytes }.into())
}

/// Fails if there is no room for `count` pieces of `each` bytes.
pub fn check_memory(count: u128, each: u128) -> Result<(), Fault> {
    room(u64::try_from(count.saturating_mul(each)).unwrap_or(u64::MAX))
}

/// A path or another name from outside as messages show it: what would break the line or command the terminal is spelled.
pub fn shown(name: impl AsRef<OsStr>) -> String {
    let spelled = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    name.as_ref().to_string_lossy().chars().map(spelled).collect()
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
