//! Convolution and pooling against loops over all windows.

use super::{Array, In, array, close, ints, noise, run};
use tessera_ops::surface::Arg;

/// Positions of an index space, row-major.
fn positions(shape: &[u64]) -> Vec<Vec<i64>> {
    let n: u64 = shape.iter().product();
    (0..n)
        .map(|mut flat| {
            let mut at = vec![0; shape.len()];
            for (i, &d) in shape.iter().enumerate().rev() {
                at[i] = (flat % d) as i64;
                flat /= d;
            }
            at
        })
        .collect()
}

/// The element at a position, zero outside.
fn at(x: &Array, index: &[i64]) -> f64 {
    let mut flat = 0;
    for (&i, &d) in index.iter().zip(&x.shape) {
        if i < 0 || i >= d as i64 {
            return 0.0;
        }
        flat = flat * d as usize + i as usize;
    }
    x.values[flat]
}

#[derive(Clone, Debug)]
struct Case {
    x: Vec<u64>,
    w: Vec<u64>,
    stride: Vec<i64>,
    /// (before, after) of each dim.
    padding: Vec<i64>,
    dilation: Vec<i64>,
    groups: u64,
}

fn case(x: &[u64], w: &[u64], stride: &[i64], padding: &[i64], dilation: &[i64], groups: u64) -> Case {
    let (stride, padding, dilation) = (stride.to_vec(), padding.to_vec(), dilation.to_vec());
    Case { x: x.to_vec(), w: w.to_vec(), stride, padding, dilation, groups }
}

fn convolved(c: &Case, x: &Array, w: &Array, bias: &Array) -> Array {
    let n = c.w.len() - 2;
    let mut shape = vec![c.x[0], c.w[0]];
    for d in 0..n {
        let all = c.x[2 + d] as i64 + c.padding[2 * d] + c.padding[2 * d + 1];
        shape.push(((all - c.dilation[d] * (c.w[2 + d] as i64 - 1) - 1) / c.stride[d] + 1) as u64);
    }
    let values = positions(&shape).into_iter().map(|y| {
        let group = y[1] / (c.w[0] / c.groups) as i64;
        let terms = positions(&c.w[1..]).into_iter().map(|k| {
            let mut from = vec![y[0], group * c.w[1] as i64 + k[0]];
            from.extend((0..n).map(|d| y[2 + d] * c.stride[d] + k[1 + d] * c.dilation[d] - c.padding[2 * d]));
            at(x, &from) * at(w, &[&[y[1]], &k[..]].concat())
        });
        terms.sum::<f64>() + at(bias, &[y[1]])
    });
    let values = values.collect();
    Array { shape, values }
}

#[test]
fn convolutions() {
    for c in [
        case(&[1, 1, 4, 4], &[1, 1, 2, 2], &[1, 1], &[0, 0, 0, 0], &[1, 1], 1),
        case(&[2, 3, 5, 7], &[4, 3, 3, 3], &[1, 2], &[1, 1, 1, 1], &[1, 1], 1),
        case(&[1, 4, 6, 6], &[6, 2, 3, 2], &[2, 1], &[0, 2, 1, 0], &[2, 3], 2),
        case(&[2, 3, 4, 4], &[3, 1, 3, 3], &[1, 1], &[1, 1, 1, 1], &[1, 1], 3),
        case(&[1, 2, 3, 3], &[5, 2, 1, 1], &[1, 1], &[0, 0, 0, 0], &[1, 1], 1),
        case(&[1, 2, 5, 5], &[3, 2, 1, 1], &[2, 2], &[0, 0, 0, 0], &[1, 1], 1),
        case(&[0, 2, 3, 3], &[5, 2, 2, 2], &[1, 1], &[0, 0, 0, 0], &[1, 1], 1),
        case(&[3, 2, 9], &[4, 2, 3], &[2], &[2, 0], &[2], 1),
        case(&[1, 1, 1], &[1, 1, 3], &[1], &[1, 1], &[1], 1),
        case(&[1, 2, 3, 4, 5], &[2, 2, 2, 3, 2], &[1, 2, 1], &[0, 1, 1, 1, 0, 0], &[1, 1, 2], 1),
    ] {
        let (x, w, bias) = (noise(&c.x), noise(&c.w), noise(&[c.w[0]]));
        let name = ["conv1d", "conv2d", "conv3d"][c.w.len() - 3];
        let args = vec![
            In::F(x.clone()),
            In::F(w.clone()),
            In::F(bias.clone()),
            ints(&c.stride),
            ints(&c.padding),
            ints(&c.dilation),
            In::S(Arg::Int(c.groups as i64)),
        ];
        close(&run(name, args), &convolved(&c, &x, &w, &bias));
    }
    // Without a batch, and as wide as before.
    let (x, w) = (noise(&[2, 4, 5]), noise(&[3, 2, 4, 3]));
    let got = run(
        "conv2d",
        vec![In::F(x.clone()), In::F(w.clone()), In::S(Arg::None), ints(&[1]), In::S(Arg::Str("same".into()))],
    );
    let c = case(&[1, 2, 4, 5], &[3, 2, 4, 3], &[1, 1], &[1, 2, 1, 1], &[1, 1], 1);
    let want = convolved(&c, &Array { shape: c.x.clone(), ..x }, &w, &array(&[3], &[0.0; 3]));
    close(&got, &Array { shape: vec![3, 4, 5], ..want });
}

/// Every input element times the kernel, added where it belongs.
fn spread(c: &Case, extra: i64, x: &Array, w: &Array, bias: &Array) -> Array {
    let outputs = c.w[1] * c.groups;
    let size = |d: usize| {
        (c.x[2 + d] as i64 - 1) * c.stride[d] - c.padding[2 * d] - c.padding[2 * d + 1]
            + c.dilation[d] * (c.w[2 + d] as i64 - 1)
            + 1
            + extra
    };
    let shape = vec![c.x[0], outputs, size(0) as u64, size(1) as u64];
    let mut out = Array { values: positions(&shape).iter().map(|y| at(bias, &[y[1]])).collect(), shape };
    for p in positions(&c.x) {
        for k in positions(&c.w[1..]) {
            let group = p[1] / (c.x[1] / c.groups) as i64;
            let to = [
                p[0],
                group * c.w[1] as i64 + k[0],
                p[2] * c.stride[0] + k[1] * c.dilation[0] - c.padding[0],
                p[3] * c.stride[1] + k[2] * c.dilation[1] - c.padding[2],
            ];
            if to.iter().zip(&out.shape).all(|(&t, &d)| (0..d as i64).contains(&t)) {
                let flat = to.iter().zip(&out.shape).fold(0, |n, (&t, &d)| n * d as usize + t as usize);
                out.values[flat] += at(x, &p) * at(w, &[&[p[1]], &k[..]].concat());
            }
        }
    }
    out
}

#[test]
fn transposed_convolutions() {
    for (c, extra) in [
        (case(&[1, 1, 2, 2], &[1, 1, 2, 2], &[1, 1], &[0, 0, 0, 0], &[1, 1], 1), 0),
        (case(&[1, 2, 3, 3], &[2, 3, 3, 3], &[2, 2], &[1, 1, 1, 1], &[1, 1], 1), 1),
        (case(&[2, 2, 3, 2], &[2, 1, 4, 4], &[2, 2], &[1, 1, 0, 2], &[1, 1], 1), 0),
        (case(&[1, 4, 2, 3], &[4, 2, 3, 2], &[3, 2], &[0, 0, 0, 0], &[1, 1], 2), 1),
        (case(&[1, 1, 3, 3], &[1, 1, 2, 3], &[2, 3], &[0, 0, 1, 0], &[3, 2], 1), 0),
        (case(&[1, 1, 2, 2], &[1, 1, 1, 2], &[3, 4], &[0, 0, 0, 0], &[1, 2], 1), 0),
        (case(&[1, 2, 1, 1], &[2, 2, 3, 3], &[1, 1], &[0, 0, 0, 0], &[2, 1], 1), 0),
        (case(&[1, 1, 2, 2], &[1, 1, 2, 2], &[2, 2], &[0, 0, 0, 0], &[2, 2], 1), 1),
    ] {
        let (x, w, bias) = (noise(&c.x), noise(&c.w), noise(&[c.w[1] * c.groups]));
        let args = vec![
            In::F(x.clone()),
            In::F(w.clone()),
            In::F(bias.clone()),
            ints(&c.stride),
            ints(&c.padding),
            ints(&[extra]),
            In::S(Arg::Int(c.groups as i64)),
            ints(&c.dilation),
        ];
        close(&run("conv_transpose2d", args), &spread(&c, extra, &x, &w, &bias));
    }
}

#[test]
fn pools() {
    let x = noise(&[2, 5, 7]);
    for (kernel, stride, padding) in [
        (vec![2, 2], vec![2, 2], vec![0, 0, 0, 0]),
        (vec![3, 2], vec![1, 2], vec![1, 1, 0, 1]),
        (vec![5, 7], vec![1, 1], vec![0, 0, 0, 0]),
        (vec![3, 3], vec![2, 1], vec![1, 1, 2, 2]),
    ] {
        let sizes: [i64; 2] = std::array::from_fn(|d| x.shape[1 + d] as i64 + padding[2 * d] + padding[2 * d + 1]);
        let shape: Vec<u64> =
            [2].into_iter().chain((0..2).map(|d| ((sizes[d] - kernel[d]) / stride[d] + 1) as u64)).collect();
        let (mut largest, mut means) = (vec![], vec![]);
        for y in positions(&shape) {
            let mut window = vec![];
            let mut sum = 0.0;
            for k in positions(&[kernel[0] as u64, kernel[1] as u64]) {
                let from: Vec<i64> = (0..2).map(|d| y[1 + d] * stride[d] + k[d] - padding[2 * d]).collect();
                sum += at(&x, &[y[0], from[0], from[1]]);
                if (0..5).contains(&from[0]) && (0..7).contains(&from[1]) {
                    window.push(at(&x, &[y[0], from[0], from[1]]));
                }
            }
            largest.push(window.into_iter().fold(f64::NEG_INFINITY, f64::max));
            means.push(sum / (kernel[0] * kernel[1]) as f64);
        }
        let args = || vec![In::F(x.clone()), ints(&kernel), ints(&stride), ints(&padding)];
        close(&run("max_pool", args()), &Array { shape: shape.clone(), values: largest });
        close(&run("avg_pool", args()), &Array { shape, values: means });
    }
    let x = In::I(array(&[4], &[-5., -7., -6., -9.]));
    close(&run("max_pool", vec![x, ints(&[2]), ints(&[1]), ints(&[1])]), &array(&[5], &[-5., -5., -6., -6., -9.]));
}
