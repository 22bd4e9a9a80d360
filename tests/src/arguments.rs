//! Calls of every operator of the table, at sizes that divide nothing.
//!
//! Most arguments follow from the kinds and names of the parameters; what has to fit together
//! (products, convolutions, attention) is written out. A new row that needs neither is covered
//! without a change here, and one for which no call makes sense is told by the law.

use crate::random::Fill;
use crate::random_graph::{Builder, elems};
use tessera_base::DType;
use tessera_ops::prim::Scalar;
use tessera_ops::surface::{Arg, Id, OpDef, Param, ParamKind};

/// Nothing, almost nothing, and what lies around vectors and register tiles.
pub const SIZES: &[u64] = &[0, 1, 2, 3, 5, 7, 15, 16, 17, 31, 33, 63, 65, 127, 129];
/// Elements of one operand, at most.
const ELEMS_MAX: u64 = 9000;
/// Steps of a product, at most.
const STEPS_MAX: u64 = 120_000;

/// The arguments of one call under construction.
pub struct Call<'b> {
    pub b: &'b mut Builder,
    pub dtype: DType,
    /// What tensors are filled with.
    pub fill: Fill,
    /// The shape that operands have in common.
    shape: Vec<u64>,
    /// A size that shall occur.
    size: u64,
    /// What other sizes are picked from.
    sizes: &'static [u64],
}

impl<'b> Call<'b> {
    /// For calls of an operator whose elements are `dtype`; the size occurs in most shapes.
    pub fn new(b: &'b mut Builder, dtype: DType, size: u64) -> Call<'b> {
        Call::among(b, dtype, size, SIZES)
    }

    /// The same with other sizes to pick from; the first of them is not picked everywhere.
    pub fn among(b: &'b mut Builder, dtype: DType, size: u64, sizes: &'static [u64]) -> Call<'b> {
        let fill = b.random.pick(&[Fill::Small, Fill::Ordinary, Fill::Ordinary, Fill::Special]);
        let mut call = Call { b, dtype, fill, shape: vec![], size, sizes };
        let rank = call.b.random.pick(&[1, 1, 2, 2, 2, 3]);
        let at = call.b.random.below(rank);
        call.shape = (0..rank).map(|d| if d == at { size } else { call.b.random.pick(sizes) }).collect();
        call.shape = call.bounded(call.shape.clone(), at);
        call
    }

    /// The shape with dims other than `keep` made smaller until it is not too large.
    fn bounded(&mut self, mut shape: Vec<u64>, keep: usize) -> Vec<u64> {
        while shape.iter().product::<u64>() > ELEMS_MAX {
            let other = (0..shape.len()).filter(|&d| d != keep).max_by_key(|&d| shape[d]).unwrap_or(0);
            shape[other] = self.b.random.pick(&[1, 2, 3, 5, 7]);
        }
        shape
    }

    fn any_size(&mut self) -> u64 {
        self.b.random.pick(&self.sizes[1..])
    }

    fn of(&mut self, shape: &[u64], dtype: DType) -> Id {
        let bytes = self.b.random.elements(dtype, elems(shape), self.fill);
        Id(self.b.input_of(shape, dtype, bytes, false).0)
    }

    fn tensor(&mut self, shape: &[u64]) -> Arg {
        Arg::Tensor(self.of(shape, self.dtype))
    }

    /// Positions in `0..n`; now and then the same counted from the end.
    fn positions(&mut self, shape: &[u64], n: u64, negative: bool) -> Arg {
        let one = |b: &mut Builder| {
            let at = b.random.below(n as usize) as i64;
            if negative && b.random.once_in(3) { at - n as i64 } else { at }
        };
        let bytes = (0..elems(shape)).flat_map(|_| one(self.b).to_le_bytes()).collect();
        Arg::Tensor(Id(self.b.input_of(shape, DType::I64, bytes, false).0))
    }

    /// A key that the program knows nothing about.
    fn key(&mut self) -> Arg {
        let bytes = [self.b.random.word() >> 32, self.b.random.word() >> 32].map(u64::to_le_bytes).concat();
        Arg::Tensor(Id(self.b.input_of(&[2], DType::I64, bytes, false).0))
    }

    /// Three sizes of a product, one of them the call's.
    fn product(&mut self) -> [u64; 3] {
        let mut mkn = [self.any_size(), self.any_size(), self.any_size()];
        let at = self.b.random.below(3);
        mkn[at] = self.size;
        while mkn.iter().product::<u64>() > STEPS_MAX {
            let other = (0..3).filter(|&d| d != at).max_by_key(|&d| mkn[d]).unwrap_or(0);
            mkn[other] = self.b.random.pick(&[1, 2, 3, 5]);
        }
        mkn
    }

    fn rank(&self) -> i64 {
        self.shape.len() as i64
    }

    /// A dim of the common shape, sometimes counted from the end.
    fn axis(&mut self) -> i64 {
        let axis = self.b.random.below(self.shape.len()) as i64;
        if self.b.random.once_in(2) { axis } else { axis - self.rank() }
    }

    fn dim(&self, axis: i64) -> u64 {
        self.shape[axis.rem_euclid(self.rank()) as usize]
    }

    /// The arguments of a row.
    pub fn arguments(&mut self, def: &OpDef) -> Vec<Arg> {
        if let Some(args) = self.written_out(def.name) {
            return args;
        }
        def.params.iter().map(|p| self.argument(p)).collect()
    }

    /// The common shape, or one that broadcasts to it.
    fn broadcasting(&mut self) -> Vec<u64> {
        let mut shape = self.shape.clone();
        match self.b.random.below(6) {
            0 => shape = shape.split_off(1),
            1 => shape.iter_mut().for_each(|n| *n = if self.b.random.once_in(2) { 1 } else { *n }),
            _ => {}
        }
        shape
    }

    fn argument(&mut self, p: &Param) -> Arg {
        if let Some(default) = p.default.arg()
            && self.b.random.once_in(2)
        {
            return default;
        }
        let shape = self.shape.clone();
        let sizes = || shape.iter().map(|&n| n as i64).collect::<Vec<_>>();
        match p.kind {
            ParamKind::Tensor => self.tensor(&shape),
            ParamKind::Operand => match self.b.random.below(8) {
                0 => Arg::Scalar(Scalar::I(self.b.random.below(4) as i64)),
                1 => Arg::Scalar(Scalar::F(0.75)),
                _ => {
                    let shape = self.broadcasting();
                    let dtype = if p.name == "condition" { DType::Bool } else { self.dtype };
                    Arg::Tensor(self.of(&shape, dtype))
                }
            },
            ParamKind::Tensors => Arg::Tensors([0, 1].map(|_| self.of(&shape, self.dtype)).to_vec()),
            ParamKind::Axis => Arg::Int(self.axis()),
            ParamKind::Axes => match self.b.random.below(3) {
                0 => Arg::Int(self.axis()),
                1 => Arg::Ints((0..self.rank()).rev().collect()),
                _ => Arg::Ints(vec![self.b.random.below(shape.len()) as i64]),
            },
            ParamKind::Shape => Arg::Ints(sizes()),
            ParamKind::Int => Arg::Int(1 + self.b.random.below(4) as i64),
            ParamKind::Number => Arg::Int(self.b.random.below(9) as i64 - 2),
            ParamKind::IntOrTensor => Arg::Int(self.size.max(1) as i64),
            ParamKind::Ints | ParamKind::Pairs => Arg::Int(1 + self.b.random.below(2) as i64),
            ParamKind::Float => Arg::Float(0.5),
            ParamKind::Bool => Arg::Bool(self.b.random.once_in(2)),
            ParamKind::DType => Arg::DType(self.b.random.pick(&DType::ALL)),
            ParamKind::Str => p.default.arg().unwrap_or(Arg::None),
            ParamKind::Nested => Arg::Nested {
                shape: vec![2, 2],
                dtype: DType::F32,
                values: vec![Scalar::F(0.5), Scalar::F(-1.0), Scalar::F(2.0), Scalar::F(3.5)],
            },
            ParamKind::Key => self.key(),
        }
    }

    /// Rows whose arguments have to fit together.
    fn written_out(&mut self, name: &str) -> Option<Vec<Arg>> {
        let shape = self.shape.clone();
        let axis = self.axis();
        let n = self.dim(axis);
        Some(match name {
            "matmul" => self.matmul(),
            "dot" => vec![self.tensor(&[n]), self.tensor(&[n])],
            "outer" => vec![self.tensor(&[n]), self.tensor(&[17])],
            "attention" => self.attention(),
            "einsum" => self.einsum(),
            "tensordot" => {
                let [m, k, n] = self.product();
                vec![self.tensor(&[m, k]), self.tensor(&[k, n]), Arg::Int(1)]
            }
            "conv1d" => self.convolution(1),
            "conv2d" => self.convolution(2),
            "conv3d" => self.convolution(3),
            "conv_transpose2d" => self.transposed(),
            "max_pool" | "avg_pool" => self.pool(),
            "spectral_conv" => self.spectral(),
            "layer_norm" | "rms_norm" => {
                let last = &shape[shape.len() - 1..];
                let x = self.tensor(&shape);
                vec![x, Arg::Ints(vec![last[0] as i64]), self.tensor(last)]
            }
            "batch_norm" => {
                let [c, n] = [self.size, self.any_size()];
                let x = self.tensor(&[3, c, n]);
                let mean = self.tensor(&[c]);
                // Variances are positive.
                let wide: Vec<u8> = (0..c).flat_map(|_| (1.0 + self.b.random.below(9) as f64).to_le_bytes()).collect();
                let bytes = tessera_ops::convert::cast(DType::F64, self.dtype, &wide);
                let spread = Id(self.b.input_of(&[c], self.dtype, bytes, false).0);
                vec![x, mean, Arg::Tensor(spread)]
            }
            "embedding" => {
                let [rows, width] = [self.any_size(), self.any_size()];
                let ids = self.positions(&[self.size], rows, true);
                vec![ids, self.tensor(&[rows, width])]
            }
            "take" => {
                let count = if n > 0 { 7 } else { 0 };
                vec![self.tensor(&shape), self.positions(&[count], n.max(1), true), Arg::Int(axis)]
            }
            "one_hot" => vec![self.positions(&shape, 5, false), Arg::Int(5), Arg::DType(self.dtype)],
            "gather" if n > 0 => vec![self.tensor(&shape), Arg::Int(axis), self.positions(&shape, n, true)],
            "take_along_axis" if n > 0 => vec![self.tensor(&shape), self.positions(&shape, n, true), Arg::Int(axis)],
            "scatter_add" if n > 0 => {
                let x = self.tensor(&shape);
                vec![x, Arg::Int(axis), self.positions(&shape, n, true), self.tensor(&shape)]
            }
            "moe_combine" => {
                let [experts, room, width] =
                    [self.any_size().clamp(1, 7), self.any_size().min(17), self.any_size().min(33)];
                let tokens = self.size.min(33);
                let blocks = self.tensor(&[experts, room, width]);
                vec![blocks, self.tensor(&[tokens, experts]), Arg::Int(experts.min(2) as i64)]
            }
            "cross_entropy" => {
                let [rows, classes] = [self.any_size().min(33), self.size.max(1)];
                vec![self.tensor(&[rows, classes]), self.positions(&[rows], classes, false)]
            }
            "rope" => {
                let width = 2 * self.any_size().min(33);
                vec![self.tensor(&[self.size, width])]
            }
            "split" => {
                let parts = (1..=3).rev().find(|p| n.is_multiple_of(*p)).unwrap_or(1);
                vec![self.tensor(&shape), Arg::Int(parts as i64), Arg::Int(axis)]
            }
            "slice" => {
                let [lo, hi] = [0, 1].map(|d: usize| shape.iter().map(|&n| (n as i64 * d as i64) - d as i64).collect());
                let steps = vec![1 + self.b.random.below(3) as i64; shape.len()];
                vec![self.tensor(&shape), Arg::Ints(lo), Arg::Ints(hi), Arg::Ints(steps)]
            }
            "broadcast_to" | "expand" => {
                let to: Vec<i64> = [3].into_iter().chain(shape.iter().map(|&n| n as i64)).collect();
                vec![self.tensor(&shape), Arg::Ints(to)]
            }
            "squeeze" => vec![self.tensor(&[&[1], &shape[..]].concat()), Arg::Int(0)],
            "permute" => vec![self.tensor(&shape), Arg::Ints((0..self.rank()).rev().collect())],
            "topk" => vec![self.tensor(&shape), Arg::Int(n.min(3) as i64), Arg::Int(axis)],
            "cholesky" => {
                let n = self.size.min(90);
                vec![self.matrix(&[n, n], n as f64 + 1.0)]
            }
            "solve" | "solve_triangular" => {
                let (n, width) = (self.size.min(60), self.any_size().min(17));
                let a = self.matrix(&[2, n, n], n as f64 + 1.0);
                vec![a, self.matrix(&[2, n, width], 0.0)]
            }
            "eigh" | "eigvalsh" | "eig" | "eigvals" => {
                let n = self.size.min(40);
                vec![self.matrix(&[2, n, n], 0.0)]
            }
            // Pivots that no rounding decides.
            "lu_factor" if self.b.random.once_in(2) => {
                let n = self.size.min(40);
                vec![self.matrix(&[2, n, n], n as f64 + 1.0)]
            }
            "lu_factor" | "qr" | "svd" | "svdvals" => {
                let (m, n) = (self.size.min(40), self.any_size().min(40));
                let shape = if self.b.random.once_in(2) { [2, m, n] } else { [2, n, m] };
                vec![self.matrix(&shape, 0.0)]
            }
            "complex" => vec![self.tensor(&shape), self.tensor(&shape)],
            "arange" => vec![Arg::Int(self.size as i64), Arg::None, Arg::None, Arg::DType(self.dtype)],
            "eye" | "tri" => {
                let m = self.any_size() as i64;
                vec![Arg::Int(self.size as i64), Arg::Int(m), Arg::Int(1), Arg::DType(self.dtype)]
            }
            "searchsorted" => {
                let side = self.b.random.pick(&["left", "right"]);
                vec![self.tensor(&[n]), self.tensor(&shape), Arg::Str(side.into())]
            }
            "bincount" => {
                let x = self.positions(&shape, 7, false);
                vec![x, Arg::Int(7), if self.b.random.once_in(2) { Arg::None } else { self.tensor(&shape) }]
            }
            "nonzero" | "argwhere" => {
                let size = Arg::Int(self.any_size().min(40) as i64);
                vec![self.tensor(&shape), size, Arg::Int(-(self.b.random.below(2) as i64))]
            }
            "unique" => {
                // None may be there, so that there may be no smallest one.
                let size = if shape.contains(&0) { 0 } else { self.any_size().min(40) as i64 };
                let [a, b, c] = [0; 3].map(|_| Arg::Bool(self.b.random.once_in(2)));
                vec![self.tensor(&shape), Arg::Int(size), a, b, c]
            }
            "count_unique" => vec![self.tensor(&shape), Arg::None],
            "segment_sum" | "segment_mean" | "segment_max" | "segment_min" if !shape.is_empty() => {
                let ids = self.positions(&shape[..1], 7, false);
                vec![self.tensor(&shape), ids, Arg::Int(7)]
            }
            "quantile" => vec![self.tensor(&shape), Arg::Scalar(Scalar::F(0.3)), Arg::Int(axis)],
            "percentile" => vec![self.tensor(&shape), Arg::Scalar(Scalar::F(70.0)), Arg::Int(axis)],
            "random.randint" => {
                let low = Arg::Scalar(Scalar::I(-3));
                vec![self.key(), Arg::Ints(vec![self.size as i64]), low, Arg::Scalar(Scalar::I(9))]
            }
            "random.split" => vec![self.key(), Arg::Int(1 + self.b.random.below(5) as i64)],
            "random.fold_in" => vec![self.key(), Arg::Scalar(Scalar::I(self.size as i64))],
            "random.bernoulli" => {
                vec![self.key(), Arg::Scalar(Scalar::F(0.3)), Arg::Ints(vec![self.size as i64])]
            }
            "random.uniform" => {
                let sizes = Arg::Ints(vec![self.size as i64]);
                vec![self.key(), sizes, Arg::Float(-1.0), Arg::Float(2.0), Arg::DType(self.dtype)]
            }
            "random.normal" => vec![self.key(), Arg::Ints(vec![self.size as i64]), Arg::DType(self.dtype)],
            "tile" => {
                let mut reps = vec![1; shape.len()];
                reps[axis.rem_euclid(self.rank()) as usize] = 3;
                vec![self.tensor(&shape), Arg::Ints(reps)]
            }
            _ => return None,
        })
    }

    /// Finite matrices of numbers from -1 to 1, of ints and bool 0 and 1, with more on their diagonals.
    fn matrix(&mut self, shape: &[u64], more: f64) -> Arg {
        let [.., m, n] = shape else { return Arg::None };
        let at = |i: u64| if n == m && (i % (m * n)).is_multiple_of(n + 1) { more } else { 0.0 };
        // Any number but 0 is true.
        let span = if self.dtype == DType::Bool && more > 0.0 { 0.0 } else { 2.0 };
        let number = |b: &mut Builder| span * ((b.random.word() >> 11) as f64 / (1u64 << 53) as f64 - 0.5);
        let wide: Vec<u8> = (0..elems(shape) as u64).flat_map(|i| (number(self.b) + at(i)).to_le_bytes()).collect();
        let bytes = tessera_ops::convert::cast(DType::F64, self.dtype, &wide);
        Arg::Tensor(Id(self.b.input_of(shape, self.dtype, bytes, false).0))
    }

    fn matmul(&mut self) -> Vec<Arg> {
        let [m, k, n] = self.product();
        match self.b.random.below(5) {
            0 => vec![self.tensor(&[k]), self.tensor(&[k, n])],
            1 => vec![self.tensor(&[m, k]), self.tensor(&[k])],
            2 => vec![self.tensor(&[2, m, k]), self.tensor(&[2, k, n])],
            3 => {
                let y = self.of(&[n, k], self.dtype);
                let y = crate::operators::call(self.b, "transpose", &[Arg::Tensor(y)]);
                vec![self.tensor(&[m, k]), Arg::Tensor(y)]
            }
            _ => vec![self.tensor(&[m, k]), self.tensor(&[k, n])],
        }
    }

    fn attention(&mut self) -> Vec<Arg> {
        let [s, d, t] = self.product();
        let (d, t) = (d.clamp(1, 33), t.max(1));
        let e = self.any_size().min(17);
        let [q, k, v] = [[2, s, d], [2, t, d], [2, t, e]].map(|shape| self.tensor(&shape));
        let softcap = if self.b.random.once_in(4) { Arg::Float(2.0) } else { Arg::None };
        vec![q, k, v, Arg::Bool(self.b.random.once_in(2)), Arg::None, Arg::None, softcap]
    }

    fn einsum(&mut self) -> Vec<Arg> {
        let [m, k, n] = self.product();
        let (equation, shapes): (&str, Vec<Vec<u64>>) = match self.b.random.below(5) {
            0 => ("ij,kj->ik", vec![vec![m, k], vec![n, k]]),
            1 => ("bij,bjk->bik", vec![vec![2, m, k], vec![2, k, n]]),
            2 => ("ij,ij->j", vec![vec![m, k], vec![m, k]]),
            3 => ("ij->ji", vec![vec![m, k]]),
            _ => ("i,j->ij", vec![vec![m], vec![n]]),
        };
        let operands = shapes.iter().map(|s| self.of(s, self.dtype)).collect();
        vec![Arg::Str(equation.into()), Arg::Tensors(operands)]
    }

    /// Sizes of an image whose last dim is the call's.
    fn image(&mut self, dims: usize) -> Vec<u64> {
        let mut sizes: Vec<u64> = (0..dims).map(|_| self.b.random.pick(&[3, 5, 7, 15])).collect();
        sizes[dims - 1] = self.size.max(3);
        sizes
    }

    fn convolution(&mut self, dims: usize) -> Vec<Arg> {
        let groups = self.b.random.pick(&[1, 1, 2]);
        let (inside, outside) = (self.b.random.pick(&[1, 3]), self.b.random.pick(&[1, 2, 5]));
        let x = [vec![self.b.random.pick(&[1, 2]), groups * inside], self.image(dims)].concat();
        let kernel: Vec<u64> = (0..dims).map(|_| self.b.random.pick(&[1, 2, 3])).collect();
        let w = [vec![groups * outside, inside], kernel].concat();
        let (stride, padding) = (self.b.random.pick(&[1, 1, 2]), self.b.random.pick(&[0, 1]));
        let (x, w, bias) = (self.tensor(&x), self.tensor(&w), self.tensor(&[groups * outside]));
        vec![x, w, bias, Arg::Int(stride), Arg::Int(padding), Arg::Int(1), Arg::Int(groups as i64)]
    }

    fn transposed(&mut self) -> Vec<Arg> {
        let x = [vec![2, 3], self.image(2)].concat();
        let (x, w) = (self.tensor(&x), self.tensor(&[3, 2, 3, 2]));
        vec![x, w, Arg::None, Arg::Int(self.b.random.pick(&[1, 2]))]
    }

    fn pool(&mut self) -> Vec<Arg> {
        let x = [vec![2, 3], self.image(2)].concat();
        vec![self.tensor(&x), Arg::Int(self.b.random.pick(&[2, 3])), Arg::None, Arg::Int(self.b.random.pick(&[0, 1]))]
    }

    fn spectral(&mut self) -> Vec<Arg> {
        let n = self.size.max(2);
        let (inside, outside, modes) = (3, 2, (n / 2 + 1).min(5));
        let x = self.tensor(&[2, inside, n]);
        vec![x, Arg::Tensor(self.of(&[inside, outside, modes], DType::C64))]
    }
}
