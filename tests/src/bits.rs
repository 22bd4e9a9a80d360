//! Bits that differ.
//!
//! A NaN equals every other NaN of its type: IEEE 754 leaves its sign and payload to the
//! machine, and constants are folded by another machine than the one that runs. All other
//! elements have to have equal bytes, zeros their signs too.

use std::fmt;
use tessera_base::DType;
use tessera_ops::convert;
use tessera_ops::prim::Scalar;

/// Where two ways part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Which way of running.
    pub way: String,
    pub what: String,
}

impl Difference {
    /// Without the texts that may follow.
    pub fn line(&self) -> String {
        format!("{}: {}", self.way, self.what.lines().next().unwrap_or_default())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.way, self.what)
    }
}

/// Such a difference as a result.
pub fn differs<T>(way: impl Into<String>, what: impl Into<String>) -> Result<T, Difference> {
    Err(Difference { way: way.into(), what: what.into() })
}

/// The first element that differs and how many do; NaN equals NaN.
pub fn difference(dtype: DType, expected: &[u8], got: &[u8]) -> Option<String> {
    if expected == got {
        return None;
    }
    if expected.len() != got.len() {
        return Some(format!("{} bytes instead of {}", got.len(), expected.len()));
    }
    let part = if dtype.is_complex() { DType::F32 } else { dtype };
    let size = part.bytes();
    let nan = |b: &[u8]| matches!(convert::load(part, b, 0), Some(Scalar::F(x)) if x.is_nan());
    let mut wrong =
        expected.chunks(size).zip(got.chunks(size)).enumerate().filter(|(_, (e, g))| e != g && !(nan(e) && nan(g)));
    let (i, (e, g)) = wrong.next()?;
    let show = |b: &[u8]| {
        let hex: String = b.iter().rev().map(|b| format!("{b:02x}")).collect();
        match convert::load(part, b, 0) {
            Some(Scalar::F(x)) => format!("{x:?} (0x{hex})"),
            Some(Scalar::I(n)) => format!("{n} (0x{hex})"),
            None => format!("0x{hex}"),
        }
    };
    let more = wrong.count();
    Some(format!("element {i} is {} instead of {}, {more} more of {} differ", show(g), show(e), expected.len() / size))
}
