//! Quantised numbers and products of them against f64, within bounds that follow from the formats.

use tessera_base::{Blocks, DType};
use tessera_ops::prim::Scalar;
use tessera_ops::surface::{Arg, Hints, Precision, find};
use tessera_runtime::execute::{Workspace, execute};
use tessera_runtime::pool::Pool;
use tessera_tests::compare::{Bench, arguments, finely, outputs};
use tessera_tests::exact::numbers;
use tessera_tests::operators::expand;
use tessera_tests::random_graph::{Builder, Case};

/// The rows of a graph by compiled code, and the same by the interpreter, which gives the same bits.
fn run(bench: &Bench, case: &Case) -> Vec<Vec<f64>> {
    let graph = bench.backend.optimise(&case.graph);
    let plan = finely(bench.backend.plan(&graph).unwrap_or_else(|e| panic!("{e:?}")));
    let args = arguments(&graph, &case.inputs, 0).unwrap_or_else(|e| panic!("{e:?}"));
    let made = execute(&plan, args, &Pool::new(2), &mut Workspace::default());
    let got = outputs(made).unwrap_or_else(|e| panic!("{e:?}"));
    let inputs: Vec<&[u8]> = case.inputs.iter().map(Vec::as_slice).collect();
    let interpreted = tessera_ir::interpret::run(&graph, &inputs).unwrap_or_else(|e| panic!("{e:?}"));
    for (o, (a, b)) in case.graph.outputs.iter().zip(got.iter().zip(&interpreted)) {
        assert!(a == b, "{} differs between compiled and interpreted code", case.graph.ty(*o));
    }
    let real = |(&o, bytes): (&_, &Vec<u8>)| floats(case.graph.ty(o).dtype, bytes);
    case.graph.outputs.iter().zip(&got).map(real).collect()
}

fn floats(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    let real = |s| if let Scalar::F(x) = s { x } else { f64::NAN };
    numbers(dtype, bytes).into_iter().map(real).collect()
}

/// Numbers over many sizes, with zeros, of a shape.
fn input(b: &mut Builder, shape: &[u64], spread: i32) -> (Arg, Vec<f64>) {
    let count: u64 = shape.iter().product();
    let mut bytes = vec![];
    for _ in 0..count {
        let (mantissa, exponent) = (b.random.below(2001) as f64 - 1000.0, b.random.below(2 * spread as usize + 1));
        let x = (mantissa * 2f64.powi(exponent as i32 - spread - 10)) as f32;
        bytes.extend(x.to_le_bytes());
    }
    let values = floats(DType::F32, &bytes);
    let id = b.input_of(shape, DType::F32, bytes, false);
    (Arg::Tensor(tessera_ops::surface::Id(id.0)), values)
}

fn case(b: Builder) -> Case {
    Case { graph: b.graph, inputs: b.data }
}

/// Half a unit in the last place relative to a number, and half the least step, of an fp8 type;
/// and its largest number.
fn eight(dtype: DType) -> (f64, f64, f64) {
    match dtype {
        DType::F8E5M2 => (2f64.powi(-3), 2f64.powi(-17), 57344.0),
        _ => (2f64.powi(-4), 2f64.powi(-10), 448.0),
    }
}

/// The largest size of the block that an element of the last two dims is in.
fn top(x: &[f64], shape: [usize; 2], block: Option<[usize; 2]>, i: usize) -> f64 {
    let [rows, columns] = shape;
    let [h, w] = block.unwrap_or([rows, columns]);
    let (r, c) = (i / columns / h * h, i % columns / w * w);
    let inside = (r..(r + h).min(rows)).flat_map(|r| (c..(c + w).min(columns)).map(move |c| r * columns + c));
    inside.map(|i| x[i].abs()).fold(0.0, f64::max)
}

/// What an element may be off by: the scale is at most twice what makes the largest fit.
fn off(dtype: DType, x: f64, top: f64) -> f64 {
    let (relative, least, largest) = eight(dtype);
    let scale = (2.0 * top / largest).max(2f64.powi(-100));
    // The logarithm may put the scale one step too low for the last bits of the largest.
    (relative + 1e-5) * x.abs() + least * scale
}

#[test]
fn fp8_with_scales_comes_back() {
    let bench = Bench::new();
    for (n, dtype) in [DType::F8E4M3, DType::F8E5M2].into_iter().enumerate() {
        for (m, block) in [None, Some([1, 128]), Some([128, 128]), Some([3, 5])].into_iter().enumerate() {
            for (rows, columns) in [(1, 1), (3, 130), (130, 300)] {
                let mut b = Builder::plain((n * 16 + m) as u64);
                let (x, values) = input(&mut b, &[rows as u64, columns as u64], 12);
                let sizes = block.map_or(Arg::None, |[h, w]: [usize; 2]| Arg::Ints(vec![h as i64, w as i64]));
                let call = |b: &mut Builder, name: &str, args: &[Arg]| {
                    let def = find(name).unwrap_or_else(|| panic!("no {name}"));
                    expand(b, def, args, &Hints::default()).unwrap_or_else(|e| panic!("{name}: {e:?}"))
                };
                let made = call(&mut b, "quantize", &[x.clone(), Arg::Str(dtype.name().into()), sizes.clone()]);
                let [q, s] = [made[0], made[1]].map(|id| Arg::Tensor(tessera_ops::surface::Id(id.0)));
                let back = call(&mut b, "dequantize", &[q, Arg::None, s, sizes.clone()]);
                let fake = call(&mut b, "fake_quantize", &[x, Arg::Str(dtype.name().into()), sizes]);
                b.graph.outputs = vec![back[0], fake[0], made[1]];
                let got = run(&bench, &case(b));
                assert_eq!(got[0], got[1]);
                assert!(got[2].iter().all(|s| s.log2().fract() == 0.0), "scales are powers of two");
                for (i, (&x, &y)) in values.iter().zip(&got[0]).enumerate() {
                    let bound = off(dtype, x, top(&values, [rows, columns], block, i));
                    assert!(
                        (x - y).abs() <= bound,
                        "{dtype} {block:?} {rows}x{columns}: {x} became {y}, bound {bound}"
                    );
                }
            }
        }
    }
}

#[test]
fn blocks_come_back() {
    let bench = Bench::new();
    for (n, format) in Blocks::ALL.into_iter().filter(|f| f.writes()).enumerate() {
        let mut b = Builder::plain(n as u64);
        let (x, values) = input(&mut b, &[7, 96], 3);
        let def = find("fake_quantize").unwrap_or_else(|| panic!("no row"));
        let made = expand(&mut b, def, &[x, Arg::Str(format.name().into()), Arg::None], &Hints::default());
        b.graph.outputs = made.unwrap_or_else(|e| panic!("{e:?}"));
        let got = run(&bench, &case(b));
        for (block, back) in values.chunks(32).zip(got[0].chunks(32)) {
            let top = block.iter().fold(0.0f64, |m, x| m.max(x.abs()));
            let low = block.iter().copied().fold(f64::INFINITY, f64::min);
            let high = block.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            // The step, and how much of it: a signed format has no code for the largest of the
            // other sign. The scale (and the least number) in f16 is off by 2^-11 of itself.
            let (step, part) = match format {
                Blocks::Q8_0 => (top / 127.0, 0.5),
                Blocks::Q4_0 => (top / 8.0, 1.0),
                Blocks::Q5_0 => (top / 16.0, 1.0),
                Blocks::Q4_1 => ((high - low) / 15.0, 0.5),
                _ => ((high - low) / 31.0, 0.5),
            };
            let rounding = 2f64.powi(-11) * (top + low.abs() + (high - low)) + 32.0 * 2f64.powi(-25);
            for (x, y) in block.iter().zip(back) {
                assert!((x - y).abs() <= step * part + rounding, "{}: {x} became {y}", format.name());
            }
        }
    }
}

/// `x @ w` of fp8 factors: each factor is off as above, the sum in f32 by a rounding for each
/// step, the result is rounded to bf16.
#[test]
fn products_of_fp8_keep_to_the_bound() {
    let bench = Bench::new();
    let hints = Hints { precision: Precision::Aggressive, ..Hints::default() };
    for (seed, [m, k, n]) in [[1, 1, 1], [3, 130, 5], [17, 300, 140], [2, 1024, 3]].into_iter().enumerate() {
        let mut b = Builder::plain(seed as u64);
        let (x, left) = input(&mut b, &[m as u64, k as u64], 6);
        let (w, right) = input(&mut b, &[k as u64, n as u64], 6);
        let def = find("matmul").unwrap_or_else(|| panic!("no row"));
        let made = expand(&mut b, def, &[x, w], &hints).unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(b.graph.ty(made[0]).dtype, DType::Bf16);
        b.graph.outputs = made;
        let got = run(&bench, &case(b));
        for i in 0..m {
            for j in 0..n {
                let (mut sum, mut bound, mut sizes) = (0.0, 0.0, 0.0);
                for step in 0..k {
                    let (a, c) = (left[i * k + step], right[step * n + j]);
                    let da = off(DType::F8E4M3, a, top(&left, [m, k], Some([1, 128]), i * k + step));
                    let dc = off(DType::F8E4M3, c, top(&right, [k, n], Some([128, 128]), step * n + j));
                    sum += a * c;
                    bound += da * c.abs() + dc * a.abs() + da * dc;
                    sizes += (a.abs() + da) * (c.abs() + dc);
                }
                bound += k as f64 * 2f64.powi(-24) * sizes + 1e-30;
                bound += 2f64.powi(-8) * (sum.abs() + bound);
                let y = got[0][i * n + j];
                assert!((y - sum).abs() <= bound, "{m}x{k}x{n}: {y} instead of {sum}, bound {bound}");
            }
        }
    }
}
