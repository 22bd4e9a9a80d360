//! Operations on the numbers of host code: ints, floats and bools. One row each.
//!
//! A row says what an operation takes and gives, where it has a value, and what the value is. Host code, the tracer, the
//! interpreter of Core and graphs take it from here; where one of them has instructions of its own for speed, a law holds
//! them to the row (`tests/tests/law_scalars.rs`, which reads this table too).

use crate::map::MapOp;
use crate::scalar::{Kind, Program, Val, Writer};
use crate::scalar_eval::run_one;
use std::sync::OnceLock;
use tessera_abi::check::{self, Check};
use tessera_base::{BinOp, CmpOp, bug};

/// What the value of an operation is, in terms of elementwise functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// That function of the operands.
    Map(MapOp),
    /// The operand as a number of the result's type.
    Cast,
    /// That function of the operand, which gives a whole number, as an int.
    Whole(MapOp),
    /// The second operand where this holds of it and the first one, else the first.
    Pick(MapOp),
}

/// All that is known of an operation.
#[derive(Clone, Copy, Debug)]
pub struct NumberDef {
    pub name: &'static str,
    /// I64, F64 or Bool.
    pub takes: &'static [Kind],
    pub gives: Kind,
    /// Where it has a value, if not for all operands; of one operand, of it twice.
    pub check: Option<Check>,
    pub meaning: Meaning,
    /// How programs write it: operands stand at `{a}` and `{b}`.
    pub written: &'static str,
}

macro_rules! numbers {
    ($($variant:ident ($($takes:ident),*) $gives:ident, $check:expr, $meaning:ident $(($map:expr))?, $written:literal;)*) => {
        /// An operation on numbers of host code.
        #[allow(non_camel_case_types, reason = "variants are names in texts")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum NumberOp { $($variant),* }

        impl NumberOp {
            pub const ALL: &[NumberOp] = &[$(NumberOp::$variant),*];

            /// Its row.
            pub fn def(self) -> &'static NumberDef {
                &ROWS[self as usize]
            }
        }

        const ROWS: &[NumberDef] = &[$(NumberDef {
            name: stringify!($variant),
            takes: &[$(Kind::$takes),*],
            gives: Kind::$gives,
            check: $check,
            meaning: Meaning::$meaning $(($map))?,
            written: $written,
        }),*];
    };
}

numbers! {
    int_add(I64, I64) I64, Some(Check::Add), Map(MapOp::add), "{a} + {b}";
    int_sub(I64, I64) I64, Some(Check::Sub), Map(MapOp::sub), "{a} - {b}";
    int_mul(I64, I64) I64, Some(Check::Mul), Map(MapOp::mul), "{a} * {b}";
    int_floor_div(I64, I64) I64, Some(Check::FloorDiv), Map(MapOp::floor_div), "{a} // {b}";
    int_mod(I64, I64) I64, Some(Check::Mod), Map(MapOp::r#mod), "{a} % {b}";
    int_pow(I64, I64) I64, Some(Check::Pow), Map(MapOp::pow), "{a} ** {b}";
    int_and(I64, I64) I64, None, Map(MapOp::bit_and), "{a} & {b}";
    int_or(I64, I64) I64, None, Map(MapOp::bit_or), "{a} | {b}";
    int_xor(I64, I64) I64, None, Map(MapOp::bit_xor), "{a} ^ {b}";
    int_shl(I64, I64) I64, Some(Check::Shl), Map(MapOp::shl), "{a} << {b}";
    int_shr(I64, I64) I64, Some(Check::Shr), Map(MapOp::shr), "{a} >> {b}";
    int_neg(I64) I64, Some(Check::Neg), Map(MapOp::neg), "-{a}";
    int_invert(I64) I64, None, Map(MapOp::bit_not), "~{a}";
    int_abs(I64) I64, Some(Check::Neg), Map(MapOp::abs), "abs({a})";
    int_min(I64, I64) I64, None, Map(MapOp::minimum), "min({a}, {b})";
    int_max(I64, I64) I64, None, Map(MapOp::maximum), "max({a}, {b})";

    float_add(F64, F64) F64, None, Map(MapOp::add), "{a} + {b}";
    float_sub(F64, F64) F64, None, Map(MapOp::sub), "{a} - {b}";
    float_mul(F64, F64) F64, None, Map(MapOp::mul), "{a} * {b}";
    float_div(F64, F64) F64, None, Map(MapOp::div), "{a} / {b}";
    // `/` of two ints, which are floats by then.
    int_div(F64, F64) F64, Some(Check::IntTrueDiv), Map(MapOp::div), "{a} / {b}";
    float_floor_div(F64, F64) F64, Some(Check::FloatFloorDiv), Map(MapOp::floor_div), "{a} // {b}";
    float_mod(F64, F64) F64, Some(Check::FloatMod), Map(MapOp::r#mod), "{a} % {b}";
    float_pow(F64, F64) F64, None, Map(MapOp::pow), "{a} ** {b}";
    float_neg(F64) F64, None, Map(MapOp::neg), "-{a}";
    float_abs(F64) F64, None, Map(MapOp::abs), "abs({a})";
    float_min(F64, F64) F64, None, Pick(MapOp::lt), "min({a}, {b})";
    float_max(F64, F64) F64, None, Pick(MapOp::gt), "max({a}, {b})";

    int_eq(I64, I64) Bool, None, Map(MapOp::eq), "{a} == {b}";
    int_ne(I64, I64) Bool, None, Map(MapOp::ne), "{a} != {b}";
    int_lt(I64, I64) Bool, None, Map(MapOp::lt), "{a} < {b}";
    int_le(I64, I64) Bool, None, Map(MapOp::le), "{a} <= {b}";
    int_gt(I64, I64) Bool, None, Map(MapOp::gt), "{a} > {b}";
    int_ge(I64, I64) Bool, None, Map(MapOp::ge), "{a} >= {b}";
    float_eq(F64, F64) Bool, None, Map(MapOp::eq), "{a} == {b}";
    float_ne(F64, F64) Bool, None, Map(MapOp::ne), "{a} != {b}";
    float_lt(F64, F64) Bool, None, Map(MapOp::lt), "{a} < {b}";
    float_le(F64, F64) Bool, None, Map(MapOp::le), "{a} <= {b}";
    float_gt(F64, F64) Bool, None, Map(MapOp::gt), "{a} > {b}";
    float_ge(F64, F64) Bool, None, Map(MapOp::ge), "{a} >= {b}";
    bool_eq(Bool, Bool) Bool, None, Map(MapOp::eq), "{a} == {b}";
    bool_ne(Bool, Bool) Bool, None, Map(MapOp::ne), "{a} != {b}";
    bool_lt(Bool, Bool) Bool, None, Map(MapOp::lt), "{a} < {b}";
    bool_le(Bool, Bool) Bool, None, Map(MapOp::le), "{a} <= {b}";
    bool_gt(Bool, Bool) Bool, None, Map(MapOp::gt), "{a} > {b}";
    bool_ge(Bool, Bool) Bool, None, Map(MapOp::ge), "{a} >= {b}";
    bool_not(Bool) Bool, None, Map(MapOp::logical_not), "not {a}";

    int_to_float(I64) F64, None, Cast, "float({a})";
    bool_to_int(Bool) I64, None, Cast, "int({a})";
    float_to_int(F64) I64, Some(Check::ToInt), Cast, "int({a})";
    float_round(F64) I64, Some(Check::Round), Whole(MapOp::round), "round({a})";
    float_floor(F64) I64, Some(Check::ToInt), Whole(MapOp::floor), "math.floor({a})";
    float_ceil(F64) I64, Some(Check::ToInt), Whole(MapOp::ceil), "math.ceil({a})";
    float_trunc(F64) I64, Some(Check::ToInt), Whole(MapOp::trunc), "math.trunc({a})";

    math_sqrt(F64) F64, Some(Check::Sqrt), Map(MapOp::sqrt), "math.sqrt({a})";
    math_exp(F64) F64, None, Map(MapOp::exp), "math.exp({a})";
    math_expm1(F64) F64, None, Map(MapOp::expm1), "math.expm1({a})";
    math_log(F64) F64, Some(Check::Log), Map(MapOp::log), "math.log({a})";
    math_log1p(F64) F64, Some(Check::Log1p), Map(MapOp::log1p), "math.log1p({a})";
    math_log2(F64) F64, Some(Check::Log2), Map(MapOp::log2), "math.log2({a})";
    math_log10(F64) F64, Some(Check::Log10), Map(MapOp::log10), "math.log10({a})";
    math_sin(F64) F64, Some(Check::Sin), Map(MapOp::sin), "math.sin({a})";
    math_cos(F64) F64, Some(Check::Cos), Map(MapOp::cos), "math.cos({a})";
    math_tan(F64) F64, Some(Check::Tan), Map(MapOp::tan), "math.tan({a})";
    math_asin(F64) F64, Some(Check::Asin), Map(MapOp::asin), "math.asin({a})";
    math_acos(F64) F64, Some(Check::Acos), Map(MapOp::acos), "math.acos({a})";
    math_atan(F64) F64, None, Map(MapOp::atan), "math.atan({a})";
    math_sinh(F64) F64, None, Map(MapOp::sinh), "math.sinh({a})";
    math_cosh(F64) F64, None, Map(MapOp::cosh), "math.cosh({a})";
    math_tanh(F64) F64, None, Map(MapOp::tanh), "math.tanh({a})";
    math_erf(F64) F64, None, Map(MapOp::erf), "math.erf({a})";
    math_erfc(F64) F64, None, Map(MapOp::erfc), "math.erfc({a})";
    math_asinh(F64) F64, None, Map(MapOp::asinh), "math.asinh({a})";
    math_cbrt(F64) F64, None, Map(MapOp::cbrt), "math.cbrt({a})";
    math_atan2(F64, F64) F64, None, Map(MapOp::atan2), "math.atan2({a}, {b})";
    math_pow(F64, F64) F64, Some(Check::MathPow), Map(MapOp::pow), "math.pow({a}, {b})";
    math_hypot(F64, F64) F64, None, Map(MapOp::hypot), "math.hypot({a}, {b})";
    math_isnan(F64) Bool, None, Map(MapOp::isnan), "math.isnan({a})";
    math_isinf(F64) Bool, None, Map(MapOp::isinf), "math.isinf({a})";
    math_isfinite(F64) Bool, None, Map(MapOp::isfinite), "math.isfinite({a})";
}

/// [`NumberOp::apply`] by [`NumberOp::number`], as the runtime asks for it.
///
/// # Errors
/// The check that does not hold.
pub fn apply(number: i64, a: u64, b: u64) -> Result<u64, Check> {
    match NumberOp::of_number(number) {
        Some(op) => op.apply(a, b),
        None => bug!("there is no operation on numbers {number}"),
    }
}

impl NumberOp {
    /// By its position in the table, as compiled code names it.
    pub fn of_number(number: i64) -> Option<NumberOp> {
        usize::try_from(number).ok().and_then(|n| NumberOp::ALL.get(n).copied())
    }

    pub fn number(self) -> i64 {
        self as i64
    }

    /// What an operator is for operands of a kind, both of them; `int_operands` says that the floats were ints.
    pub fn arith(op: BinOp, of: Kind, int_operands: bool) -> Option<NumberOp> {
        use NumberOp::*;
        Some(match (op, of) {
            (BinOp::Add, Kind::I64) => int_add,
            (BinOp::Sub, Kind::I64) => int_sub,
            (BinOp::Mul, Kind::I64) => int_mul,
            (BinOp::FloorDiv, Kind::I64) => int_floor_div,
            (BinOp::Mod, Kind::I64) => int_mod,
            (BinOp::Pow, Kind::I64) => int_pow,
            (BinOp::BitAnd, Kind::I64) => int_and,
            (BinOp::BitOr, Kind::I64) => int_or,
            (BinOp::BitXor, Kind::I64) => int_xor,
            (BinOp::Shl, Kind::I64) => int_shl,
            (BinOp::Shr, Kind::I64) => int_shr,
            (BinOp::Add, Kind::F64) => float_add,
            (BinOp::Sub, Kind::F64) => float_sub,
            (BinOp::Mul, Kind::F64) => float_mul,
            (BinOp::Div, Kind::F64) => {
                if int_operands {
                    int_div
                } else {
                    float_div
                }
            }
            (BinOp::FloorDiv, Kind::F64) => float_floor_div,
            (BinOp::Mod, Kind::F64) => float_mod,
            (BinOp::Pow, Kind::F64) => float_pow,
            _ => return None,
        })
    }

    /// What a comparison is for operands of a kind, both of them.
    pub fn compare(op: CmpOp, of: Kind) -> NumberOp {
        use NumberOp::*;
        let of_kind = |int, float, bool| match of {
            Kind::F64 => float,
            Kind::Bool => bool,
            _ => int,
        };
        match op {
            CmpOp::Eq | CmpOp::Is | CmpOp::In => of_kind(int_eq, float_eq, bool_eq),
            CmpOp::Ne | CmpOp::IsNot | CmpOp::NotIn => of_kind(int_ne, float_ne, bool_ne),
            CmpOp::Lt => of_kind(int_lt, float_lt, bool_lt),
            CmpOp::Le => of_kind(int_le, float_le, bool_le),
            CmpOp::Gt => of_kind(int_gt, float_gt, bool_gt),
            CmpOp::Ge => of_kind(int_ge, float_ge, bool_ge),
        }
    }

    /// The meaning as a scalar program, for operands of which the check holds.
    pub fn program(self) -> &'static Program {
        static PROGRAMS: OnceLock<Vec<Program>> = OnceLock::new();
        &PROGRAMS.get_or_init(|| NumberOp::ALL.iter().map(|op| op.written_out()).collect())[self as usize]
    }

    fn written_out(self) -> Program {
        let def = self.def();
        let mut w = Writer::default();
        let args: Vec<Val> = def.takes.iter().enumerate().map(|(n, kind)| w.arg(n as u8, *kind)).collect();
        let result = match def.meaning {
            Meaning::Map(op) => (op.def().body)(&mut w, &args),
            Meaning::Cast => w.convert(args[0], def.gives),
            Meaning::Whole(op) => {
                let whole = (op.def().body)(&mut w, &args);
                w.convert(whole, def.gives)
            }
            Meaning::Pick(op) => {
                let better = (op.def().body)(&mut w, &[args[1], args[0]]);
                w.select(better, args[1], args[0])
            }
        };
        w.finish(result)
    }

    /// The value for two words, of which an operation of one operand takes the first: i64, the bits of an f64, 0 or 1.
    ///
    /// # Errors
    /// The check that does not hold; it has been asked about `a` twice where there is one operand.
    pub fn apply(self, a: u64, b: u64) -> Result<u64, Check> {
        let def = self.def();
        let b = if def.takes.len() == 1 { a } else { b };
        if self == NumberOp::int_pow {
            // Whether a power is an int is seen by computing it.
            return check::int_pow(a as i64, b as i64).map(|n| n as u64).ok_or(Check::Pow);
        }
        match def.check {
            Some(check) if !check.holds(a, b) => Err(check),
            _ => Ok(run_one(self.program(), [a, b])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTS: [i64; 16] =
        [0, 1, -1, 2, -2, 3, 7, -7, 62, 63, 64, 1 << 31, -(1 << 40), i64::MAX, i64::MIN, i64::MIN + 1];

    #[test]
    fn programs_are_what_rows_say() {
        for op in NumberOp::ALL {
            let (def, program) = (op.def(), op.program());
            assert_eq!(program.verify(), Ok(()), "{}", def.name);
            assert_eq!(program.result_kind(), def.gives, "{}", def.name);
            assert!(program.insts.iter().all(|(_, k)| matches!(k, Kind::F64 | Kind::I64 | Kind::Bool)), "{}", def.name);
            assert_eq!(NumberOp::of_number(op.number()), Some(*op));
            assert_eq!(def.written.contains("{b}"), def.takes.len() == 2, "{}", def.name);
            let ints = def.takes[0] == Kind::I64;
            assert!(def.check.is_none_or(|c| c.of_ints() == ints), "{}", def.name);
        }
    }

    /// What the check computes is what the row says.
    #[test]
    fn powers_are_powers() {
        for a in INTS {
            for b in INTS {
                if let Ok(power) = NumberOp::int_pow.apply(a as u64, b as u64) {
                    assert_eq!(run_one(NumberOp::int_pow.program(), [a as u64, b as u64]), power, "{a} ** {b}");
                }
            }
        }
    }

    #[test]
    fn ints_floor_and_are_checked() {
        use NumberOp::*;
        let int = |op: NumberOp, a: i64, b: i64| op.apply(a as u64, b as u64).map(|n| n as i64);
        assert_eq!(int(int_floor_div, -7, 2), Ok(-4));
        assert_eq!(int(int_mod, -7, 2), Ok(1));
        assert_eq!(int(int_mod, 7, -2), Ok(-1));
        assert_eq!(int(int_mul, i64::MAX, 2), Err(Check::Mul));
        assert_eq!(int(int_floor_div, i64::MIN, -1), Err(Check::FloorDiv));
        assert_eq!(int(int_mod, i64::MIN, -1), Ok(0));
        assert_eq!(int(int_floor_div, 1, 0), Err(Check::FloorDiv));
        assert_eq!(int(int_shl, -1, 63), Ok(i64::MIN));
        assert_eq!(int(int_shl, -1, 64), Err(Check::Shl));
        assert_eq!(int(int_shl, 1, 62), Ok(1 << 62));
        assert_eq!(int(int_shl, 0, 100), Ok(0));
        assert_eq!(int(int_shr, -8, 100), Ok(-1));
        assert_eq!(int(int_abs, i64::MIN, 0), Err(Check::Neg));
        let nan = f64::NAN.to_bits();
        let float = |op: NumberOp, a: f64, b: f64| op.apply(a.to_bits(), b.to_bits()).map(f64::from_bits);
        assert_eq!(float_min.apply(1f64.to_bits(), nan), Ok(1f64.to_bits()));
        assert!(float(float_min, f64::NAN, 1.0).is_ok_and(f64::is_nan));
        assert_eq!(float(float_max, 0.0, -0.0).map(f64::to_bits), Ok(0));
        assert_eq!(float_round.apply(2.5f64.to_bits(), 0), Ok(2));
        assert_eq!(float_floor.apply(nan, 0), Err(Check::ToInt));
    }
}
