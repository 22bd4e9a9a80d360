//! Gamma numbers by Marsaglia and Tsang's method (ACM TOMS 26, 2000), and what is made of them: beta, Dirichlet, chi-square
//! and Student's t.
//!
//! The method rejects less than one proposal in twenty. Four are made for every element, whatever becomes of them, so
//! that a number depends on its key and position alone; where all are rejected, less than once in 10⁵, the last one counts.
//! By that the distribution is off by less than one part in 10⁶. Derivatives by the shape are those of the inverse of the
//! distribution function at a fixed probability (Figurnov et al., Implicit reparameterization gradients, 2018).

use super::parameters::{self, known};
use super::{KEY_PARAM, tagged, unit, words};
use crate::map::MapOp;
use crate::surface::row::{Call, Lowered, Row, req};
use crate::surface::rule::{self, Inferred};
use crate::surface::*;

/// Proposals for an element; a multiple of two, since normal numbers come in pairs.
const TRIALS: u64 = 4;
/// The stream that gives the keys of several draws.
const TAG: i64 = 0x6761_6d6d;

/// What is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    Number,
    /// Its logarithm, which does not underflow where the shape is small.
    Log,
}

/// `ln(1 − u)`.
fn log_rest(b: &mut dyn Build, u: Id) -> Id {
    let minus = expand::unary(b, MapOp::neg, u);
    expand::unary(b, MapOp::log1p, minus)
}

/// Gamma numbers of the shapes `a`, an f32 or f64 tensor of the result's sizes; NaN where `a` is negative. `from_1` says that
/// none is below 1.
fn gamma(b: &mut dyn Build, key: Id, a: Id, gives: Gives, from_1: bool) -> Id {
    let (shape, dtype) = (b.shape(a), b.dtype(a));
    // The last one is for shapes below 1: there for all, so that a draw does not depend on what is known of its shape.
    let numbers = 2 * TRIALS + 1;
    let all = unit(b, key, &[&[numbers], &shape[..]].concat(), dtype);
    let number = |b: &mut dyn Build, i: u64| {
        let x = expand::slice(b, all, 0, i, 1);
        expand::reshape(b, x, &shape)
    };
    let (zero, one) = (expand::like(b, a, 0.0), expand::like(b, a, 1.0));
    // Below 1: a number of the shape a + 1, times u^(1/a).
    let small = (!from_1).then(|| expand::map(b, MapOp::lt, &[a, one]));
    let larger = match small {
        Some(small) => {
            let next = expand::map(b, MapOp::add, &[a, one]);
            expand::select(b, small, next, a)
        }
        None => a,
    };
    let d = expand::binary_const(b, MapOp::sub, larger, 1.0 / 3.0);
    let nine = expand::binary_const(b, MapOp::mul, d, 9.0);
    let c = expand::unary(b, MapOp::rsqrt, nine);
    let mut chosen: Option<(Id, Id)> = None;
    // From the last proposal to the first, which counts if it is accepted.
    for pair in (0..TRIALS / 2).rev() {
        let u = number(b, 2 * pair);
        let log = log_rest(b, u);
        let square = expand::binary_const(b, MapOp::mul, log, -2.0);
        let radius = expand::unary(b, MapOp::sqrt, square);
        let v = number(b, 2 * pair + 1);
        let angle = expand::binary_const(b, MapOp::mul, v, std::f64::consts::TAU);
        for (i, turn) in [MapOp::cos, MapOp::sin].into_iter().enumerate() {
            let part = expand::unary(b, turn, angle);
            let z = expand::map(b, MapOp::mul, &[radius, part]);
            let root = expand::map(b, MapOp::fma, &[c, z, one]);
            let inside = expand::map(b, MapOp::gt, &[root, zero]);
            let root = expand::select(b, inside, root, one);
            let square = expand::map(b, MapOp::mul, &[root, root]);
            let cube = expand::map(b, MapOp::mul, &[square, root]);
            // ln u < z²/2 + d (1 − v + ln v)
            let log = expand::unary(b, MapOp::log, root);
            let log = expand::binary_const(b, MapOp::mul, log, 3.0);
            let less = expand::map(b, MapOp::sub, &[one, cube]);
            let sum = expand::map(b, MapOp::add, &[less, log]);
            let part = expand::map(b, MapOp::mul, &[d, sum]);
            let square = expand::map(b, MapOp::mul, &[z, z]);
            let half = expand::like(b, z, 0.5);
            let bound = expand::map(b, MapOp::fma, &[square, half, part]);
            let w = number(b, TRIALS + 2 * pair + i as u64);
            let height = log_rest(b, w);
            let below = expand::map(b, MapOp::lt, &[height, bound]);
            let accepted = expand::map(b, MapOp::logical_and, &[inside, below]);
            chosen = Some(match chosen {
                None => (cube, log),
                Some((last, last_log)) => {
                    (expand::select(b, accepted, cube, last), expand::select(b, accepted, log, last_log))
                }
            });
        }
    }
    let (cube, log) = chosen.unwrap_or((one, zero));
    let power = small.map(|small| {
        let u = number(b, 2 * TRIALS);
        let log = log_rest(b, u);
        let power = expand::map(b, MapOp::div, &[log, a]);
        expand::select(b, small, power, zero)
    });
    let y = match gives {
        Gives::Number => {
            let y = expand::map(b, MapOp::mul, &[d, cube]);
            match power {
                Some(power) => {
                    let factor = expand::unary(b, MapOp::exp, power);
                    expand::map(b, MapOp::mul, &[y, factor])
                }
                None => y,
            }
        }
        Gives::Log => {
            let d = expand::unary(b, MapOp::log, d);
            let y = expand::map(b, MapOp::add, &[d, log]);
            match power {
                Some(power) => expand::map(b, MapOp::add, &[y, power]),
                None => y,
            }
        }
    };
    let inside = expand::map(b, MapOp::ge, &[a, zero]);
    let nan = expand::like(b, a, f64::NAN);
    let y = expand::select(b, inside, y, nan);
    b.derive(Derivative {
        inputs: vec![a],
        output: y,
        saved: vec![],
        pull: Arc::new(move |b, p| vec![Some(pull(b, p, gives))]),
    });
    y
}

/// `dx/da = −(∂P/∂a) / (∂P/∂x)`, which of a logarithm is divided by x.
fn pull(b: &mut dyn Build, p: &Pulled, gives: Gives) -> Id {
    let a = p.inputs[0];
    let x = match gives {
        Gives::Number => p.output,
        Gives::Log => expand::unary(b, MapOp::exp, p.output),
    };
    let by_a = expand::map(b, MapOp::gammainc_da, &[a, x]);
    let by_x = expand::map(b, MapOp::gammainc_dx, &[a, x]);
    let by_x = if gives == Gives::Log { expand::map(b, MapOp::mul, &[by_x, x]) } else { by_x };
    let slope = expand::map(b, MapOp::div, &[by_a, by_x]);
    let slope = expand::unary(b, MapOp::neg, slope);
    // Where x is 0, it is of every shape nearby; its logarithm is ln u / a but for what is small, which numbers with few digits
    // are as well.
    let zero = expand::like(b, x, 0.0);
    let none = match gives {
        Gives::Number => expand::map(b, MapOp::eq, &[x, zero]),
        Gives::Log => {
            let least = expand::like(b, x, f64::from(f32::MIN_POSITIVE));
            expand::map(b, MapOp::lt, &[x, least])
        }
    };
    let at_zero = match gives {
        Gives::Number => zero,
        Gives::Log => {
            let quotient = expand::map(b, MapOp::div, &[p.output, a]);
            expand::unary(b, MapOp::neg, quotient)
        }
    };
    let slope = expand::select(b, none, at_zero, slope);
    expand::map(b, MapOp::mul, &[p.cotangent, slope])
}

/// `n` keys of one.
fn keys<const N: usize>(b: &mut dyn Build, key: Id) -> [Id; N] {
    let key = tagged(b, key, TAG);
    let all = words(b, key, &[N as u64, 2]);
    std::array::from_fn(|i| {
        let one = expand::slice(b, all, 0, i as u64, 1);
        expand::reshape(b, one, &[2])
    })
}

const ONE: &[usize] = &[1];
const TWO: &[usize] = &[1, 2];

fn infer(cx: &mut InferCx, args: &[SymArg], at: &[usize]) -> Inferred {
    let last = at.len() + 1;
    rule::one(parameters::shape(cx, args, at, last)?, parameters::dtype(args, at, last + 1)?)
}

/// Key, shape and parameters of the result's sizes.
fn start(call: &mut Call, at: &[usize]) -> Result<(Id, Vec<Id>), OpError> {
    let (key, shape) = (call.id(0)?, call.result().0);
    let dtype = parameters::dtype(&call.sym, at, at.len() + 2)?.unwrap_or(DType::F32);
    let values = parameters::values(call, at, dtype.compute())?;
    Ok((key, values.into_iter().map(|v| expand::broadcast_to(call.b, v, &shape)).collect()))
}

fn lower_gamma(call: &mut Call, gives: Gives) -> Lowered {
    let (key, a) = start(call, ONE)?;
    let from_1 = known(call, 1).is_some_and(|a| a >= 1.0);
    Ok(vec![gamma(call.b, key, a[0], gives, from_1)])
}

const GAMMA_PARAMS: &[Param] = &[KEY_PARAM, req("a", ParamKind::Operand), parameters::SHAPE, parameters::DTYPE];

pub const GAMMA: Row = Row::new(
    "random.gamma",
    GAMMA_PARAMS,
    |cx, args, _| infer(cx, args, ONE),
    |call| lower_gamma(call, Gives::Number),
)
.known_as(&["random.standard_gamma", "random.gammavariate"])
.doc(concat!(
    "Gamma numbers of the shape `a`, a number or a tensor that broadcasts to `shape` (by default its own), with scale 1.\n\n\
     By Marsaglia and Tsang's method (2000) with four proposals, of which the first accepted one counts: off by less than \
     one part in 10⁶. Differentiable by `a` (implicit reparameterization). NaN where `a` is negative.\n\n",
    "```tessera\nrandom.gamma(key, 2.5, (1000,)) / rate\n```",
));

pub const LOGGAMMA: Row = Row::new(
    "random.loggamma",
    GAMMA_PARAMS,
    |cx, args, _| infer(cx, args, ONE),
    |call| lower_gamma(call, Gives::Log),
)
.doc(
    "The logarithms of the numbers of `random.gamma` for the same key, which do not underflow where `a` is small.\n\n\
     ```tessera\nrandom.loggamma(key, 0.001, (1000,))\n```",
);

pub const CHISQUARE: Row = Row::new(
    "random.chisquare",
    &[KEY_PARAM, req("df", ParamKind::Operand), parameters::SHAPE, parameters::DTYPE],
    |cx, args, _| infer(cx, args, ONE),
    |call| {
        let (key, df) = start(call, ONE)?;
        let from_1 = known(call, 1).is_some_and(|df| df >= 2.0);
        let b = &mut *call.b;
        let a = expand::binary_const(b, MapOp::mul, df[0], 0.5);
        let y = gamma(b, key, a, Gives::Number, from_1);
        Ok(vec![expand::binary_const(b, MapOp::mul, y, 2.0)])
    },
)
.known_as(&["random.chi2"])
.doc(
    "Chi-square numbers of `df` degrees of freedom, a number or a tensor that broadcasts to `shape` (by default its own): \
     twice gamma numbers of half the shape.\n\n```tessera\nrandom.chisquare(key, 3.0, (1000,))\n```",
);

pub const T: Row = Row::new(
    "random.t",
    &[KEY_PARAM, req("df", ParamKind::Operand), parameters::SHAPE, parameters::DTYPE],
    |cx, args, _| infer(cx, args, ONE),
    |call| {
        let (key, df) = start(call, ONE)?;
        let from_1 = known(call, 1).is_some_and(|df| df >= 2.0);
        let b = &mut *call.b;
        let [first, second] = keys(b, key);
        let z = super::normal(b, first, df[0]);
        let half = expand::binary_const(b, MapOp::mul, df[0], 0.5);
        let log = gamma(b, second, half, Gives::Log, from_1);
        // √(df / χ²), whose logarithm is half of ln(df/2) − ln g.
        let top = expand::unary(b, MapOp::log, half);
        let difference = expand::map(b, MapOp::sub, &[top, log]);
        let exponent = expand::binary_const(b, MapOp::mul, difference, 0.5);
        let factor = expand::unary(b, MapOp::exp, exponent);
        Ok(vec![expand::map(b, MapOp::mul, &[z, factor])])
    },
)
.known_as(&["random.standard_t", "random.student_t"])
.doc(
    "Numbers of Student's t distribution of `df` degrees of freedom, a number or a tensor that broadcasts to `shape` (by \
     default its own).\n\n```tessera\nrandom.t(key, 4.0, (1000,))\n```",
);

pub const BETA: Row = Row::new(
    "random.beta",
    &[
        KEY_PARAM,
        req("a", ParamKind::Operand),
        req("b", ParamKind::Operand),
        parameters::SHAPE,
        parameters::DTYPE,
    ],
    |cx, args, _| infer(cx, args, TWO),
    |call| {
        let (key, ab) = start(call, TWO)?;
        let from_1 = [1, 2].map(|i| known(call, i).is_some_and(|a| a >= 1.0));
        let b = &mut *call.b;
        let [first, second] = keys(b, key);
        let x = gamma(b, first, ab[0], Gives::Log, from_1[0]);
        let y = gamma(b, second, ab[1], Gives::Log, from_1[1]);
        let difference = expand::map(b, MapOp::sub, &[x, y]);
        Ok(vec![expand::unary(b, MapOp::sigmoid, difference)])
    },
)
.known_as(&["random.betavariate"])
.doc(
    "Beta numbers of the shapes `a` and `b`, numbers or tensors that broadcast to `shape` (by default their own): the share of \
     one gamma number in the sum of two, formed from logarithms. Differentiable by `a` and `b`.\n\n\
     ```tessera\nrandom.beta(key, 2.0, 5.0, (1000,))\n```",
);

pub const DIRICHLET: Row = Row::new(
    "random.dirichlet",
    &[KEY_PARAM, req("alpha", ParamKind::Tensor), parameters::SHAPE, parameters::DTYPE],
    infer_dirichlet,
    lower_dirichlet,
)
.doc(
    "Points of the Dirichlet distribution of the shapes `alpha`, along its last axis: positive numbers with the sum 1.\n\n\
     `shape` holds the sizes before that axis, to which those of `alpha` broadcast (by default they are its own). Gamma \
     numbers, over their sum, formed from logarithms. Differentiable by `alpha`.\n\n\
     ```tessera\nrandom.dirichlet(key, op.array([1.0, 2.0, 3.0]), (1000,))    # (1000, 3)\n```",
);

fn infer_dirichlet(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    super::key_arg(cx, args, 0)?;
    let alpha = rule::tensor(args, 1)?;
    rule::at_least_rank(alpha, 1, 1, "random.dirichlet")?;
    let shape = match rule::absent(args, 2) {
        true => alpha.shape.clone(),
        false => {
            let mut shape = rule::shape(args, 2)?;
            shape.extend(alpha.shape.last().cloned());
            parameters::fits(cx, alpha, 1, &shape, 2)?;
            shape
        }
    };
    rule::one(shape, parameters::dtype(args, ONE, 3)?)
}

fn lower_dirichlet(call: &mut Call) -> Lowered {
    let (key, alpha) = start(call, ONE)?;
    let b = &mut *call.b;
    let logs = gamma(b, key, alpha[0], Gives::Log, false);
    let axis = b.shape(logs).len() - 1;
    Ok(vec![softmax::softmax(b, logs, axis)])
}
