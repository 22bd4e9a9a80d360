//! The functions that compiled host code calls, by their rows in `abi::rt`.
//!
//! Each is an `extern "C"` function whose parameters say what compiled code passes: `&T` a
//! borrowed object of that kind, `Own<T>` one that is taken over, `Option<&T>` one or None,
//! `u64` a word of any type. Compiled code keeps to the rows, and the context outlives it.

mod dicts;
mod lists;
mod measures;
mod objects;
mod scalars;
mod strings;
mod system;

use crate::context::Context;
use crate::fault::Fault;
use crate::value::{Header, Object, Own};
use tessera_abi::rt::{RtFn, Word};

/// Every runtime function with its address, except those of tensors and files
/// ([`crate::rt_tensor`] has those).
pub fn symbols() -> Vec<(RtFn, *const u8)> {
    let mut rows = vec![];
    let parts = [
        objects::rows(),
        strings::rows(),
        lists::rows(),
        dicts::rows(),
        scalars::rows(),
        system::rows(),
        measures::rows(),
    ];
    for part in parts {
        rows.extend(part);
    }
    rows
}

/// A row for the function table, with what its parameters are.
pub struct Row {
    pub func: RtFn,
    pub address: *const u8,
    /// Without the context; with the span.
    pub params: Vec<Word>,
    pub ret: Word,
}

/// Checks a function against its row. The classes of words must agree: the rest of the
/// difference between ints and pointers does not reach the calling convention.
pub fn row_matches(row: &Row) -> bool {
    let sig = row.func.sig();
    let class = |w: &Word| matches!(w, Word::Float);
    let mut wanted: Vec<bool> = sig.params.iter().map(class).collect();
    if sig.fails {
        wanted.push(false);
    }
    wanted == row.params.iter().map(class).collect::<Vec<_>>()
        && class(&sig.ret) == class(&row.ret)
        && (sig.ret == Word::Unit) == (row.ret == Word::Unit)
}

/// The addresses of rows.
pub fn addresses(rows: Vec<Row>) -> Vec<(RtFn, *const u8)> {
    rows.into_iter()
        .map(|row| {
            debug_assert!(row_matches(&row), "{:?} differs from its row", row.func);
            (row.func, row.address)
        })
        .collect()
}

/// Types of parameters and results.
pub trait HostValue {
    const WORD: Word;
}

impl HostValue for i64 {
    const WORD: Word = Word::Int;
}
impl HostValue for f64 {
    const WORD: Word = Word::Float;
}
impl HostValue for u64 {
    const WORD: Word = Word::Any;
}
impl HostValue for () {
    const WORD: Word = Word::Unit;
}
impl<T> HostValue for &T {
    const WORD: Word = Word::Ptr;
}
impl<T> HostValue for &mut T {
    const WORD: Word = Word::Ptr;
}
impl<T> HostValue for Option<&T> {
    const WORD: Word = Word::Ptr;
}
impl<T: Object> HostValue for Own<T> {
    const WORD: Word = Word::Ptr;
}
impl<T> HostValue for *const T {
    const WORD: Word = Word::Int;
}
impl<T> HostValue for *mut T {
    const WORD: Word = Word::Int;
}

macro_rules! arity {
    ($($name:ident($($p:ident),*);)*) => { $(
        /// A row of a function with so many parameters after the context.
        pub fn $name<$($p: HostValue,)* R: HostValue>(func: RtFn, code: extern "C" fn(&mut Context, $($p),*) -> R) -> Row {
            Row { func, address: code as *const u8, params: vec![$($p::WORD),*], ret: R::WORD }
        }
    )* };
}
arity! {
    takes_0();
    takes_1(A);
    takes_2(A, B);
    takes_3(A, B, C);
    takes_4(A, B, C, D);
    takes_5(A, B, C, D, E);
    takes_6(A, B, C, D, E, F);
    takes_7(A, B, C, D, E, F, G);
    takes_9(A, B, C, D, E, F, G, H, I);
}

/// `rows! { takes_1 str_len str_upper; takes_2 str_concat; }`: functions that are named as their rows.
macro_rules! rows {
    ($($arity:ident $($name:ident)+;)*) => {
        $crate::rt::addresses(vec![$($($crate::rt::$arity(tessera_abi::rt::RtFn::$name, $name)),+),*])
    };
}
pub(crate) use rows;

/// The value, or what stands for it after the failure was noted.
pub fn settle<T: Default>(cx: &mut Context, span: i64, outcome: Result<T, Fault>) -> T {
    outcome.unwrap_or_else(|fault| {
        cx.fail(fault, span as u32);
        T::default()
    })
}

/// The same for what is taken over: where it could not be changed, it is given back.
pub fn settle_own(cx: &mut Context, span: i64, outcome: Result<u64, (Fault, u64)>) -> u64 {
    outcome.unwrap_or_else(|(fault, unchanged)| {
        cx.fail(fault, span as u32);
        unchanged
    })
}

/// The address of an object's header, for those functions that take any object.
pub type AnyObject<'a> = Option<&'a Header>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_has_its_function() {
        let found: BTreeSet<RtFn> = symbols().into_iter().chain(crate::rt_tensor::symbols()).map(|s| s.0).collect();
        assert_eq!(found.len(), symbols().len() + crate::rt_tensor::symbols().len(), "a function is registered twice");
        let elsewhere = |f: &RtFn| {
            let name = f.sig().name;
            name.starts_with("tensor_") || name.starts_with("io_") || name == "sizes_differ"
        };
        let missing: Vec<_> = RtFn::ALL.iter().filter(|f| !found.contains(f) && !elsewhere(f)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
