use super::*;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{LANES, LEAF, Reduction, Scalar, Steps};
use tessera_ops::reference::{philox, random_bits_program};
use tessera_ops::scalar::Kind;
use tessera_ops::scalar_eval::{self, Lane};

fn f32s(xs: &[f32]) -> Vec<u8> {
    xs.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn i64s(xs: &[i64]) -> Vec<u8> {
    xs.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn array<'a>(dtype: DType, shape: &'a [u64], bytes: &'a [u8]) -> ArrayRef<'a> {
    ArrayRef { dtype, shape, bytes }
}

fn run_f32(prim: Prim, operands: &[(&[u64], &[f32])], shape: &[u64]) -> Vec<f32> {
    let bytes: Vec<Vec<u8>> = operands.iter().map(|o| f32s(o.1)).collect();
    let refs: Vec<ArrayRef> = operands.iter().zip(&bytes).map(|(o, b)| array(DType::F32, o.0, b)).collect();
    floats(eval(&prim, &refs, DType::F32, shape).unwrap())
}

fn floats(bytes: Vec<u8>) -> Vec<f32> {
    match Lane::from_bytes(Kind::F32, &bytes) {
        Lane::F32(v) => v,
        _ => vec![],
    }
}

fn ints(bytes: Vec<u8>) -> Vec<i64> {
    match Lane::from_bytes(Kind::I64, &bytes) {
        Lane::I64(v) => v,
        _ => vec![],
    }
}

fn counting(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32).collect()
}

fn noise(n: usize) -> Vec<f32> {
    let mut state = 7u64;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 40) as f32 - 8388608.0) * 2f32.powi((state >> 36 & 15) as i32 - 20)
        })
        .collect()
}

/// The canonical sum as it is written down, by recursion over leaves.
fn canonical(xs: &[f32]) -> f32 {
    fn leaf(xs: &[f32]) -> f32 {
        let lane = |l: usize| xs.iter().skip(l).step_by(LANES).fold(0.0, |a, &x| a + x);
        let mut lanes: Vec<f32> = (0..LANES).map(lane).collect();
        while lanes.len() > 1 {
            let (low, high) = lanes.split_at(lanes.len() / 2);
            lanes = low.iter().zip(high).map(|(a, b)| a + b).collect();
        }
        lanes[0]
    }
    let mut level: Vec<f32> = xs.chunks(LEAF).map(leaf).collect();
    while level.len() > 1 {
        level = level.chunks(2).map(|c| if c.len() == 2 { c[0] + c[1] } else { c[0] }).collect();
    }
    level.first().copied().unwrap_or(0.0)
}

#[test]
fn sums_are_canonical() {
    for n in [0, 1, 5, 16, 17, 100, LEAF - 1, LEAF, LEAF + 1, 3 * LEAF + 5, 5 * LEAF, 6 * LEAF + 1, 7 * LEAF] {
        let xs = noise(n);
        let kind = Reduction::Sum;
        let got = run_f32(Prim::Reduce { kind, axes: vec![0] }, &[(&[n as u64], &xs)], &[]);
        assert_eq!(got[0].to_bits(), canonical(&xs).to_bits(), "{n}");
        // The same along a leading axis, and over two axes at once.
        let mut columns = Vec::new();
        for &x in &xs {
            columns.extend([x, 2.0 * x]);
        }
        let got = run_f32(Prim::Reduce { kind, axes: vec![0] }, &[(&[n as u64, 2], &columns)], &[2]);
        assert_eq!([got[0].to_bits(), got[1].to_bits()], [canonical(&xs), 2.0 * canonical(&xs)].map(f32::to_bits));
        let got = run_f32(Prim::Reduce { kind, axes: vec![1, 0] }, &[(&[n as u64, 2], &columns)], &[]);
        assert_eq!(got[0].to_bits(), canonical(&columns).to_bits());
    }
}

#[test]
fn compensated_sums_are_exact_here() {
    for repeat in [1, 2, 3, 1000, 5000] {
        let xs = f32s(&[1e8, 1.0, -1e8, 1.0].repeat(repeat));
        let shape = [4 * repeat as u64];
        let prim = Prim::Reduce { kind: Reduction::Sum, axes: vec![0] };
        let a = array(DType::F32, &shape, &xs);
        let got = eval_summing(&prim, &[a], DType::F32, &[], Summation::Compensated).unwrap();
        assert_eq!(floats(got), [2.0 * repeat as f32]);
    }
}

#[test]
fn extremes_propagate_nan_and_know_their_identity() {
    let max =
        |xs: &[f32]| run_f32(Prim::Reduce { kind: Reduction::Max, axes: vec![0] }, &[(&[xs.len() as u64], xs)], &[])[0];
    assert_eq!(max(&[1.0, 7.0, -3.0]), 7.0);
    assert!(max(&[1.0, f32::NAN, 9.0]).is_nan());
    assert_eq!(max(&[]), f32::NEG_INFINITY);
    assert_eq!(max(&[-0.0, 0.0]).to_bits(), 0);
    let prim = Prim::Reduce { kind: Reduction::Max, axes: vec![0] };
    assert_eq!(eval(&prim, &[array(DType::I8, &[0], &[])], DType::I8, &[]).unwrap(), [0x80]);
    assert_eq!(eval(&prim, &[array(DType::I8, &[2], &[0xff, 0x81])], DType::I8, &[]).unwrap(), [0xff]);
}

#[test]
fn an_infinity_of_e5m2_is_the_largest_element() {
    let x = array(DType::F8E5M2, &[3], &[0x3c, 0x7c, 0xfc]);
    let run = |prim: Prim, operands: &[ArrayRef], shape: &[u64]| eval(&prim, operands, DType::F8E5M2, shape).unwrap();
    let reduce = |kind| run(Prim::Reduce { kind, axes: vec![0] }, &[x], &[]);
    assert_eq!((reduce(Reduction::Max), reduce(Reduction::Min)), (vec![0x7c], vec![0xfc]));
    assert_eq!(run(Prim::Map(MapOp::maximum), &[x, x], &[3]), [0x3c, 0x7c, 0xfc]);
    assert_eq!(run(Prim::Map(MapOp::neg), &[x], &[3]), [0xbc, 0xfc, 0x7c]);
    assert_eq!(run(Prim::Map(MapOp::abs), &[x], &[3]), [0x3c, 0x7c, 0x7c]);
    // What is computed saturates.
    assert_eq!(run(Prim::Map(MapOp::square), &[x], &[3]), [0x3c, 0x7b, 0x7b]);
}

#[test]
fn f16_rounds_at_every_step() {
    let f16 = |x: f64| tessera_ops::convert::store(DType::F16, Scalar::F(x));
    let (ones, large) = (f16(1.0).repeat(200), [f16(2048.0), f16(1.0).repeat(199)].concat());
    let (row, column) = (array(DType::F16, &[1, 200], &large), array(DType::F16, &[200, 1], &ones));
    for (accum, want) in [(DType::F16, 2048.0), (DType::F32, 2247.0)] {
        let prim = Prim::dot(accum, Steps::All);
        assert_eq!(floats(eval(&prim, &[row, column], DType::F32, &[1, 1]).unwrap()), [want]);
    }
    for bits in 0..=u16::MAX {
        // Every number of f16, and what lies halfway to the next.
        let x = floats(tessera_ops::convert::cast(DType::F16, DType::F32, &bits.to_le_bytes()))[0];
        for x in [x, x * 1.000_488_3, x * 1.000_244_1, x + 2f32.powi(-25), x * 3.0] {
            let want = tessera_ops::convert::cast(DType::F32, DType::F16, &x.to_le_bytes());
            let want = floats(tessera_ops::convert::cast(DType::F16, DType::F32, &want))[0];
            let got = tessera_ops::convert::round_f16(x);
            assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{x:e}: {got:e}, {want:e}");
        }
    }
}

#[test]
fn integer_sums_wrap_and_narrow() {
    let prim = Prim::Reduce { kind: Reduction::Sum, axes: vec![0] };
    let a = array(DType::U8, &[3], &[200, 100, 7]);
    assert_eq!(ints(eval(&prim, &[a], DType::I64, &[]).unwrap()), [307]);
    assert_eq!(eval(&prim, &[a], DType::U8, &[]).unwrap(), [51]);
    let any = Prim::Reduce { kind: Reduction::Any, axes: vec![0] };
    assert_eq!(eval(&any, &[array(DType::Bool, &[3], &[0, 1, 0])], DType::Bool, &[]).unwrap(), [1]);
}

#[test]
fn narrow_sums_round_once() {
    let one = tessera_ops::convert::store(DType::Bf16, Scalar::F(1.0));
    let bytes = one.repeat(1000);
    let prim = Prim::Reduce { kind: Reduction::Sum, axes: vec![0] };
    let got = eval(&prim, &[array(DType::Bf16, &[1000], &bytes)], DType::Bf16, &[]).unwrap();
    assert_eq!(got, tessera_ops::convert::store(DType::Bf16, Scalar::F(1000.0)));
}

#[test]
fn running_sums() {
    let prim = Prim::Cumulate { kind: Reduction::Sum, axis: 0 };
    assert_eq!(run_f32(prim, &[(&[3, 2], &counting(6))], &[3, 2]), [0.0, 1.0, 2.0, 4.0, 6.0, 9.0]);
}

#[test]
fn products_are_fused_chains() {
    let (m, k, n) = (3usize, 37, 5);
    let (a, b) = (noise(2 * m * k), noise(2 * k * n));
    let got = run_f32(
        Prim::dot(DType::F32, Steps::All),
        &[(&[2, m as u64, k as u64], &a), (&[2, k as u64, n as u64], &b)],
        &[2, m as u64, n as u64],
    );
    for z in 0..2 {
        for i in 0..m {
            for j in 0..n {
                let want = (0..k).fold(0f32, |s, p| a[(z * m + i) * k + p].mul_add(b[(z * k + p) * n + j], s));
                assert_eq!(got[(z * m + i) * n + j].to_bits(), want.to_bits());
            }
        }
    }
    let prim = Prim::dot(DType::I64, Steps::All);
    let (a, b) = (array(DType::I8, &[1, 2], &[100, 100]), array(DType::I8, &[2, 1], &[100, 100]));
    assert_eq!(ints(eval(&prim, &[a, b], DType::I64, &[1, 1]).unwrap()), [20000]);
    let empty = eval(&prim, &[array(DType::I8, &[1, 0], &[]), array(DType::I8, &[0, 1], &[])], DType::I64, &[1, 1]);
    assert_eq!(ints(empty.unwrap()), [0]);
}

#[test]
fn complex_products() {
    let a = f32s(&[1.0, 2.0, 3.0, -1.0]);
    let b = f32s(&[0.5, 1.0, 2.0, 2.0]);
    let refs = [array(DType::C64, &[1, 2], &a), array(DType::C64, &[2, 1], &b)];
    let got = eval(&Prim::dot(DType::C64, Steps::All), &refs, DType::C64, &[1, 1]).unwrap();
    // (1+2i)(0.5+i) + (3−i)(2+2i) = (−1.5+2i) + (8+4i).
    assert_eq!(floats(got), [6.5, 6.0]);
}

#[test]
fn movement() {
    let x = counting(6);
    let t = run_f32(Prim::Transpose { perm: vec![1, 0] }, &[(&[2, 3], &x)], &[3, 2]);
    assert_eq!(t, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    let b = run_f32(Prim::Broadcast { dims: vec![1] }, &[(&[2], &x[1..3])], &[2, 2]);
    assert_eq!(b, [1.0, 2.0, 1.0, 2.0]);
    let b = run_f32(Prim::Broadcast { dims: vec![0, 1] }, &[(&[2, 1], &x[1..3])], &[2, 2]);
    assert_eq!(b, [1.0, 1.0, 2.0, 2.0]);
    let s = run_f32(Prim::Slice { start: vec![1, 2], step: vec![-1, -2] }, &[(&[2, 3], &x)], &[2, 2]);
    assert_eq!(s, [5.0, 3.0, 2.0, 0.0]);
    let p = run_f32(Prim::Pad { low: vec![1], high: vec![2] }, &[(&[2], &x[1..3]), (&[], &[9.0])], &[5]);
    assert_eq!(p, [9.0, 1.0, 2.0, 9.0, 9.0]);
    let c = run_f32(Prim::Concat { axis: 1 }, &[(&[2, 1], &x[..2]), (&[2, 2], &x[2..])], &[2, 3]);
    assert_eq!(c, [0.0, 2.0, 3.0, 1.0, 4.0, 5.0]);
    let u = run_f32(Prim::UpdateSlice { start: vec![0], step: vec![2] }, &[(&[4], &x[..4]), (&[2], &[7.0, 8.0])], &[4]);
    assert_eq!(u, [7.0, 1.0, 8.0, 3.0]);
    let w = Prim::Windows { stride: vec![2], dilation: vec![1] };
    assert_eq!(run_f32(w, &[(&[6], &x)], &[2, 3]), [0.0, 1.0, 2.0, 2.0, 3.0, 4.0]);
    let w = Prim::Windows { stride: vec![1, 1], dilation: vec![1, 2] };
    assert_eq!(run_f32(w, &[(&[2, 3], &x)], &[1, 1, 2, 2]), [0.0, 2.0, 3.0, 5.0]);
    let e = run_f32(Prim::Slice { start: vec![0], step: vec![1] }, &[(&[4], &x[..4])], &[0]);
    assert!(e.is_empty());
}

#[test]
fn movement_takes_every_type() {
    for dtype in DType::ALL {
        let size = dtype.bytes();
        let bytes: Vec<u8> = (0..6 * size as u8).map(|b| if dtype == DType::Bool { b % 2 } else { b }).collect();
        let a = array(dtype, &[2, 3], &bytes);
        let t = eval(&Prim::Transpose { perm: vec![1, 0] }, &[a], dtype, &[3, 2]).unwrap();
        let want: Vec<u8> =
            [0, 3, 1, 4, 2, 5].iter().flat_map(|&i| &bytes[i * size..(i + 1) * size]).copied().collect();
        assert_eq!(t, want, "{dtype}");
    }
}

#[test]
fn dynamic_positions_are_checked() {
    let x = f32s(&counting(6));
    let a = array(DType::F32, &[2, 3], &x);
    let at = |i: i64, j: i64| {
        let (i, j) = (i64s(&[i]), i64s(&[j]));
        let operands = [a, array(DType::I64, &[], &i), array(DType::I64, &[], &j)];
        eval(&Prim::DynamicSlice { sizes: vec![1, 2] }, &operands, DType::F32, &[1, 2]).map(floats)
    };
    assert_eq!(at(1, 1), Ok(vec![4.0, 5.0]));
    assert_eq!(at(1, 2).unwrap_err().message, "positions 2..4 are out of range for axis 1 of size 3");
    assert!(at(-1, 0).is_err());
    let (v, zero, one) = (f32s(&[9.0]), i64s(&[0]), i64s(&[1]));
    let operands = [a, array(DType::F32, &[1, 1], &v), array(DType::I64, &[], &one), array(DType::I64, &[], &zero)];
    let got = eval(&Prim::DynamicUpdate, &operands, DType::F32, &[2, 3]).map(floats);
    assert_eq!(got, Ok(vec![0.0, 1.0, 2.0, 9.0, 4.0, 5.0]));
}

#[test]
fn indexing() {
    let x = f32s(&counting(6));
    let a = array(DType::F32, &[2, 3], &x);
    let index = i64s(&[-1, 0]);
    let two = array(DType::I64, &[2], &index);
    let got = eval(&Prim::Take { axis: 1 }, &[a, two], DType::F32, &[2, 2]).map(floats);
    assert_eq!(got, Ok(vec![2.0, 0.0, 5.0, 3.0]));
    let got = eval(&Prim::Gather, &[a, two], DType::F32, &[2, 3]).map(floats);
    assert_eq!(got, Ok(vec![3.0, 4.0, 5.0, 0.0, 1.0, 2.0]));
    let got = eval(&Prim::Gather, &[a, two, two], DType::F32, &[2]).map(floats);
    assert_eq!(got, Ok(vec![5.0, 0.0]));
    let far = i64s(&[3, 0]);
    let got = eval(&Prim::Take { axis: 1 }, &[a, array(DType::I64, &[2], &far)], DType::F32, &[2, 2]);
    assert_eq!(got.unwrap_err().message, "index 3 is out of range for axis 1 of size 3");
    let along = i64s(&[2, 0]);
    let got = eval(&Prim::TakeAlong { axis: 1 }, &[a, array(DType::I64, &[2, 1], &along)], DType::F32, &[2, 1]);
    assert_eq!(got.map(floats), Ok(vec![2.0, 3.0]));
}

#[test]
fn scattering() {
    let x = f32s(&[0.0; 3]);
    let v = f32s(&[1.0, 2.0, 4.0]);
    let index = i64s(&[1, 1, -1]);
    let operands = [array(DType::F32, &[3], &x), array(DType::F32, &[3], &v), array(DType::I64, &[3], &index)];
    let run = |add| eval(&Prim::Scatter { add }, &operands, DType::F32, &[3]).map(floats);
    assert_eq!(run(false), Ok(vec![0.0, 2.0, 4.0]));
    assert_eq!(run(true), Ok(vec![0.0, 3.0, 4.0]));
    let operands = [operands[0], operands[2], operands[1]];
    let got = eval(&Prim::ScatterAddAlong { axis: 0 }, &operands, DType::F32, &[3]).map(floats);
    assert_eq!(got, Ok(vec![0.0, 3.0, 4.0]));
}

#[test]
fn sorting_is_stable_with_nan_last() {
    let nan = f32::NAN;
    let x = [2.0, nan, -1.0, 2.0, 0.0, -0.0];
    let order = |descending| {
        let bytes = f32s(&x);
        let a = array(DType::F32, &[6], &bytes);
        ints(eval(&Prim::ArgSort { axis: 0, descending }, &[a], DType::I64, &[6]).unwrap())
    };
    assert_eq!(order(false), [2, 4, 5, 0, 3, 1]);
    assert_eq!(order(true), [0, 3, 4, 5, 2, 1]);
    let got =
        run_f32(Prim::Sort { axis: 0, descending: false }, &[(&[3, 2], &[3.0, 1.0, 1.0, 2.0, 2.0, 0.0])], &[3, 2]);
    assert_eq!(got, [1.0, 0.0, 2.0, 1.0, 3.0, 2.0]);
}

#[test]
fn the_first_extreme_wins() {
    let arg = |largest, xs: &[f32]| {
        let bytes = f32s(xs);
        let shape = [1, xs.len() as u64];
        let a = array(DType::F32, &shape, &bytes);
        ints(eval(&Prim::ArgReduce { largest, axis: 1 }, &[a], DType::I64, &[1]).unwrap())[0]
    };
    assert_eq!(arg(true, &[1.0, 3.0, 3.0]), 1);
    assert_eq!(arg(false, &[1.0, 3.0, 1.0]), 0);
    assert_eq!(arg(true, &[1.0, f32::NAN, 9.0, f32::NAN]), 1);
    assert_eq!(arg(false, &[1.0, f32::NAN, -9.0]), 1);
}

/// Known answers of Random123.
#[test]
fn philox_known_answers() {
    assert_eq!(philox([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
    assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
    let counter = [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344];
    assert_eq!(philox(counter, [0xa4093822, 0x299f31d0]), [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
}

#[test]
fn random_bits_and_their_program_agree() {
    let key = i64s(&[-3, 1 << 40 | 5]);
    let got = ints(eval(&Prim::RandomBits, &[array(DType::I64, &[2], &key)], DType::I64, &[101]).unwrap());
    let zero = ints(eval(&Prim::RandomBits, &[array(DType::I64, &[2], &[0; 16])], DType::I64, &[2]).unwrap());
    assert_eq!(zero, [0x6627e8d5, 0xe169c58d]);
    // Keys one below the other give what each gives alone.
    let keys = i64s(&[-3, 1 << 40 | 5, 0, 0, -3, 1 << 40 | 5]);
    let many = ints(eval(&Prim::RandomBits, &[array(DType::I64, &[3, 2], &keys)], DType::I64, &[3, 101]).unwrap());
    assert_eq!((&many[..101], &many[101..103], &many[202..]), (&got[..], &zero[..], &got[..]));
    let program = random_bits_program();
    program.verify().unwrap();
    let args = [Lane::I64((0..101).collect()), Lane::I64(vec![-3]), Lane::I64(vec![1 << 40 | 5])];
    assert_eq!(scalar_eval::eval(&program, &args, 101), Lane::I64(got));
}

#[test]
fn maps_and_casts_over_blocks() {
    let n = 20000;
    let x = counting(n);
    let got = run_f32(Prim::Map(tessera_ops::map::MapOp::square), &[(&[n as u64], &x)], &[n as u64]);
    assert!(got.iter().zip(&x).all(|(y, x)| *y == x * x));
    let bytes = f32s(&x);
    let got = eval(&Prim::Cast, &[array(DType::F32, &[n as u64], &bytes)], DType::I64, &[n as u64]).unwrap();
    assert_eq!(ints(got), (0..n as i64).collect::<Vec<_>>());
    let iota = ints(eval(&Prim::Iota { axis: 1 }, &[], DType::I64, &[2, 3, 2]).unwrap());
    assert_eq!(iota, [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]);
    let full = eval(&Prim::Full { value: Scalar::F(1.5) }, &[], DType::F32, &[2]).unwrap();
    assert_eq!(floats(full), [1.5, 1.5]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let f = |shape| TypeRef { dtype: DType::F32, shape };
    let refused = |prim: Prim, x: &[TypeRef], result| shape_check(&prim, x, result).unwrap_err();
    let dot = Prim::dot(DType::F32, Steps::All);
    assert_eq!(refused(dot, &[f(&[2, 3]), f(&[4, 2])], f(&[2, 2])), "the contracted sizes are 3 and 4");
    let map = Prim::Map(tessera_ops::map::MapOp::shl);
    assert_eq!(refused(map, &[f(&[2]), f(&[2])], f(&[2])), "`shl` does not take f32");
    let slice = Prim::Slice { start: vec![1], step: vec![2] };
    assert_eq!(refused(slice, &[f(&[4])], f(&[3])), "positions 1 to 5 leave dim 0 of size 4");
    assert_eq!(refused(Prim::Reshape, &[f(&[4])], f(&[3])), "f32[4] has other elements than f32[3]");
    let bad = eval(&Prim::Reshape, &[array(DType::F32, &[2], &[0; 4])], DType::F32, &[2]);
    assert_eq!(bad.unwrap_err().message, "operand 0 has 4 bytes, which its type does not fit");
}
