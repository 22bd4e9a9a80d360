//! What arithmetic of host numbers asks of its operands, for compiled host code, for graphs that compute such
//! numbers, and for the interpreter: one definition of where an operation has a value.

/// An operation of host code that has no value for some operands. Words are i64 or the bits of an f64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Check {
    // Of two ints.
    Add,
    Sub,
    Mul,
    FloorDiv,
    Mod,
    Pow,
    Shl,
    Shr,
    /// An index into as many elements as the second operand says.
    Position,
    /// Random ints from the first operand up to the second.
    Range,
    /// The end of a loop that has at most as many steps as the second operand says: the first is 1 if it would go on, else 0.
    Steps,
    /// An int as an element of a narrower type, whose largest value the second operand is.
    Value,
    // Of one int; the second operand is the first again.
    Neg,
    /// An assertion: the operand is 1 where it holds, else 0.
    Holds,
    // Of two floats.
    /// `/` of two ints, which are floats by then.
    IntTrueDiv,
    FloatFloorDiv,
    FloatMod,
    MathPow,
    // Of one float; the second operand is the first again.
    ToInt,
    Round,
    Sqrt,
    Log,
    Log2,
    Log10,
    Log1p,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
}

/// All checks with the names that texts of graphs have for them.
const NAMES: [(Check, &str); 30] = [
    (Check::Add, "add"),
    (Check::Sub, "sub"),
    (Check::Mul, "mul"),
    (Check::FloorDiv, "floor_div"),
    (Check::Mod, "mod"),
    (Check::Pow, "pow"),
    (Check::Shl, "shl"),
    (Check::Shr, "shr"),
    (Check::Position, "position"),
    (Check::Range, "range"),
    (Check::Steps, "steps"),
    (Check::Value, "value"),
    (Check::Neg, "neg"),
    (Check::Holds, "holds"),
    (Check::IntTrueDiv, "int_true_div"),
    (Check::FloatFloorDiv, "float_floor_div"),
    (Check::FloatMod, "float_mod"),
    (Check::MathPow, "math_pow"),
    (Check::ToInt, "to_int"),
    (Check::Round, "round"),
    (Check::Sqrt, "sqrt"),
    (Check::Log, "log"),
    (Check::Log2, "log2"),
    (Check::Log10, "log10"),
    (Check::Log1p, "log1p"),
    (Check::Sin, "sin"),
    (Check::Cos, "cos"),
    (Check::Tan, "tan"),
    (Check::Asin, "asin"),
    (Check::Acos, "acos"),
];

/// Ints are the numbers from `-LIMIT` to below it.
const LIMIT: f64 = 9223372036854775808.0;

impl Check {
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(c, _)| *c == self).map_or("", |(_, name)| name)
    }

    pub fn parse(name: &str) -> Option<Check> {
        NAMES.iter().find(|(_, n)| *n == name).map(|(c, _)| *c)
    }

    pub fn all() -> impl Iterator<Item = Check> {
        NAMES.iter().map(|(c, _)| *c)
    }

    /// Whether its operands are ints; otherwise they are floats.
    pub fn of_ints(self) -> bool {
        use Check::*;
        matches!(
            self,
            Add | Sub | Mul | FloorDiv | Mod | Pow | Shl | Shr | Position | Range | Steps | Value | Neg | Holds
        )
    }

    /// Whether the operation has a value.
    pub fn holds(self, a: u64, b: u64) -> bool {
        if self.of_ints() {
            self.holds_of_ints(a as i64, b as i64)
        } else {
            self.holds_of_floats(f64::from_bits(a), f64::from_bits(b))
        }
    }

    fn holds_of_ints(self, a: i64, b: i64) -> bool {
        match self {
            Check::Add => a.checked_add(b).is_some(),
            Check::Sub => a.checked_sub(b).is_some(),
            Check::Mul => a.checked_mul(b).is_some(),
            Check::FloorDiv => a.checked_div(b).is_some(),
            Check::Mod => b != 0,
            Check::Pow => int_pow(a, b).is_some(),
            Check::Shl => b >= 0 && (a == 0 || b < 64 && a << b >> b == a),
            Check::Shr => b >= 0,
            Check::Position => -b <= a && a < b,
            Check::Range => range_refused(a, b).is_none(),
            Check::Steps => a == 0,
            Check::Holds => a != 0,
            Check::Value => narrow(b).1 <= a && a <= b,
            _ => a != i64::MIN,
        }
    }

    fn holds_of_floats(self, a: f64, b: f64) -> bool {
        let nan = a.is_nan();
        match self {
            Check::IntTrueDiv | Check::FloatFloorDiv | Check::FloatMod => b != 0.0,
            Check::MathPow => {
                let whole = b == b.trunc();
                nan || b.is_nan() || !(a == 0.0 && b < 0.0) && (a >= 0.0 || a.is_infinite() || whole)
            }
            Check::ToInt => (-LIMIT..LIMIT).contains(&a.trunc()),
            Check::Round => (-LIMIT..LIMIT).contains(&a.round_ties_even()),
            Check::Sqrt => nan || a >= 0.0,
            Check::Log | Check::Log2 | Check::Log10 => nan || a > 0.0,
            Check::Log1p => nan || a > -1.0,
            Check::Sin | Check::Cos | Check::Tan => !a.is_infinite(),
            Check::Asin | Check::Acos => nan || a.abs() <= 1.0,
            _ => true,
        }
    }
}

/// Types of ints of less than 64 bits: name, least and largest value.
const NARROW: [(&str, i64, i64); 4] = [
    ("u8", 0, u8::MAX as i64),
    ("i8", i8::MIN as i64, i8::MAX as i64),
    ("i16", i16::MIN as i64, i16::MAX as i64),
    ("i32", i32::MIN as i64, i32::MAX as i64),
];

/// Name and least value of the type whose largest value this is.
pub fn narrow(most: i64) -> (&'static str, i64) {
    NARROW.iter().find(|(_, _, m)| *m == most).map_or(("i64", i64::MIN), |(name, least, _)| (name, *least))
}

/// Why no random int lies from `low` up to but not including `high`, where none does or where they are too many.
pub fn range_refused(low: i64, high: i64) -> Option<String> {
    if high <= low {
        return Some(format!("there is no int from {low} up to but not including {high}"));
    }
    let many = || format!("there are more ints from {low} up to {high} than 63 random bits tell apart");
    high.checked_sub(low).is_none().then(many)
}

/// `a ** b`; `None` where the exponent is negative or the power is no int.
pub fn int_pow(a: i64, b: i64) -> Option<i64> {
    match (a, b) {
        (_, ..0) => None,
        (0, _) => Some(i64::from(b == 0)),
        (1, _) => Some(1),
        (-1, _) => Some(if b % 2 == 0 { 1 } else { -1 }),
        _ => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        assert!(Check::all().all(|c| Check::parse(c.name()) == Some(c)));
    }

    #[test]
    fn shifts_lose_nothing() {
        let shl = |a: i64, b: i64| Check::Shl.holds(a as u64, b as u64);
        assert!(shl(1, 62) && !shl(1, 63) && shl(-1, 63) && !shl(-1, 64) && shl(0, 1 << 40) && !shl(3, -1));
    }
}
