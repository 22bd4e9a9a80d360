//! `spectral_conv`: the layer of Fourier neural operators (Li et al. 2021).

use super::expand;
use super::row::{Call, Lowered, Row, req};
use super::rule::{self, Inferred};
use super::spectral::{Direction, from_half, to_half, transform};
use super::*;

pub const SPECTRAL_CONV: Row =
    Row::new("spectral_conv", &[req("x", ParamKind::Tensor), req("weights", ParamKind::Tensor)], infer, lower)
        .known_as(&["fno", "fourier_layer"])
        .doc(
            "A convolution by its lowest frequencies, with a matrix over the channels for each of them.\n\n\
     One dim: `x` is [B, I, N] and the c64 weights [I, O, M]. Two dims: `x` is [B, I, H, W] and the weights \
     [2, I, O, M1, M2], its first half for the rows of the spectrum from 0 on, its second for the last M1 rows, which \
     are the negative frequencies. The same as `irfft` of the products of `rfft` with the weights, with zeros for all \
     other frequencies; only those that are kept are computed.\n\n\
     ```tessera\nop.spectral_conv(x, weights)    # Tensor[B, I, N, f32] -> Tensor[B, O, N, f32]\n```",
        );

fn infer(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let (x, w) = (rule::tensor(args, 0)?, rule::tensor(args, 1)?);
    let blame = |e: OpError| e.arg(0, x.to_string()).arg(1, w.to_string());
    let dims = match (x.rank(), w.rank()) {
        (3, 3) => 1,
        (4, 5) => 2,
        (a, b) => {
            let text = format!("`spectral_conv` takes ranks 3 and 3, or 4 and 5, and these are {a} and {b}");
            return Err(blame(OpError::new(Code::E0207, text)));
        }
    };
    if !matches!(x.dtype, None | Some(DType::F32 | DType::Bf16 | DType::F16)) {
        let text = "the operand of `spectral_conv` is f32 or narrower";
        return Err(blame(OpError::new(Code::E0205, text)).help("convert it: `.to(f32)`"));
    }
    if !matches!(w.dtype, None | Some(DType::C64)) {
        let text = "the weight of `spectral_conv` is complex";
        return Err(blame(OpError::new(Code::E0205, text)).help("make it of its parts: `op.complex(re, im)`"));
    }
    let own = &w.shape[w.rank() - 2 - dims..];
    let what = || "the channels of the operand and of the weight differ".to_string();
    rule::require(cx, &x.shape[1], &own[0], Code::E0202, what, blame)?;
    if dims == 2 {
        let two = Size::constant(2);
        let what = || "the weight holds two blocks of rows".to_string();
        rule::require(cx, &w.shape[0], &two, Code::E0202, what, blame)?;
    }
    let mut shape = x.shape.clone();
    shape[1] = own[1].clone();
    rule::one(shape, Some(DType::F32).filter(|_| x.dtype.is_some()))
}

/// No more frequencies than there are.
fn modes(from: &[u64], weight: &[u64]) -> Result<(), OpError> {
    for (d, (n, m)) in from[2..].iter().zip(&weight[weight.len() + 2 - from.len()..]).enumerate() {
        let most = if d + 3 == from.len() { n / 2 + 1 } else { n / 2 };
        if *m > most {
            return Err(OpError::new(Code::E0711, format!("{m} modes of {n} points, which have {most}")).arg(1, "here"));
        }
    }
    Ok(())
}

fn lower(call: &mut Call) -> Lowered {
    let (out, _) = call.result();
    let (x, w) = (call.id(0)?, call.id(1)?);
    let b = &mut *call.b;
    let (from, weight) = (b.shape(x), b.shape(w));
    let kept = *weight.last().unwrap_or(&0);
    if out.contains(&0) || from.contains(&0) || weight.contains(&0) {
        return Ok(vec![expand::full(b, &out, DType::F32, Scalar::F(0.0))]);
    }
    modes(&from, &weight)?;
    let x = expand::cast(b, x, DType::F32);
    let (n, last) = (from[from.len() - 1], from.len() - 1);
    let spectrum = to_half(b, x, last, kept, 1.0);
    let points: f64 = from[2..].iter().map(|&n| n as f64).product();
    let product = if from.len() == 3 {
        channels(b, spectrum, w)
    } else {
        let (rows, modes) = (from[2], weight[3]);
        let spectrum = transform(b, spectrum, 2, Direction::Forward, 1.0);
        let mut blocks = vec![];
        for (i, start) in [0, rows - modes].into_iter().enumerate() {
            let part = expand::slice(b, spectrum, 2, start, modes);
            let own = expand::slice(b, w, 0, i as u64, 1);
            let own = expand::reshape(b, own, &weight[1..]);
            blocks.push(channels(b, part, own));
        }
        if rows > 2 * modes {
            let shape = [from[0], out[1], rows - 2 * modes, kept];
            blocks.insert(1, expand::full(b, &shape, DType::C64, Scalar::F(0.0)));
        }
        let whole = expand::concat(b, &blocks, 2);
        transform(b, whole, 2, Direction::Inverse, 1.0)
    };
    Ok(vec![from_half(b, product, last, n, 1.0 / points)])
}

/// `[B, I, modes…]` by `[I, O, modes…]`: a product of matrices for each mode.
fn channels(b: &mut dyn Build, x: Id, w: Id) -> Id {
    let (from, weight) = (b.shape(x), b.shape(w));
    let rank = from.len();
    let front: Vec<usize> = (2..rank).chain([0, 1]).collect();
    let modes: u64 = from[2..].iter().product();
    let x = expand::transpose(b, x, &front);
    let x = expand::reshape(b, x, &[modes, from[0], from[1]]);
    let w = expand::transpose(b, w, &front);
    let w = expand::reshape(b, w, &[modes, weight[0], weight[1]]);
    let product = expand::dot(b, x, w, DType::C64, DType::C64);
    let product = expand::reshape(b, product, &[&from[2..], &[from[0], weight[1]]].concat());
    let back: Vec<usize> = [rank - 2, rank - 1].into_iter().chain(0..rank - 2).collect();
    expand::transpose(b, product, &back)
}
