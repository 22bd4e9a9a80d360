//! The table of elementwise functions. One word here, one file in `map/`.
//!
//! A function is defined by the program that [`MapDef::body`] writes: the interpreter
//! ([`crate::scalar_eval`]) and the code generator run the same one. Operands of narrow float
//! types are widened to F32 first and the result is rounded once ([`crate::convert`]).

pub mod gradient;

use crate::scalar::{Kind, Program, Val, Writer};
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use tessera_base::DType;

/// Which element types a function takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// Every float type.
    Float,
    /// Floats and integers, not bool.
    Number,
    /// Integers.
    Int,
    /// Integers and bool.
    IntOrBool,
    Bool,
    /// All but complex.
    Any,
}

impl Takes {
    /// Whether an operand of this kind is accepted (of `where`: the second and third).
    pub fn accepts(self, kind: Kind) -> bool {
        let (float, bool) = (kind.is_float(), kind == Kind::Bool);
        match self {
            Takes::Float => float,
            Takes::Number => !bool,
            Takes::Int => !float && !bool,
            Takes::IntOrBool => !float,
            Takes::Bool => bool,
            Takes::Any => true,
        }
    }
}

/// The element type of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    /// That of the operands (of the last operand for `where`).
    Same,
    Bool,
}

/// Everything the compiler knows about one elementwise function.
pub struct MapDef {
    pub name: &'static str,
    /// First sentence ends with a full stop.
    pub doc: &'static str,
    pub arity: usize,
    pub takes: Takes,
    pub gives: Gives,
    /// Writes the meaning for operands of the kinds given (all of one kind; for `where` the
    /// first is Bool). Narrow floats compute in F32 and round once afterwards.
    pub body: fn(&mut Writer, &[Val]) -> Val,
    /// Cotangents of the operands; `None` where the derivative is zero wherever there is one, or
    /// the result is no float.
    pub gradient: Option<gradient::Gradient>,
    /// Largest error in units in the last place against the exact value, f32 and f64; a unit
    /// in the last place of a subnormal result is that of the smallest normal number's binade.
    pub ulps: f64,
    /// Relative cost per element; an addition is 1.
    pub cost: u32,
}

/// The kind in which an element type computes.
pub fn kind_of(dtype: DType) -> Option<Kind> {
    Some(match dtype {
        DType::F64 => Kind::F64,
        DType::F32 | DType::Tf32 | DType::Bf16 | DType::F16 | DType::F8E4M3 | DType::F8E5M2 => Kind::F32,
        DType::I64 => Kind::I64,
        DType::I32 => Kind::I32,
        DType::I16 => Kind::I16,
        DType::I8 => Kind::I8,
        DType::U8 => Kind::U8,
        DType::Bool => Kind::Bool,
        DType::C64 => return None,
    })
}

macro_rules! table {
    ($($name:ident $file:ident;)*) => {
        $(mod $file;)*

        /// An elementwise function. The variant is the word that programs and Graph IR use.
        ///
        /// [`MapOp::def`] is its row in the table, [`MapOp::program`] its meaning for operands
        /// of given kinds. All operands have one kind, except the condition of `where`.
        #[allow(non_camel_case_types, reason = "the variant is the operator's word in every place")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum MapOp { $($name),* }

        impl MapOp {
            pub const ALL: &[MapOp] = &[$(MapOp::$name),*];

            pub fn def(self) -> &'static MapDef {
                match self { $(MapOp::$name => &$file::DEF),* }
            }

            pub fn name(self) -> &'static str {
                self.def().name
            }

            pub fn parse(name: &str) -> Option<MapOp> {
                MapOp::ALL.iter().copied().find(|op| op.name() == name)
            }
        }
    };
}

impl MapOp {
    /// The kinds of the operands for elements that compute in `kind`.
    pub fn operand_kinds(self, kind: Kind) -> Vec<Kind> {
        let mut kinds = vec![kind; self.def().arity];
        if self == MapOp::r#where {
            kinds[0] = Kind::Bool;
        }
        kinds
    }

    /// Whether the result is one of the operands but for its sign, so that nothing is rounded.
    pub fn keeps(self) -> bool {
        matches!(self, MapOp::r#where | MapOp::maximum | MapOp::minimum | MapOp::abs | MapOp::neg | MapOp::copysign)
    }

    /// Whether F32 operands are widened and the result is rounded once from F64.
    pub fn is_once_from_f64(self) -> bool {
        use MapOp::*;
        matches!(
            self,
            asinh
                | acosh
                | atanh
                | cbrt
                | erfc
                | erfinv
                | ndtr
                | log_ndtr
                | ndtri
                | gamma
                | lgamma
                | digamma
                | polygamma
                | betaln
                | betainc
                | betainc_da
                | betainc_dx
                | gammainc
                | gammaincc
                | gammainc_da
                | gammainc_dx
                | i0
                | i0e
                | i1
                | i1e
                | sinc
                | logit
                | logaddexp
        )
    }

    /// Largest error in units of the last place for operands of a float kind: [`MapDef::ulps`], or one rounding and what
    /// the error in F64 makes of it.
    pub fn ulps(self, kind: Kind) -> f64 {
        if kind == Kind::F32 && self.is_once_from_f64() { 0.51 } else { self.def().ulps }
    }

    /// The kind of the result for elements that compute in `kind`.
    pub fn result_kind(self, kind: Kind) -> Kind {
        match self.def().gives {
            Gives::Same => kind,
            Gives::Bool => Kind::Bool,
        }
    }

    /// The meaning for operands of `kinds` (of which the last decides), written once and kept.
    /// The table must accept the kind: [`Takes::accepts`].
    pub fn program(self, kinds: &[Kind]) -> &'static Program {
        static KNOWN: OnceLock<Mutex<BTreeMap<(MapOp, Kind), &'static Program>>> = OnceLock::new();
        let kind = kinds.last().copied().unwrap_or(Kind::F32);
        debug_assert!(self.def().takes.accepts(kind), "{} does not take {kind:?}", self.name());
        let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        known.entry((self, kind)).or_insert_with(|| {
            let mut w = Writer::default();
            let args: Vec<Val> =
                self.operand_kinds(kind).into_iter().enumerate().map(|(n, kind)| w.arg(n as u8, kind)).collect();
            let result = (self.def().body)(&mut w, &args);
            Box::leak(Box::new(w.finish(result)))
        })
    }
}

table! {
    add add;
    sub sub;
    mul mul;
    div div;
    floor_div floor_div;
    r#mod remainder;
    pow pow;
    neg neg;
    abs abs;
    sign sign;
    reciprocal reciprocal;
    square square;
    sqrt sqrt;
    rsqrt rsqrt;
    exp exp;
    exp2 exp2;
    expm1 expm1;
    log log;
    log2 log2;
    log10 log10;
    log1p log1p;
    sin sin;
    cos cos;
    tan tan;
    asin asin;
    acos acos;
    atan atan;
    atan2 atan2;
    sinh sinh;
    cosh cosh;
    tanh tanh;
    sigmoid sigmoid;
    erf erf;
    relu relu;
    gelu gelu;
    gelu_tanh gelu_tanh;
    silu silu;
    softplus softplus;
    floor floor;
    ceil ceil;
    round round;
    trunc trunc;
    maximum maximum;
    minimum minimum;
    eq eq;
    ne ne;
    lt lt;
    le le;
    gt gt;
    ge ge;
    logical_and logical_and;
    logical_or logical_or;
    logical_xor logical_xor;
    logical_not logical_not;
    bit_and bit_and;
    bit_or bit_or;
    bit_xor bit_xor;
    bit_not bit_not;
    shl shl;
    shr shr;
    r#where select;
    isnan isnan;
    isinf isinf;
    isfinite isfinite;
    hypot hypot;
    fma fma;
    copysign copysign;
    asinh asinh;
    acosh acosh;
    atanh atanh;
    cbrt cbrt;
    erfc erfc;
    erfinv erfinv;
    ndtr ndtr;
    log_ndtr log_ndtr;
    ndtri ndtri;
    gamma gamma;
    lgamma lgamma;
    digamma digamma;
    polygamma polygamma;
    betaln betaln;
    betainc betainc;
    betainc_da betainc_da;
    betainc_dx betainc_dx;
    gammainc gammainc;
    gammaincc gammaincc;
    gammainc_da gammainc_da;
    gammainc_dx gammainc_dx;
    i0 i0;
    i0e i0e;
    i1 i1;
    i1e i1e;
    sinc sinc;
    logit logit;
    logaddexp logaddexp;
    xlogy xlogy;
    xlog1py xlog1py;
    softsign softsign;
    log_sigmoid log_sigmoid;
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod special;
