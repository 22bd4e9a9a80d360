//! Convolutions with many output channels, whose windows are read in the image: every stride, dilation
//! and padding, rows shorter and longer than a register tile, channels around the vector.

use tessera_base::DType;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Scalar, Steps};
use tessera_tests::laws::hold;
use tessera_tests::random::{Fill, Random};
use tessera_tests::random_graph::{Builder, Case, elems};

/// One direction of the image.
#[derive(Clone, Copy)]
struct Dim {
    size: u64,
    kernel: u64,
    stride: u64,
    dilation: u64,
    /// Zeros before and after.
    pad: [u64; 2],
}

impl Dim {
    fn random(random: &mut Random) -> Dim {
        let kernel = random.pick(&[1, 2, 3, 3, 5, 7]);
        let dilation = random.pick(&[1, 1, 1, 2, 3]);
        let size = random.pick(&[4, 5, 7, 8, 13, 14, 16, 17, 28, 30, 33]).max((kernel - 1) * dilation + 1);
        let pad = random.pick(&[[0, 0], [0, 0], [1, 1], [3, 3], [2, 0], [0, 1]]);
        Dim { size, kernel, stride: random.pick(&[1, 1, 2, 2, 3]), dilation, pad }
    }

    fn windows(&self) -> u64 {
        (self.size + self.pad[0] + self.pad[1] - (self.kernel - 1) * self.dilation - 1) / self.stride + 1
    }
}

/// Input `[n, groups·inside, d…]`, weights `[groups, out, depth]`, a bias and what follows it.
fn convolution(seed: u64, dtype: DType, [n, groups, inside, out]: [u64; 4], dims: &[Dim]) -> Case {
    let mut b = Builder::plain(seed);
    let data = |b: &mut Builder, shape: &[u64], dtype: DType| {
        let fill = b.random.pick(&[Fill::Small, Fill::Ordinary, Fill::Ordinary, Fill::Wide, Fill::Special]);
        let bytes = b.random.elements(dtype, elems(shape), fill);
        b.input_of(shape, dtype, bytes, false)
    };
    let count = dims.len();
    let of = |f: &dyn Fn(&Dim) -> u64| dims.iter().map(f).collect::<Vec<u64>>();
    let mut shape = [&[n, groups, inside], &of(&|d| d.size)[..]].concat();
    let mut x = data(&mut b, &shape, dtype);
    if dims.iter().any(|d| d.pad != [0, 0]) {
        let sides = |i: usize| [&[0; 3], &of(&|d| d.pad[i])[..]].concat();
        let (low, high) = (sides(0), sides(1));
        for (size, (l, h)) in shape.iter_mut().zip(low.iter().zip(&high)) {
            *size += l + h;
        }
        // Also padding that is not zero.
        let fill = if b.random.once_in(4) { 1.5 } else { 0.0 };
        let fill = b.push(Prim::Full { value: Scalar::F(fill) }, &[], &[], dtype);
        x = b.push(Prim::Pad { low, high }, &[x, fill], &shape, dtype);
    }
    let (o, k) = (of(&Dim::windows), of(&|d| d.kernel));
    shape = [&shape[..3], &o[..], &k[..]].concat();
    let windows = Prim::Windows { stride: of(&|d| d.stride), dilation: of(&|d| d.dilation) };
    x = b.push(windows, &[x], &shape, dtype);
    let perm: Vec<usize> = (0..3).chain(3 + count..3 + 2 * count).chain(3..3 + count).collect();
    shape = perm.iter().map(|&p| shape[p]).collect();
    x = b.push(Prim::Transpose { perm }, &[x], &shape, dtype);
    let (places, depth) = (elems(&o) as u64, inside * elems(&k) as u64);
    x = b.push(Prim::Reshape, &[x], &[n, groups, depth, places], dtype);
    let w = data(&mut b, &[groups, out, depth], dtype);
    let w = b.push(Prim::Broadcast { dims: vec![1, 2, 3] }, &[w], &[n, groups, out, depth], dtype);
    let accum = dtype.accumulator();
    let y = b.push(Prim::dot(accum, Steps::All), &[w, x], &[n, groups, out, places], dtype);
    let whole = [&[n, groups * out], &o[..]].concat();
    let mut y = b.push(Prim::Reshape, &[y], &whole, dtype);
    if b.random.once_in(2) {
        let bias = data(&mut b, &[groups * out], dtype);
        let bias = b.push(Prim::Broadcast { dims: vec![1] }, &[bias], &whole, dtype);
        y = b.push(Prim::Map(MapOp::add), &[y, bias], &whole, dtype);
        y = b.push(Prim::Map(MapOp::relu), &[y], &whole, dtype);
    }
    b.graph.outputs = vec![y];
    b.graph.name = format!("convolution_{seed}");
    Case { graph: b.graph, inputs: b.data }
}

#[test]
fn strides_dilations_and_padding() {
    const STEPS: u64 = 3_000_000;
    let mut random = Random::new(23);
    let mut cases = vec![];
    while cases.len() < 160 {
        let dims: Vec<Dim> = (0..random.pick(&[1, 2, 2, 2, 2, 2, 3])).map(|_| Dim::random(&mut random)).collect();
        let (n, groups) = (random.pick(&[1, 1, 2]), random.pick(&[1, 1, 1, 2]));
        let (inside, out) = (random.pick(&[3, 8, 16, 33, 64]), random.pick(&[16, 16, 17, 31, 32, 48, 64]));
        let depth = inside * dims.iter().map(|d| d.kernel).product::<u64>();
        let steps = n * groups * out * depth * dims.iter().map(Dim::windows).product::<u64>();
        if depth < 64 || steps > STEPS {
            continue;
        }
        let dtype = random.pick(&[DType::F32, DType::F32, DType::F32, DType::F64, DType::Bf16, DType::F16]);
        cases.push(convolution(cases.len() as u64, dtype, [n, groups, inside, out], &dims));
    }
    hold("convolutions", cases);
}
