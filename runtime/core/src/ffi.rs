//! Runtime functions called with values, as an interpreter does, where compiled code passes words.

use crate::context::{Context, RunError, Stop};
use crate::host_value::{self, HostValue};
use crate::value::TypeId;
use crate::{rt, rt_tensor};
use std::collections::BTreeMap;
use tessera_abi::rt::{RtFn, Word};

/// An argument.
pub enum Given {
    /// A value of a type.
    Value(HostValue, TypeId),
    /// A number that is not a value of the program: which one of several, a type.
    Number(i64),
}

/// The addresses of all functions.
pub struct Functions(BTreeMap<RtFn, *const u8>);

impl Default for Functions {
    fn default() -> Functions {
        Functions(rt::symbols().into_iter().chain(rt_tensor::symbols()).collect())
    }
}

impl Functions {
    /// Calls a function; its result is of the type `ret`. Spans are the number 0.
    ///
    /// # Errors
    /// Why the function ends the program: a fault, or an exit; E0999 for a value that is not of its type.
    pub fn call(&self, cx: &mut Context, func: RtFn, args: Vec<Given>, ret: TypeId) -> Result<HostValue, Stop> {
        let sig = func.sig();
        let address = self.0.get(&func).copied();
        let address = address.filter(|_| args.len() == sig.params.len());
        assert!(address.is_some(), "`{}` is called with {} arguments", sig.name, args.len());
        let address = address.unwrap_or(std::ptr::null());
        let mut owned = vec![];
        let mut words: Vec<(Word, u64)> = vec![];
        for (at, (arg, &class)) in args.into_iter().zip(sig.params).enumerate() {
            let word = match arg {
                Given::Number(n) => n as u64,
                Given::Value(value, ty) if !host_value::fits(&cx.types, &value, ty) => {
                    owned.into_iter().for_each(|(word, ty)| cx.release(word, ty));
                    let message = format!("a value that `{}` takes is not of its type", sig.name);
                    return Err(Stop::Error(RunError::new(999, message, 0)));
                }
                Given::Value(value, ty) => {
                    let word = host_value::write(&cx.types, value, ty);
                    if !(at == 0 && sig.consumes_first) {
                        owned.push((word, ty));
                    }
                    word
                }
            };
            words.push((class, word));
        }
        if sig.fails {
            words.push((Word::Int, 0));
        }
        // SAFETY: the address is that of the function of this row, the arguments are live words of the classes
        // that the row gives, and the context is alive.
        let word = unsafe { call_words(address, cx, &words, sig.ret) };
        let stop = if cx.is_stopped() { cx.take_stop() } else { None };
        let result = match (&stop, sig.ret) {
            (_, Word::Unit) => HostValue::None,
            (Some(_), _) if !sig.consumes_first => HostValue::None,
            _ => {
                // SAFETY: what the function gave is an owned value of its result type, and is released next.
                let value = unsafe { host_value::read(&cx.types, word, ret, true) };
                cx.release(word, ret);
                value
            }
        };
        owned.into_iter().for_each(|(word, ty)| cx.release(word, ty));
        stop.map_or(Ok(result), Err)
    }
}

/// Calls `extern "C" fn(&mut Context, words…) -> ret`.
///
/// # Safety
/// The function at `address` has parameters of these classes and gives `ret`; the words are live values.
unsafe fn call_words(address: *const u8, cx: &mut Context, words: &[(Word, u64)], ret: Word) -> u64 {
    macro_rules! class {
        (i) => {
            u64
        };
        (f) => {
            f64
        };
    }
    macro_rules! word {
        (i, $w:expr) => {
            $w.1
        };
        (f, $w:expr) => {
            f64::from_bits($w.1)
        };
    }
    macro_rules! shapes {
        ($($pattern:literal: $($p:ident $at:literal)*;)*) => {{
            let shape: String = words.iter().map(|w| if w.0 == Word::Float { 'f' } else { 'i' }).collect();
            match (shape.as_str(), ret) {
                $(
                    ($pattern, Word::Float) => {
                        // SAFETY: the caller's promise.
                        let f: extern "C" fn(&mut Context $(, class!($p))*) -> f64 = unsafe { std::mem::transmute(address) };
                        f(cx $(, word!($p, words[$at]))*).to_bits()
                    }
                    ($pattern, Word::Unit) => {
                        // SAFETY: the caller's promise.
                        let f: extern "C" fn(&mut Context $(, class!($p))*) = unsafe { std::mem::transmute(address) };
                        f(cx $(, word!($p, words[$at]))*);
                        0
                    }
                    ($pattern, _) => {
                        // SAFETY: the caller's promise.
                        let f: extern "C" fn(&mut Context $(, class!($p))*) -> u64 = unsafe { std::mem::transmute(address) };
                        f(cx $(, word!($p, words[$at]))*)
                    }
                )*
                _ => panic!("no row of the runtime takes `{shape}`"),
            }
        }};
    }
    shapes! {
        "": ;
        "i": i 0;
        "f": f 0;
        "ii": i 0 i 1;
        "fi": f 0 i 1;
        "ff": f 0 f 1;
        "iii": i 0 i 1 i 2;
        "ifi": i 0 f 1 i 2;
        "ffi": f 0 f 1 i 2;
        "iiii": i 0 i 1 i 2 i 3;
        "iffi": i 0 f 1 f 2 i 3;
        "iiiii": i 0 i 1 i 2 i 3 i 4;
        "iiiiii": i 0 i 1 i 2 i 3 i 4 i 5;
        "iiiiiii": i 0 i 1 i 2 i 3 i 4 i 5 i 6;
        "iiiiiiiii": i 0 i 1 i 2 i 3 i 4 i 5 i 6 i 7 i 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::TypeTable;

    fn context() -> Box<Context> {
        Context::new(Box::new(std::io::sink()), false)
    }

    #[test]
    fn values_go_in_and_come_out() {
        let (mut cx, all) = (context(), Functions::default());
        let text = |t: &str| Given::Value(HostValue::Str(t.into()), TypeTable::STR);
        let Ok(HostValue::Str(joined)) =
            all.call(&mut cx, RtFn::str_concat, vec![text("a"), text("b")], TypeTable::STR)
        else {
            panic!()
        };
        assert_eq!(&*joined, "ab");
        let round = vec![Given::Value(HostValue::Float(2.345), TypeTable::FLOAT), Given::Number(1)];
        let rounded = all.call(&mut cx, RtFn::round_digits, round, TypeTable::FLOAT);
        assert!(matches!(rounded, Ok(HostValue::Float(x)) if x == 2.3));
    }

    #[test]
    fn a_fault_is_given_back_and_the_context_goes_on() {
        let (mut cx, all) = (context(), Functions::default());
        let bad = vec![Given::Value(HostValue::Str("x".into()), TypeTable::STR)];
        let failed = all.call(&mut cx, RtFn::str_to_int, bad, TypeTable::INT);
        assert!(matches!(failed, Err(Stop::Error(_))));
        assert!(!cx.is_stopped());
        let good = vec![Given::Value(HostValue::Str("7".into()), TypeTable::STR)];
        assert!(matches!(all.call(&mut cx, RtFn::str_to_int, good, TypeTable::INT), Ok(HostValue::Int(7))));
    }

    #[test]
    fn every_row_has_a_shape_that_is_known() {
        for func in RtFn::ALL {
            let sig = func.sig();
            let floats = sig.params.iter().filter(|w| **w == Word::Float).count();
            let known = sig.params.len() <= 6 || sig.params.len() == 8 && sig.fails;
            assert!(known && floats <= 2, "`{}` needs a shape of its own", sig.name);
        }
    }
}
