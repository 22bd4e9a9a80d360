//! Random programs of host numbers, and every operation on them at operands where something happens.

use crate::random::Random;
use tessera_core::builtins::{Builtin, Does, How, Kind as Param, rows};
use tessera_ops::numbers::NumberOp;
use tessera_ops::scalar::Kind;

/// Floats at which something happens, as programs write them.
pub const FLOATS: &[&str] = &[
    "0.0",
    "-0.0",
    "1.0",
    "-1.0",
    "0.5",
    "-0.5",
    "1.5",
    "2.5",
    "-2.5",
    "3.0",
    "0.1",
    "-7.25",
    "1e-300",
    "5e-324",
    "-5e-324",
    "1e300",
    "1.7976931348623157e308",
    "9007199254740993.0",
    "9223372036854774784.0",
    "9223372036854775808.0",
    "-9223372036854775808.0",
    "-9223372036854777856.0",
    "707.5",
    "-745.2",
    "1e10",
    "math.inf",
    "-math.inf",
    "math.nan",
];

/// Ints at which something happens.
pub const INTS: &[i64] = &[
    0,
    1,
    -1,
    2,
    -2,
    3,
    -3,
    7,
    -8,
    10,
    40,
    62,
    63,
    64,
    65,
    2147483647,
    2147483648,
    -2147483649,
    3000000000,
    9007199254740993,
    i64::MAX - 1,
    i64::MAX,
    i64::MIN + 1,
    i64::MIN,
];

/// How programs write an int; the least one is no literal with a sign.
pub fn int_text(n: i64) -> String {
    if n == i64::MIN { "(-9223372036854775807 - 1)".into() } else { n.to_string() }
}

/// The word of a float that a program writes.
pub fn float_word(text: &str) -> u64 {
    match text {
        "math.inf" => f64::INFINITY,
        "-math.inf" => f64::NEG_INFINITY,
        "math.nan" => f64::NAN,
        number => number.parse().unwrap_or(f64::NAN),
    }
    .to_bits()
}

/// Operands of a kind as programs write them, with their words.
pub fn operands(kind: Kind) -> Vec<(String, u64)> {
    match kind {
        Kind::F64 => FLOATS.iter().map(|t| (t.to_string(), float_word(t))).collect(),
        Kind::Bool => vec![("True".into(), 1), ("False".into(), 0)],
        _ => INTS.iter().map(|n| (int_text(*n), *n as u64)).collect(),
    }
}

/// What programs write for an operation.
pub fn written(op: NumberOp, a: &str, b: &str) -> String {
    op.def().written.replace("{a}", a).replace("{b}", b)
}

/// The type of a number, as programs write it.
pub fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::F64 => "float",
        Kind::Bool => "bool",
        _ => "int",
    }
}

/// Functions of the host library that take and give numbers and are no operation of the table: with what they take.
pub fn functions() -> Vec<(Builtin, Vec<Kind>, Kind)> {
    let number = |kind: Param| match kind {
        Param::Int => Some(Kind::I64),
        Param::Float => Some(Kind::F64),
        Param::Bool => Some(Kind::Bool),
        _ => None,
    };
    rows()
        .filter(|b| b.def().does != Does::Acts && !matches!(b.def().how, How::Number(_)))
        .filter_map(|b| {
            let params = b.params()?.iter().map(|p| number(p.kind)).collect::<Option<Vec<_>>>()?;
            let gives = match b.def().rule {
                tessera_core::builtins::Rule::Params(_, gives) => match gives {
                    tessera_core::builtins::Gives::Int => Kind::I64,
                    tessera_core::builtins::Gives::Float => Kind::F64,
                    tessera_core::builtins::Gives::Bool => Kind::Bool,
                    _ => return None,
                },
                tessera_core::builtins::Rule::By(_) => return None,
            };
            Some((b, params, gives))
        })
        .collect()
}

/// Writes expressions over the variables `a`, `b` (ints), `f`, `h` (floats), `p` (a bool), and `i` and `n`, ints of a loop.
pub struct Expressions<'r> {
    pub random: &'r mut Random,
}

impl Expressions<'_> {
    pub fn of(&mut self, kind: Kind, depth: usize) -> String {
        if depth == 0 || self.random.once_in(5) {
            return self.leaf(kind);
        }
        let rows: Vec<NumberOp> = NumberOp::ALL.iter().copied().filter(|op| op.def().gives == kind).collect();
        match self.random.below(12) {
            // Large shifts and powers leave the ints at once.
            0 if kind == Kind::I64 => format!("({} ** {})", self.of(kind, depth - 1), self.random.below(4)),
            1 if kind == Kind::I64 => format!("({} % {})", self.of(kind, depth - 1), 1 + self.random.below(1000)),
            2 if kind == Kind::I64 => {
                let x = self.of(Kind::F64, depth - 1);
                format!("int({x} % 1000.0)")
            }
            3 => {
                let (test, x, y) = (self.of(Kind::Bool, depth - 1), self.of(kind, depth - 1), self.of(kind, depth - 1));
                // What is not chosen is not computed, in a graph neither, so the test has to be known there.
                if self.random.once_in(3) {
                    format!("({x} if n > 3 else {y})")
                } else {
                    format!("{}({test}, {x}, {y})", picker(kind))
                }
            }
            4 if kind == Kind::Bool => {
                let (x, y) = (self.of(kind, depth - 1), self.of(kind, depth - 1));
                format!("({x} {} {y})", ["&", "|", "^"][self.random.below(3)])
            }
            5 if kind == Kind::F64 => format!("float({})", self.of(Kind::Bool, depth - 1)),
            _ => {
                let op = rows[self.random.below(rows.len())];
                self.row(op, depth)
            }
        }
    }

    /// An expression whose outermost operation is this row.
    pub fn row(&mut self, op: NumberOp, depth: usize) -> String {
        let takes = op.def().takes;
        let of_ints = op == NumberOp::int_div;
        let mut parts = vec![];
        for kind in takes {
            parts.push(self.of(if of_ints { Kind::I64 } else { *kind }, depth - 1));
        }
        let second = parts.get(1).cloned().unwrap_or_default();
        format!("({})", written(op, &parts[0], &second))
    }

    fn leaf(&mut self, kind: Kind) -> String {
        match kind {
            Kind::F64 if self.random.once_in(4) => format!("({})", self.random.pick(FLOATS)),
            Kind::F64 => {
                self.random.pick(&["f", "f", "h", "h", "float(i)", "float(n)", "float(a)", "0.5", "3.0"]).into()
            }
            Kind::Bool => self.random.pick(&["p", "p", "i > 4", "a < b", "True"]).into(),
            _ if self.random.once_in(6) => format!("({})", int_text(self.random.pick(INTS))),
            _ => self.random.pick(&["a", "a", "b", "b", "i", "i", "n", "1", "2", "3", "7", "-5"]).into(),
        }
    }
}

/// A choice between two numbers, both of which are computed.
fn picker(kind: Kind) -> &'static str {
    match kind {
        Kind::F64 => "pick_float",
        Kind::Bool => "pick_bool",
        _ => "pick_int",
    }
}

/// What random programs call.
pub const PRELUDE: &str = "\
def pick_int(p: bool, x: int, y: int) -> int:
    k = int(p)
    return k * (x % 1000) + (1 - k) * (y % 1000)

def pick_float(p: bool, x: float, y: float) -> float:
    k = float(p)
    return max(x * k, y * (1.0 - k))

def pick_bool(p: bool, x: bool, y: bool) -> bool:
    return (p & x) | (p ^ y)

";
