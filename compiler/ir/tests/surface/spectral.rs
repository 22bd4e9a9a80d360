//! Fourier transforms against sums in f64.

use crate::values::Eager;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2};
use tessera_base::{Code, DType};
use tessera_ops::fft::unit_wide;
use tessera_ops::prim::Prim;
use tessera_ops::surface::*;

type Complex = [f64; 2];

/// Some numbers without a pattern in -1 to 1, exact in f32.
fn noise(n: usize, seed: u64) -> Vec<f64> {
    let step =
        |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed.wrapping_mul(0xd134_2543_de82_ef95)).rotate_left(31);
    (0..n as u64).map(|i| (step(step(i + 1)) >> 44) as f64 / f64::from(1 << 19) - 1.0).collect()
}

fn real_tensor(b: &mut Eager, shape: &[u64], values: &[f64]) -> Id {
    let bytes: Vec<u8> = values.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect();
    b.push(Prim::Literal(bytes.into()), &[], shape.to_vec(), DType::F32)
}

fn tensor(b: &mut Eager, shape: &[u64], values: &[Complex]) -> Id {
    let bytes: Vec<u8> = values.iter().flatten().flat_map(|v| (*v as f32).to_le_bytes()).collect();
    b.push(Prim::Literal(bytes.into()), &[], shape.to_vec(), DType::C64)
}

fn floats(b: &Eager, x: Id) -> Vec<f64> {
    b.bytes(x).chunks_exact(4).map(|c| f64::from(f32::from_le_bytes([c[0], c[1], c[2], c[3]]))).collect()
}

fn complex(b: &Eager, x: Id) -> Vec<Complex> {
    assert_eq!(b.dtype(x), DType::C64);
    floats(b, x).chunks_exact(2).map(|c| [c[0], c[1]]).collect()
}

fn call(b: &mut Eager, name: &str, args: &[Arg]) -> Id {
    let def = find(name).unwrap_or_else(|| panic!("no row {name}"));
    (def.expand)(b, args, &Hints::default()).unwrap_or_else(|e| panic!("{name}: {e:?}"))[0]
}

fn dft(x: &[Complex], inverse: bool) -> Vec<Complex> {
    let n = x.len() as u64;
    (0..n)
        .map(|k| {
            x.iter().enumerate().fold([0.0; 2], |sum, (j, v)| {
                let [c, s] = unit_wide((u128::from(k) * j as u128 % u128::from(n)) as u64, n);
                let s = if inverse { -s } else { s };
                [sum[0] + v[0] * c - v[1] * s, sum[1] + v[0] * s + v[1] * c]
            })
        })
        .collect()
}

/// Root of the mean square difference relative to that of the values.
fn error(got: &[Complex], want: &[Complex]) -> f64 {
    assert_eq!(got.len(), want.len());
    let square = |z: Complex| z[0] * z[0] + z[1] * z[1];
    let off: f64 = got.iter().zip(want).map(|(a, b)| square([a[0] - b[0], a[1] - b[1]])).sum();
    let size: f64 = want.iter().map(|z| square(*z)).sum();
    (off / size.max(1e-300)).sqrt()
}

/// `0.6·eps·(1 + log2 n)`: the mean error of such algorithms grows with the number of stages.
/// By convolution three transforms of up to 4n points follow one another.
fn bound(n: usize) -> f64 {
    let eps = f64::from(f32::EPSILON);
    let one = |n: usize| 0.6 * eps * (1.0 + (n as f64).log2());
    if tessera_ops::fft::smooth(n as u64) { one(n) } else { 2.0 * one(4 * n) }
}

fn check(n: usize) {
    let mut b = Eager::default();
    let values: Vec<Complex> = noise(2 * n, n as u64).chunks_exact(2).map(|c| [c[0], c[1]]).collect();
    let x = tensor(&mut b, &[n as u64], &values);
    let want = dft(&values, false);
    let y = call(&mut b, "fft", &[Arg::Tensor(x)]);
    let got = error(&complex(&b, y), &want);
    assert!(got <= bound(n), "fft of {n}: {got:e}");
    let back = call(&mut b, "ifft", &[Arg::Tensor(y)]);
    let got = error(&complex(&b, back), &values);
    assert!(got <= 2.0 * bound(n), "ifft of fft of {n}: {got:e}");
    let real: Vec<Complex> = values.iter().map(|z| [z[0], 0.0]).collect();
    let x = real_tensor(&mut b, &[n as u64], &values.iter().map(|z| z[0]).collect::<Vec<_>>());
    let half = call(&mut b, "rfft", &[Arg::Tensor(x)]);
    let got = error(&complex(&b, half), &dft(&real, false)[..n / 2 + 1]);
    assert!(got <= bound(n) * 1.5, "rfft of {n}: {got:e}");
    let back = call(&mut b, "irfft", &[Arg::Tensor(half), Arg::Int(n as i64)]);
    let got: Vec<Complex> = floats(&b, back).into_iter().map(|v| [v, 0.0]).collect();
    let got = error(&got, &real);
    assert!(got <= 3.0 * bound(n), "irfft of rfft of {n}: {got:e}");
}

#[test]
fn every_short_length() {
    (1..=64).for_each(check);
}

#[test]
fn longer_lengths() {
    for n in [81, 97, 100, 127, 128, 125, 210, 243, 256, 343, 360, 509, 512, 899, 1000, 1021, 1024, 1155, 2048] {
        check(n);
    }
    // Beyond one kernel: even and odd lengths, with large primes and without.
    for n in [2187, 4096, 4098, 5000, 6561, 4099] {
        check(n);
    }
}

#[test]
fn known_values() {
    let mut b = Eager::default();
    let x = real_tensor(&mut b, &[4], &[1.0, 2.0, 3.0, 4.0]);
    let y = call(&mut b, "fft", &[Arg::Tensor(x)]);
    assert_eq!(complex(&b, y), [[10.0, 0.0], [-2.0, 2.0], [-2.0, 0.0], [-2.0, -2.0]]);
    let y = call(&mut b, "rfft", &[Arg::Tensor(x)]);
    assert_eq!(complex(&b, y), [[10.0, 0.0], [-2.0, 2.0], [-2.0, 0.0]]);
    let padded = call(&mut b, "fft", &[Arg::Tensor(x), Arg::Int(6)]);
    assert_eq!(b.shape(padded), [6]);
    let cut = call(&mut b, "fft", &[Arg::Tensor(x), Arg::Int(2)]);
    assert_eq!(complex(&b, cut), [[3.0, 0.0], [-1.0, 0.0]]);
    for (norm, factor) in [("backward", 1.0), ("ortho", 0.5), ("forward", 0.25)] {
        let args = [Arg::Tensor(x), Arg::None, Arg::Int(-1), Arg::Str(norm.into())];
        let y = call(&mut b, "fft", &args);
        assert_eq!(complex(&b, y)[0], [10.0 * factor, 0.0], "{norm}");
        let back = call(&mut b, "ifft", &[Arg::Tensor(y), Arg::None, Arg::Int(-1), Arg::Str(norm.into())]);
        let z: Vec<f64> = complex(&b, back).iter().map(|z| z[0]).collect();
        assert_eq!(z, [1.0, 2.0, 3.0, 4.0], "{norm}");
    }
    // NumPy ignores what a spectrum of real numbers cannot have.
    let z = tensor(&mut b, &[3], &[[10.0, 7.0], [-2.0, 2.0], [-2.0, 7.0]]);
    let y = call(&mut b, "irfft", &[Arg::Tensor(z)]);
    assert_eq!(floats(&b, y), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn along_each_axis() {
    let shape = [2u64, 6, 3];
    let mut b = Eager::default();
    let values: Vec<Complex> = noise(72, 5).chunks_exact(2).map(|c| [c[0], c[1]]).collect();
    let x = tensor(&mut b, &shape, &values);
    for axis in 0..3 {
        let n = shape[axis] as usize;
        let inner: usize = shape[axis + 1..].iter().product::<u64>() as usize;
        let mut want = values.clone();
        for row in 0..values.len() / n {
            let at = |j: usize| (row / inner * n + j) * inner + row % inner;
            let line: Vec<Complex> = (0..n).map(|j| values[at(j)]).collect();
            dft(&line, false).into_iter().enumerate().for_each(|(k, v)| want[at(k)] = v);
        }
        let y = call(&mut b, "fft", &[Arg::Tensor(x), Arg::None, Arg::Int(axis as i64)]);
        assert!(error(&complex(&b, y), &want) < 1e-6, "axis {axis}");
    }
    let (y, two) =
        (call(&mut b, "fft", &[Arg::Tensor(x), Arg::None, Arg::Int(1)]), call(&mut b, "fft2", &[Arg::Tensor(x)]));
    let y = call(&mut b, "fft", &[Arg::Tensor(y), Arg::None, Arg::Int(2)]);
    let (y, want) = (complex(&b, y), complex(&b, two));
    assert!(error(&y, &want) < 1e-6);
    let back = call(&mut b, "ifft2", &[Arg::Tensor(two)]);
    assert!(error(&complex(&b, back), &values) < 1e-6);
}

#[test]
fn a_half_spectrum_in_two_dims() {
    for (h, w) in [(6u64, 8u64), (5, 7), (1, 4), (3, 1)] {
        let mut b = Eager::default();
        let values = noise((2 * h * w) as usize, h);
        let x = real_tensor(&mut b, &[2, h, w], &values);
        let half = call(&mut b, "rfft2", &[Arg::Tensor(x)]);
        assert_eq!(b.shape(half), [2, h, w / 2 + 1]);
        let sizes = Arg::Ints(vec![h as i64, w as i64]);
        let back = call(&mut b, "irfft2", &[Arg::Tensor(half), sizes]);
        let got = floats(&b, back);
        assert!(got.iter().zip(&values).all(|(a, b)| (a - b).abs() < 1e-6), "{h} by {w}");
        let whole = call(&mut b, "fft2", &[Arg::Tensor(x)]);
        let first = expand::slice(&mut b, whole, 2, 0, w / 2 + 1);
        assert!(error(&complex(&b, half), &complex(&b, first)) < 1e-6, "{h} by {w}");
    }
}

#[test]
fn no_elements() {
    let mut b = Eager::default();
    let x = tensor(&mut b, &[0, 4], &[]);
    let y = call(&mut b, "fft", &[Arg::Tensor(x)]);
    assert_eq!(b.shape(y), [0, 4]);
    let none = (find("fft").unwrap().expand)(&mut b, &[Arg::Tensor(x), Arg::None, Arg::Int(0)], &Hints::default());
    assert_eq!(none.unwrap_err().code, Code::E0711);
}

#[test]
fn a_spectral_layer_is_its_definition() {
    let (batch, channels, out, h, w, modes) = (2u64, 3u64, 2u64, 8u64, 6u64, 2u64);
    let mut b = Eager::default();
    let x = real_tensor(&mut b, &[batch, channels, h, w], &noise((batch * channels * h * w) as usize, 1));
    let pairs = |n: u64| noise(2 * n as usize, 2).chunks_exact(2).map(|c| [c[0], c[1]]).collect::<Vec<Complex>>();
    let values = pairs(2 * channels * out * modes * modes);
    let weight = tensor(&mut b, &[2, channels, out, modes, modes], &values);
    let y = call(&mut b, "spectral_conv", &[Arg::Tensor(x), Arg::Tensor(weight)]);
    assert_eq!(b.shape(y), [batch, out, h, w]);
    let half = call(&mut b, "rfft2", &[Arg::Tensor(x)]);
    let spectrum = complex(&b, half);
    let m = w / 2 + 1;
    let mut product = vec![[0.0; 2]; (batch * out * h * m) as usize];
    for (n, o, i, r, c) in (0..batch).flat_map(|n| {
        (0..out).flat_map(move |o| {
            (0..channels).flat_map(move |i| (0..2 * modes).flat_map(move |r| (0..modes).map(move |c| (n, o, i, r, c))))
        })
    }) {
        let row = if r < modes { r } else { h - 2 * modes + r };
        let a = spectrum[(((n * channels + i) * h + row) * m + c) as usize];
        let half = (r / modes * channels + i) * out + o;
        let v = values[((half * modes + r % modes) * modes + c) as usize];
        let to = &mut product[(((n * out + o) * h + row) * m + c) as usize];
        *to = [to[0] + a[0] * v[0] - a[1] * v[1], to[1] + a[0] * v[1] + a[1] * v[0]];
    }
    let product = tensor(&mut b, &[batch, out, h, m], &product);
    let want = call(&mut b, "irfft2", &[Arg::Tensor(product)]);
    let (got, want) = (floats(&b, y), floats(&b, want));
    assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-5), "{got:?} {want:?}");
}

#[test]
fn arithmetic_of_complex_numbers() {
    let mut b = Eager::default();
    let (u, v): (Vec<Complex>, Vec<Complex>) = (
        vec![[1.0, 2.0], [-3.0, 0.5], [0.0, -1.0], [2.0, 0.0]],
        vec![[0.5, -1.0], [4.0, 3.0], [0.0, 2.0], [-1.0, 0.25]],
    );
    let (x, y) = (tensor(&mut b, &[4], &u), tensor(&mut b, &[4], &v));
    let mul = |a: Complex, b: Complex| [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]];
    let div = |a: Complex, b: Complex| {
        let size = b[0] * b[0] + b[1] * b[1];
        mul(a, [b[0] / size, -b[1] / size])
    };
    let mut two = |name: &str, f: &dyn Fn(Complex, Complex) -> Complex| {
        let got = call(&mut b, name, &[Arg::Tensor(x), Arg::Tensor(y)]);
        let want: Vec<Complex> = u.iter().zip(&v).map(|(a, b)| f(*a, *b)).collect();
        let off = error(&complex(&b, got), &want);
        assert!(off < 1e-6, "{name}: {off}");
    };
    two("add", &|a, b| [a[0] + b[0], a[1] + b[1]]);
    two("sub", &|a, b| [a[0] - b[0], a[1] - b[1]]);
    two("mul", &mul);
    two("div", &div);
    let mut one = |name: &str, f: &dyn Fn(Complex) -> Complex| {
        let got = call(&mut b, name, &[Arg::Tensor(x)]);
        let off = error(&complex(&b, got), &u.iter().map(|a| f(*a)).collect::<Vec<_>>());
        assert!(off < 1e-6, "{name}: {off}");
    };
    one("conj", &|a| [a[0], -a[1]]);
    one("neg", &|a| [-a[0], -a[1]]);
    one("square", &|a| mul(a, a));
    one("reciprocal", &|a| div([1.0, 0.0], a));
    one("exp", &|a| [a[0].exp() * a[1].cos(), a[0].exp() * a[1].sin()]);
    one("log", &|a| [a[0].hypot(a[1]).ln(), a[1].atan2(a[0])]);
    let root = call(&mut b, "sqrt", &[Arg::Tensor(x)]);
    let squared = call(&mut b, "square", &[Arg::Tensor(root)]);
    assert!(error(&complex(&b, squared), &u) < 1e-6);
    assert!(complex(&b, root).iter().all(|z| z[0] >= 0.0));
    let size = call(&mut b, "abs", &[Arg::Tensor(x)]);
    assert!(floats(&b, size).iter().zip(&u).all(|(a, z)| (a - z[0].hypot(z[1])).abs() < 1e-6));
    let sum = call(&mut b, "sum", &[Arg::Tensor(x)]);
    assert_eq!(complex(&b, sum), [[0.0, 1.5]]);
    let mean = call(&mut b, "mean", &[Arg::Tensor(x)]);
    assert_eq!(complex(&b, mean), [[0.0, 0.375]]);
    let product = call(&mut b, "dot", &[Arg::Tensor(x), Arg::Tensor(y)]);
    let want = u.iter().zip(&v).fold([0.0; 2], |s, (a, b)| [s[0] + mul(*a, *b)[0], s[1] + mul(*a, *b)[1]]);
    assert!(error(&complex(&b, product), &[want]) < 1e-6);
}

/// Functions at [`FUNCTION_AT`], from Python's `cmath` and mpmath.
const FUNCTIONS: [(&str, [Complex; 5]); 20] = [
    (
        "exp2",
        [
            [0.36691394948660333, 1.9660554808224875],
            [0.11756776308540548, 0.04245964063783357],
            [0.8678885429313343, -0.4967589727911569],
            [4.0, 0.0],
            [1.1847461712828316, -0.10290807550317103],
        ],
    ),
    (
        "expm1",
        [
            [-2.1312043837568133, 2.4717266720048188],
            [-0.9563077369927189, 0.02386919206778745],
            [-0.2683111311261791, -0.6816387600233341],
            [6.38905609893065, 0.0],
            [0.2740070231007443, -0.16008552648540006],
        ],
    ),
    (
        "log2",
        [
            [1.160964047443681, 1.5972779646881088],
            [1.604726682814475, 4.29410096391174],
            [-0.4150374992788438, -2.266180070913597],
            [1.0, 0.0],
            [-1.839035952556319, -0.6689021062254881],
        ],
    ),
    (
        "log10",
        [
            [0.3494850021680094, 0.480828578784234],
            [0.4830708663695163, 1.2926531945470485],
            [-0.12493873660829993, -0.6821881769209206],
            [0.30102999566398114, 0.0],
            [-0.5536049848239342, -0.20135959813668655],
        ],
    ),
    (
        "log1p",
        [
            [1.0397207708399179, FRAC_PI_4],
            [0.7234594914681627, 2.896613990462929],
            [0.22314355131420976, -0.6435011087932844],
            [1.0986122886681098, 0.0],
            [0.2281187167407938, -0.09966865249116202],
        ],
    ),
    (
        "rsqrt",
        [
            [0.5688644810057831, -0.3515775842541429],
            [0.047295085825010685, -0.5714552908736776],
            [0.8164965809277261, 0.8164965809277261],
            [0.7071067811865475, 0.0],
            [1.840884130519852, 0.4345737935032803],
        ],
    ),
    (
        "sin",
        [
            [3.165778513216168, 1.9596010414216058],
            [-0.15913058529844, -0.5158804424525267],
            [0.0, -0.82231673193583],
            [0.9092974268256817, 0.0],
            [0.24933932072057635, -0.12142970039163314],
        ],
    ),
    (
        "cos",
        [
            [2.0327230070196656, -3.0518977991518],
            [-1.116341244526152, 0.0735369737112366],
            [1.2946832846768448, 0.0],
            [-0.4161468365471424, 0.0],
            [0.9764919114270164, 0.031006092991294427],
        ],
    ),
    (
        "tan",
        [
            [0.03381282607989669, 1.0147936161466335],
            [0.11162105077158345, 0.4694699934258854],
            [0.0, -0.6351489523872873],
            [-2.185039863261519, 0.0],
            [0.25114019282772937, -0.13232733937905133],
        ],
    ),
    (
        "sinh",
        [
            [-0.4890562590412937, 1.4031192506220407],
            [-8.791512343493713, 4.826694274810821],
            [0.0, -0.6816387600233341],
            [3.6268604078470186, 0.0],
            [0.25064135145046085, -0.128591153237517],
        ],
    ),
    (
        "cosh",
        [
            [-0.64214812471552, 1.0686074213827783],
            [8.835204606500994, -4.802825082743033],
            [0.7316888688738209, 0.0],
            [3.7621956910836314, 0.0],
            [1.0233656716502835, -0.031494373247883053],
        ],
    ),
    (
        "tanh",
        [
            [1.16673625724092, -0.24345820118572525],
            [-0.997316365283202, 0.0041604265928938304],
            [0.0, -0.9315964599440725],
            [0.9640275800758169, 0.0],
            [0.24855032883992248, -0.11800592862901604],
        ],
    ),
    (
        "asin",
        [
            [0.4270785863924761, 1.5285709194809982],
            [-1.3961498617094474, 1.7789904938267687],
            [-0.0, -LN_2],
            [FRAC_PI_2, 1.3169578969248166],
            [0.25055799415238184, -0.12867366489671092],
        ],
    ),
    (
        "acos",
        [
            [1.1437177404024204, -1.5285709194809982],
            [2.9669461885043438, -1.7789904938267687],
            [FRAC_PI_2, LN_2],
            [0.0, -1.3169578969248166],
            [1.3202383326425147, 0.12867366489671092],
        ],
    ),
    (
        "atan",
        [
            [1.3389725222944935, 0.40235947810852507],
            [-1.2563981835871803, 0.04893614428152383],
            [-0.0, -0.9729550745276566],
            [1.1071487177940904, 0.0],
            [0.24848430243952666, -0.11808983573454865],
        ],
    ),
    (
        "asinh",
        [
            [1.4693517443681852, 1.063440023577752],
            [-1.8301947623375088, 0.15700459478894233],
            [-0.0, -0.848062078981481],
            [1.4436354751788103, 0.0],
            [0.24926773272845432, -0.12151347484093104],
        ],
    ),
    (
        "acosh",
        [
            [1.5285709194809982, 1.1437177404024204],
            [1.7789904938267687, 2.9669461885043438],
            [LN_2, -FRAC_PI_2],
            [1.3169578969248166, 0.0],
            [0.12867366489671092, -1.3202383326425147],
        ],
    ),
    (
        "atanh",
        [
            [0.17328679513998632, 1.1780972450961724],
            [-0.33529348145985527, 1.5104844925048453],
            [-0.0, -0.6435011087932844],
            [0.5493061443340549, FRAC_PI_2],
            [0.2510506510492588, -0.13240866495289444],
        ],
    ),
    (
        "sigmoid",
        [
            [1.0214153641721806, 0.4034387060815425],
            [0.04236404336934299, 0.02190108846258359],
            [0.5, -0.19681328796281636],
            [0.8807970779778823, 0.0],
            [0.5624162316474208, -0.03080501828999169],
        ],
    ),
    (
        "sign",
        [
            [0.4472135954999579, 0.8944271909999159],
            [-0.9863939238321437, 0.1643989873053573],
            [0.0, -1.0],
            [1.0, 0.0],
            [0.8944271909999159, -0.4472135954999579],
        ],
    ),
];
const FUNCTION_AT: [Complex; 5] = [[1.0, 2.0], [-3.0, 0.5], [-0.0, -0.75], [2.0, 0.0], [0.25, -0.125]];

#[test]
fn functions_of_complex_numbers() {
    let mut b = Eager::default();
    let x = tensor(&mut b, &[5], &FUNCTION_AT);
    for (name, want) in FUNCTIONS {
        let y = call(&mut b, name, &[Arg::Tensor(x)]);
        let off = error(&complex(&b, y), &want);
        assert!(off < 1e-6, "{name}: {off}");
    }
    let exponents = [[0.5, -1.0], [4.0, 3.0], [0.0, 2.0], [-1.0, 0.25], [0.5, 0.0]];
    let y = tensor(&mut b, &[5], &exponents);
    let power = call(&mut b, "pow", &[Arg::Tensor(x), Arg::Tensor(y)]);
    let want = [
        [4.382565059863359, -1.124397477361155],
        [-0.01012790873941431, 0.005084282556995881],
        [19.41490718331596, -12.591784408414519],
        [0.492511688272883, 0.0862104223084107],
        [0.5145427568178731, -0.12146706793916141],
    ];
    assert!(error(&complex(&b, power), &want) < 1e-6);
    // Inverses, also far from 0 and near it, where squares of f32 leave the range or vanish.
    let far: [Complex; 6] = [[1e20, 2e19], [-3e-30, 1e-30], [-2.0, 1e-30], [0.0, 3.0], [-5e20, -1e-10], [1.0, 0.0]];
    let x = tensor(&mut b, &[6], &far);
    for (f, inverse) in [("sinh", "asinh"), ("cosh", "acosh"), ("sin", "asin"), ("cos", "acos")] {
        let y = call(&mut b, inverse, &[Arg::Tensor(x)]);
        let back = call(&mut b, f, &[Arg::Tensor(y)]);
        for (got, want) in complex(&b, back).iter().zip(&far) {
            let off = (got[0] - want[0]).hypot(got[1] - want[1]) / want[0].hypot(want[1]).max(1.0);
            // An angle or a logarithm has been rounded to f32 in between.
            assert!(off < 1e-5, "{f}({inverse}({want:?})) = {got:?}");
        }
    }
}

#[test]
fn convolutions_by_transforms_are_near_the_sums() {
    // Input [n, c, h, w], weights [o, c/groups, kh, kw], groups, padding.
    let cases: [([u64; 4], [u64; 4], i64, i64); 4] = [
        ([2, 6, 30, 23], [6, 1, 17, 21], 6, 3),
        ([1, 3, 64, 64], [4, 3, 31, 29], 1, 15),
        ([1, 4, 90, 87], [6, 2, 45, 44], 2, 0),
        ([1, 1, 50, 1], [1, 1, 49, 1], 1, 0),
    ];
    for (x, w, groups, padding) in cases {
        let mut b = Eager::default();
        let count = |shape: &[u64]| shape.iter().product::<u64>() as usize;
        let input = real_tensor(&mut b, &x, &noise(count(&x), 1));
        let weights = real_tensor(&mut b, &w, &noise(count(&w), 2));
        let mut conv = |reassociate| {
            let hints = Hints { reassociate, ..Hints::default() };
            let ints = [Arg::Int(1), Arg::Ints(vec![padding, padding]), Arg::Int(1), Arg::Int(groups)];
            let args = [&[Arg::Tensor(input), Arg::Tensor(weights), Arg::None], &ints[..]].concat();
            let def = find("conv2d").unwrap_or_else(|| panic!("no row conv2d"));
            let y = (def.expand)(&mut b, &args, &hints).unwrap_or_else(|e| panic!("{e:?}"))[0];
            floats(&b, y)
        };
        let (sum, fast) = (conv(false), conv(true));
        assert!(padding == 0 && x[3] == 1 || sum != fast, "{x:?} by {w:?} is not taken by transforms");
        let whole = |v: &[f64]| v.iter().map(|v| [*v, 0.0]).collect::<Vec<_>>();
        let off = error(&whole(&fast), &whole(&sum));
        assert!(off < 4.0 * bound(count(&x[2..])), "{x:?} by {w:?}: {off:e}");
    }
}
