//! Fourier transforms: `fft ifft rfft irfft`, in two dims, and shifts of the spectrum. NumPy's
//! names, argument order and normalisation.

mod transform;

pub use transform::{Direction, from_half, to_half, transform};

use super::expand;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::fft::smooth;

const X: Param = req("x", ParamKind::Tensor);
const NORM: Param = Param { name: "norm", kind: ParamKind::Str, default: Default::Str("backward"), keyword_only: true };
const PARAMS: &[Param] =
    &[X, opt("n", ParamKind::Int, Default::None), opt("axis", ParamKind::Axis, Default::Int(-1)), NORM];
const PARAMS2: &[Param] =
    &[X, opt("s", ParamKind::Ints, Default::None), opt("axes", ParamKind::Ints, Default::None), NORM];

/// What a row transforms from and to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Complex(Direction),
    /// Real to half a spectrum.
    Real,
    /// Half a spectrum to real.
    RealInverse,
}

impl Kind {
    fn inverse(self) -> bool {
        matches!(self, Kind::Complex(Direction::Inverse) | Kind::RealInverse)
    }
}

macro_rules! rows {
    ($($row:ident $name:literal $kind:expr, $two:literal, $known:expr, $doc:expr;)*) => {
        $(pub const $row: Row = Row::new(
            $name,
            if $two { PARAMS2 } else { PARAMS },
            |_, a, _| infer($name, $kind, $two, a),
            |c| lower($name, $kind, $two, c),
        )
        .known_as($known)
        .doc($doc);)*
    };
}

rows! {
    FFT "fft" Kind::Complex(Direction::Forward), false, &["dft"],
        "Discrete Fourier transform along an axis.\n\n`X[k] = Σ x[j]·exp(-2πi·j·k/n)`. The axis is cut or padded with zeros \
         to `n` elements first. Real operands become c64; f64 is refused. Any length up to 2^28: time grows as n·log n; \
         where a prime above 31 divides `n` the transform becomes a convolution, of up to 2^24 points. `norm` puts the factor 1/n on the inverse (\"backward\"), on \
         the forward transform (\"forward\"), or its root on both (\"ortho\").\n\n```tessera\nop.fft(x, axis=0)\n```";
    IFFT "ifft" Kind::Complex(Direction::Inverse), false, &[],
        "Inverse of `fft`: `x[j] = 1/n·Σ X[k]·exp(2πi·j·k/n)`.\n\n```tessera\nop.ifft(op.fft(x))\n```";
    RFFT "rfft" Kind::Real, false, &[],
        "Discrete Fourier transform of real numbers: the first `n//2 + 1` values, of which the others are conjugates.\n\n\
         Half the work of `fft` for even `n`.\n\n```tessera\nop.rfft(x)    # Tensor[N, f32] -> Tensor[N//2 + 1, c64]\n```";
    IRFFT "irfft" Kind::RealInverse, false, &[],
        "Inverse of `rfft`: real numbers from half a spectrum.\n\n`n` is the length of the result, by default `2*(m - 1)` \
         for `m` values. Imaginary parts of the first value, and for even `n` of the last, are ignored.\n\n\
         ```tessera\nop.irfft(op.rfft(x), n=7)\n```";
    FFT2 "fft2" Kind::Complex(Direction::Forward), true, &["fftn"],
        "Discrete Fourier transform over two axes, by default the last two.\n\n`s` cuts or pads both to these sizes.\n\n\
         ```tessera\nop.fft2(image)\n```";
    IFFT2 "ifft2" Kind::Complex(Direction::Inverse), true, &["ifftn"],
        "Inverse of `fft2`.\n\n```tessera\nop.ifft2(op.fft2(image))\n```";
    RFFT2 "rfft2" Kind::Real, true, &["rfftn"],
        "Discrete Fourier transform of real numbers over two axes: `rfft` over the second, `fft` over the first.\n\n\
         ```tessera\nop.rfft2(image)    # Tensor[H, W, f32] -> Tensor[H, W//2 + 1, c64]\n```";
    IRFFT2 "irfft2" Kind::RealInverse, true, &["irfftn"],
        "Inverse of `rfft2`. `s` gives the sizes of the result; it is needed where the last one is odd.\n\n\
         ```tessera\nop.irfft2(op.rfft2(image), s=(28, 28))\n```";
}

/// The axes that are transformed, in the order of the arguments.
fn axes(two: bool, args: &[SymArg], x: &TensorType) -> Result<Vec<usize>, OpError> {
    if !two {
        return Ok(vec![rule::axis(args, 2, x)?]);
    }
    let given = if rule::absent(args, 2) { vec![-2, -1] } else { rule::ints_const(args, 2, "an axis")? };
    let axes = given.iter().map(|&a| rule::normal_axis(a, x.rank(), 2, x)).collect::<Result<Vec<_>, _>>()?;
    match axes[..] {
        [a, b] if a != b => Ok(axes),
        [_, _] => Err(OpError::new(Code::E0207, format!("axis {} is named twice", axes[0])).arg(2, "here")),
        _ => Err(OpError::new(Code::E0207, format!("two axes are needed, not {}", axes.len())).arg(2, "here")),
    }
}

/// Points of a transform, at most.
const LONGEST: i64 = 1 << 28;
/// The same where a prime above 31 divides them: tables as long as the transform are computed before the program runs.
const LONGEST_UNEVEN: i64 = 1 << 24;

/// Lengths of the transforms along the axes, on the real side for the real kinds.
fn lengths(kind: Kind, two: bool, args: &[SymArg], x: &TensorType) -> Result<Vec<(usize, Size)>, OpError> {
    let axes = axes(two, args, x)?;
    let given = match (rule::absent(args, 1), two) {
        (true, _) => None,
        (false, false) => Some(vec![rule::int(args, 1)?.clone()]),
        (false, true) => Some(rule::ints(args, 1)?),
    };
    if let Some(sizes) = given.as_ref().filter(|s| s.len() != axes.len()) {
        let text = format!("{} sizes for {} axes", sizes.len(), axes.len());
        return Err(OpError::new(Code::E0207, text).arg(1, rule::tuple(sizes)));
    }
    let last = axes.len() - 1;
    let mut out = vec![];
    for (i, &a) in axes.iter().enumerate() {
        let own = match kind {
            Kind::RealInverse if i == last => x.shape[a].sub(&Size::constant(1)).scale(2),
            _ => x.shape[a].clone(),
        };
        let n = given.as_ref().map_or(own, |g| g[i].clone());
        let refused = |text: String| {
            let error = OpError::new(Code::E0711, text).arg(0, x.to_string());
            if given.is_some() { error.arg(1, n.to_string()) } else { error }
        };
        match n.as_const() {
            Some(n) if n < 1 => return Err(refused(format!("a transform of {n} points"))),
            Some(n) if n > LONGEST => {
                return Err(refused(format!("a transform of {n} points: there are at most {LONGEST}")));
            }
            Some(n) if n > LONGEST_UNEVEN && !smooth(n as u64) => {
                let text = format!(
                    "a transform of {n} points, which a prime above 31 divides: there are at most {LONGEST_UNEVEN}"
                );
                return Err(refused(text).help("pad to the next power of two: `n=`"));
            }
            _ => {}
        }
        out.push((a, n));
    }
    Ok(out)
}

fn infer(name: &str, kind: Kind, two: bool, args: &[SymArg]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    takes(name, kind, x)?;
    rule::choice(args, 3, &["backward", "ortho", "forward"])?;
    let mut shape = x.shape.clone();
    let lengths = lengths(kind, two, args, x)?;
    for (i, (a, n)) in lengths.iter().enumerate() {
        shape[*a] = match kind {
            Kind::Real if i + 1 == lengths.len() => half(n),
            _ => n.clone(),
        };
    }
    let dtype = if kind == Kind::RealInverse { DType::F32 } else { DType::C64 };
    rule::one(shape, x.dtype.map(|_| dtype))
}

/// `n//2 + 1`.
fn half(n: &Size) -> Size {
    let one = Size::constant(1);
    n.floor_div(&Size::constant(2)).map_or(one.clone(), |h| h.add(&one))
}

fn takes(name: &str, kind: Kind, x: &TensorType) -> Result<(), OpError> {
    match x.dtype {
        Some(DType::F64) => Err(OpError::new(Code::E0205, format!("`{name}` computes in c64, which is less than f64"))
            .arg(0, x.to_string())
            .help("round the operand where that is meant: `.to(f32)`")),
        Some(DType::C64) if kind == Kind::Real => {
            Err(OpError::new(Code::E0205, format!("`{name}` transforms real numbers, and these are complex"))
                .arg(0, x.to_string())
                .help(format!("the transform of complex numbers is `op.{}`", &name[1..])))
        }
        _ => Ok(()),
    }
}

/// The factor of the results for `points` points in all.
fn factor(kind: Kind, norm: &str, points: f64) -> f64 {
    match (norm, kind.inverse()) {
        ("ortho", _) => 1.0 / points.sqrt(),
        ("forward", false) | ("backward", true) => 1.0 / points,
        _ => 1.0,
    }
}

fn lower(name: &str, kind: Kind, two: bool, call: &mut Call) -> Lowered {
    let (t, x) = (call.ty(0)?, call.id(0)?);
    takes(name, kind, &t)?;
    let mut plan = vec![];
    for (a, n) in lengths(kind, two, &call.sym, &t)? {
        plan.push((a, rule::constant(&n, 1, "a length")? as u64));
    }
    let shape = call.result().0;
    let dtype = if kind == Kind::RealInverse { DType::F32 } else { DType::C64 };
    if shape.contains(&0) {
        return Ok(vec![expand::full(call.b, &shape, dtype, Scalar::F(0.0))]);
    }
    let points = plan.iter().map(|(_, n)| *n as f64).product();
    let scale = factor(kind, rule::text(&call.sym, 3)?, points);
    let b = &mut *call.b;
    // The last axis is the one with half a spectrum: first on the way there, last on the way back.
    let Some(last) = plan.pop() else { return Ok(vec![x]) };
    let step = |b: &mut dyn Build, x: Id, (axis, n): (usize, u64), direction: Direction, scale: f64| {
        let x = expand::fit(b, x, axis, n);
        transform(b, x, axis, direction, scale)
    };
    Ok(vec![match kind {
        Kind::Complex(direction) => {
            let mut x = expand::cast(b, x, DType::C64);
            plan.insert(0, last);
            for (i, &along) in plan.iter().enumerate() {
                x = step(b, x, along, direction, if i + 1 == plan.len() { scale } else { 1.0 });
            }
            x
        }
        Kind::Real => {
            let x = expand::cast(b, x, DType::F32);
            let x = expand::fit(b, x, last.0, last.1);
            let mut x = to_half(b, x, last.0, last.1 / 2 + 1, if plan.is_empty() { scale } else { 1.0 });
            for along in plan {
                x = step(b, x, along, Direction::Forward, scale);
            }
            x
        }
        Kind::RealInverse => {
            let mut x = expand::cast(b, x, DType::C64);
            // Values beyond those that count are left out before the other axis is transformed.
            let (axis, n) = last;
            let given = b.shape(x)[axis].min(n / 2 + 1);
            x = expand::slice(b, x, axis, 0, given);
            for along in plan {
                x = step(b, x, along, Direction::Inverse, 1.0);
            }
            from_half(b, x, axis, n, scale)
        }
    }])
}

const SHIFT: &[Param] = &[X, opt("axes", ParamKind::Axes, Default::None)];

pub const FFTSHIFT: Row = Row::new("fftshift", SHIFT, |_, a, _| infer_shift(a), |c| lower_shift(c, false)).doc(
    "Moves the zero frequency to the middle: each axis is rolled by half its size.\n\n```tessera\nop.fftshift(op.fft2(x))\n```",
);

pub const IFFTSHIFT: Row = Row::new("ifftshift", SHIFT, |_, a, _| infer_shift(a), |c| lower_shift(c, true))
    .doc("Undoes `fftshift`, also for odd sizes.\n\n```tessera\nop.ifftshift(op.fftshift(x))\n```");

fn infer_shift(args: &[SymArg]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    rule::axes(args, 1, x)?;
    rule::one(x.shape.clone(), x.dtype)
}

fn lower_shift(call: &mut Call, back: bool) -> Lowered {
    let (t, mut x) = (call.ty(0)?, call.id(0)?);
    let b = &mut *call.b;
    for axis in rule::axes(&call.sym, 1, &t)? {
        let n = b.shape(x)[axis];
        let cut = if back { n / 2 } else { n.div_ceil(2) };
        if cut == 0 || cut == n {
            continue;
        }
        let (tail, head) = (expand::slice(b, x, axis, cut, n - cut), expand::slice(b, x, axis, 0, cut));
        x = expand::concat(b, &[tail, head], axis);
    }
    Ok(vec![x])
}

const FREQ: &[Param] = &[req("n", ParamKind::Int), opt("d", ParamKind::Float, Default::Float(1.0))];

pub const FFTFREQ: Row = Row::new("fftfreq", FREQ, |_, a, _| infer_freq(a, false), |c| lower_freq(c, false)).doc(
    "The frequencies of the values of `fft` for samples `d` apart: 0, 1, …, -1 over `n*d`.\n\n```tessera\nop.fftfreq(8, 0.1)\n```",
);

pub const RFFTFREQ: Row = Row::new("rfftfreq", FREQ, |_, a, _| infer_freq(a, true), |c| lower_freq(c, true))
    .doc("The frequencies of the values of `rfft` for samples `d` apart.\n\n```tessera\nop.rfftfreq(8, 0.1)\n```");

fn infer_freq(args: &[SymArg], real: bool) -> Inferred {
    let n = rule::int(args, 0)?;
    rule::float(args, 1)?;
    if n.as_const().is_some_and(|n| n < 1) {
        return Err(OpError::new(Code::E0711, format!("a transform of {n} points")).arg(0, n.to_string()));
    }
    rule::one(vec![if real { half(n) } else { n.clone() }], Some(DType::F32))
}

fn lower_freq(call: &mut Call, real: bool) -> Lowered {
    let n = rule::int_const(&call.sym, 0, "a length")?;
    let (shape, _) = call.result();
    let step = call.operand(1, &shape, DType::F32)?;
    let b = &mut *call.b;
    let mut k = expand::iota(b, &shape, 0);
    if !real {
        let middle = expand::full(b, &shape, DType::I64, Scalar::I((n - 1) / 2));
        let above = expand::map(b, crate::map::MapOp::gt, &[k, middle]);
        let count = expand::full(b, &shape, DType::I64, Scalar::I(n));
        let low = expand::map(b, crate::map::MapOp::sub, &[k, count]);
        k = expand::select(b, above, low, k);
    }
    let k = expand::cast(b, k, DType::F32);
    let span = expand::binary_const(b, crate::map::MapOp::mul, step, n as f64);
    Ok(vec![expand::map(b, crate::map::MapOp::div, &[k, span])])
}
