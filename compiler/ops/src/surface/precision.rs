//! `numerics.precision`: which element types operators take and give under a mode.

use super::row::Row;
use super::{Arg, Build, SymArg, expand};
use std::fmt;
use tessera_base::DType;

/// A mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Precision {
    /// The program's own dtypes.
    #[default]
    Own,
    /// f32 for whatever is narrower.
    Safe,
    /// Products of 16-bit factors, summed up in f32 and rounded once.
    Standard { f16: bool },
    /// Products of fp8 factors with scales of blocks; results as in `Standard`.
    Aggressive,
}

impl Precision {
    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Precision> {
        use Precision::*;
        let all = [Own, Safe, Standard { f16: false }, Standard { f16: true }, Aggressive];
        all.into_iter().find(|p| p.to_string() == text)
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Precision::Own => "own",
            Precision::Safe => "safe",
            Precision::Standard { f16: false } => "standard",
            Precision::Standard { f16: true } => "standard f16",
            Precision::Aggressive => "aggressive",
        })
    }
}

/// What a mode does to the operands of an operator.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Mixed {
    Nothing,
    /// The parameters are the factors of a product.
    Product(&'static [usize]),
    /// The same of matrices, whose expansion takes fp8 factors by itself under `Aggressive`.
    Matrices(&'static [usize]),
    /// The parameters are summed up: many numbers become few.
    Sum(&'static [usize]),
}

impl Precision {
    /// The positions of operands that change, and the dtype that they take. Operands that are
    /// wider than f32, ask for tf32, or are no floats keep the call as it is written.
    fn target(self, mixed: Mixed, args: &[SymArg]) -> Option<(&'static [usize], DType)> {
        let (at, to) = match (mixed, self) {
            (_, Precision::Own) | (Mixed::Nothing, _) => return None,
            (Mixed::Sum(at), _) => (at, DType::F32),
            (Mixed::Product(at) | Mixed::Matrices(at), Precision::Safe) => (at, DType::F32),
            (Mixed::Product(at) | Mixed::Matrices(at), Precision::Standard { f16: true }) => (at, DType::F16),
            (Mixed::Product(at) | Mixed::Matrices(at), _) => (at, DType::Bf16),
        };
        let tensors = at.iter().filter_map(|&i| args.get(i)).flat_map(|a| match a {
            SymArg::Tensor(t) => std::slice::from_ref(t),
            SymArg::Tensors(ts) => ts,
            _ => &[],
        });
        let fits = |d: DType| match d {
            DType::F32 | DType::Bf16 | DType::F16 | DType::F8E4M3 | DType::F8E5M2 => true,
            DType::Tf32 => self == Precision::Safe,
            _ => false,
        };
        let sum = matches!(mixed, Mixed::Sum(_));
        let dtypes: Vec<Option<DType>> =
            tensors.map(|t| t.dtype).filter(|d| !sum || d.is_none_or(DType::is_float)).collect();
        (!dtypes.is_empty() && dtypes.iter().all(|d| d.is_some_and(fits))).then_some((at, to))
    }
}

/// The arguments of a call as the typing rule of its operator sees them under a mode.
pub fn typed(row: &Row, precision: Precision, args: &mut [SymArg]) {
    let Some((at, to)) = precision.target(row.mixed, args) else { return };
    for &i in at {
        match args.get_mut(i) {
            Some(SymArg::Tensor(t)) if t.dtype.is_some_and(DType::is_float) => t.dtype = Some(to),
            Some(SymArg::Tensors(ts)) => ts.iter_mut().for_each(|t| t.dtype = Some(to)),
            _ => {}
        }
    }
}

/// The conversions that a mode puts before the expansion of a call.
pub fn converted(row: &Row, precision: Precision, b: &mut dyn Build, args: &mut [Arg], sym: &mut [SymArg]) {
    let Some((at, to)) = precision.target(row.mixed, sym) else { return };
    let by_itself = matches!(row.mixed, Mixed::Matrices(_)) && precision == Precision::Aggressive;
    for &i in at.iter().filter(|_| !by_itself) {
        match args.get_mut(i) {
            Some(Arg::Tensor(x)) if b.dtype(*x).is_float() => *x = expand::cast(b, *x, to),
            Some(Arg::Tensors(xs)) => xs.iter_mut().for_each(|x| *x = expand::cast(b, *x, to)),
            _ => {}
        }
    }
    typed(row, precision, sym);
}
