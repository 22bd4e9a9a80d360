//! Tests of the whole table of operators, run by the rows of primitives: that typing rules and expansions agree, and what
//! expansions give.

mod record;
mod law;
mod values;
mod spectral;
