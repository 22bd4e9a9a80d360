//! A broken invariant of the compiler.

/// Ends the program with E0999, which says what broke and asks for a report. What cannot go on has no other way out: a
/// default in its place would be a wrong result.
#[macro_export]
macro_rules! bug {
    ($($what:tt)*) => {
        panic!($($what)*)
    };
}
