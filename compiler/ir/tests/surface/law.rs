//! The law of the table: for every row and many calls, the rule on symbolic sizes, the rule on
//! constants and the expansion agree, and nothing panics.

use crate::record::Recorder;
use std::collections::BTreeSet;
use tessera_base::{Code, DType, Facts, Size, SizeVar, TensorType};
use tessera_ops::prim::Scalar;
use tessera_ops::surface::*;

/// A small generator of pseudo-random numbers (xorshift64*).
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n.max(1) as u64) as usize
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// What the arguments of one call have in common, so that calls often make sense.
struct Call {
    b: Recorder,
    shape: Vec<u64>,
    dtype: DType,
}

const DTYPES: &[DType] = &[
    DType::F32,
    DType::F32,
    DType::F32,
    DType::Bf16,
    DType::F16,
    DType::F64,
    DType::F8E4M3,
    DType::I64,
    DType::I32,
    DType::U8,
    DType::Bool,
    DType::C64,
];

/// Equations and other strings that some row takes.
const WORDS: &[&str] = &[
    "none",
    "tanh",
    "mean",
    "sum",
    "ij,jk->ik",
    "ij,kj->ik",
    "...i->...",
    "ii->i",
    "i,i->",
    "ab,ab->b",
    "ij,ij,ij->j",
    "a,b->ba",
    "bij,bjk->bik",
    "q4_1",
    "?",
];

impl Call {
    fn new(rng: &mut Rng) -> Call {
        let rank = rng.below(4);
        let shape = (0..rank).map(|_| rng.pick(&[1, 2, 2, 3, 3, 5])).collect();
        Call { b: Recorder::default(), shape, dtype: rng.pick(DTYPES) }
    }

    /// The common shape, a part of it, or a square or channel-like one.
    fn some_shape(&self, rng: &mut Rng) -> Vec<u64> {
        let mut shape = self.shape.clone();
        match rng.below(10) {
            0 => shape.iter_mut().for_each(|n| *n = if rng.one_in(2) { 1 } else { *n }),
            1 => drop(shape.drain(..rng.below(self.shape.len() + 1))),
            2 => shape.truncate(rng.below(self.shape.len() + 1)),
            3 => shape.reverse(),
            4 => shape = vec![rng.pick(&[2, 3]), 3],
            5 => shape = shape.get(1).map(|n| vec![*n]).unwrap_or_default(),
            _ => {}
        }
        shape
    }

    fn tensor(&mut self, rng: &mut Rng, name: &str) -> Id {
        let mut shape = self.some_shape(rng);
        let mut dtype = if rng.one_in(8) { rng.pick(DTYPES) } else { self.dtype };
        if ["ids", "index", "indices", "targets"].contains(&name) && !rng.one_in(4) {
            dtype = rng.pick(&[DType::I64, DType::I32]);
            if name == "targets" && rng.one_in(2) {
                shape = self.shape.clone();
                shape.pop();
            }
        }
        if name == "gates" && !rng.one_in(4) {
            // One row for each token, a column for each expert.
            let of = |i: usize| self.shape.get(i).copied().unwrap_or(2);
            (shape, dtype) = (if self.shape.len() == 3 { vec![2, of(0)] } else { vec![of(0), 3] }, DType::F32);
        }
        if name == "weights" && !rng.one_in(4) {
            (shape, dtype) = (vec![self.shape.get(1).copied().unwrap_or(2), 2, 1], DType::C64);
        }
        self.b.input(shape, dtype)
    }

    fn key(&mut self) -> Arg {
        Arg::Tensor(self.b.input(vec![2], DType::I64))
    }

    fn ints(&self, rng: &mut Rng) -> Vec<i64> {
        let rank = self.shape.len() as i64;
        match rng.below(6) {
            0 => vec![0; self.shape.len()],
            1 => self.shape.iter().map(|&n| n as i64).collect(),
            2 => (0..rank).rev().collect(),
            3 => (0..2 * rank).map(|_| rng.below(3) as i64).collect(),
            4 => vec![1, 0],
            _ => (0..rng.below(3)).map(|_| rng.below(4) as i64 - 1).collect(),
        }
    }

    fn shape_arg(&self, rng: &mut Rng, name: &str) -> Arg {
        let sizes: Vec<i64> = self.shape.iter().map(|&n| n as i64).collect();
        let count: i64 = sizes.iter().product();
        match (name, rng.below(6)) {
            ("normalized_shape", 0..5) => Arg::Ints(sizes[sizes.len() - sizes.len().min(rng.below(2) + 1)..].to_vec()),
            (_, 0) => Arg::Ints(vec![count]),
            (_, 1) => Arg::Ints(vec![-1]),
            (_, 2) => Arg::Ints(sizes.iter().rev().copied().collect()),
            (_, 3) => Arg::Ints([&[2], &sizes[..]].concat()),
            (_, 4) => Arg::Int(rng.below(4) as i64),
            _ => Arg::Ints(sizes),
        }
    }

    fn argument(&mut self, rng: &mut Rng, p: &Param) -> Arg {
        if let Some(default) = p.default.arg()
            && rng.one_in(2)
        {
            return default;
        }
        let rank = self.shape.len() as i64;
        match p.kind {
            ParamKind::Tensor => Arg::Tensor(self.tensor(rng, p.name)),
            ParamKind::Operand => match rng.below(8) {
                0 => Arg::Scalar(Scalar::I(rng.below(5) as i64 - 1)),
                1 => Arg::Scalar(Scalar::F(0.25)),
                2 => Arg::Bool(true),
                3 => Arg::Dynamic(self.b.input(vec![], rng.pick(&[DType::F64, DType::I64, DType::Bool]))),
                _ => Arg::Tensor(self.tensor(rng, p.name)),
            },
            ParamKind::Tensors => {
                let first = self.tensor(rng, p.name);
                let (shape, dtype) = self.b.nodes[first.0 as usize].clone();
                let more = (0..rng.below(3))
                    .map(|_| if rng.one_in(3) { self.tensor(rng, p.name) } else { self.b.input(shape.clone(), dtype) });
                Arg::Tensors([first].into_iter().chain(more.collect::<Vec<_>>()).collect())
            }
            ParamKind::Axis => Arg::Int(rng.below(2 * rank as usize + 2) as i64 - rank - 1),
            ParamKind::Axes => match rng.below(3) {
                0 => Arg::Int(rng.below(rank as usize + 1) as i64),
                1 => Arg::Ints((0..rank).rev().collect()),
                _ => Arg::Ints(self.ints(rng)),
            },
            ParamKind::Shape => self.shape_arg(rng, p.name),
            ParamKind::Int => Arg::Int(rng.below(6) as i64 - 1),
            ParamKind::Number => {
                if rng.one_in(2) {
                    Arg::Int(rng.below(9) as i64 - 2)
                } else {
                    Arg::Float(rng.below(9) as f64 / 2.0 - 1.0)
                }
            }
            ParamKind::IntOrTensor => {
                if rng.one_in(2) {
                    Arg::Int(rng.below(5) as i64)
                } else {
                    Arg::Tensor(self.tensor(rng, p.name))
                }
            }
            ParamKind::Ints | ParamKind::Pairs => {
                if rng.one_in(3) {
                    Arg::Int(rng.below(4) as i64)
                } else {
                    Arg::Ints(self.ints(rng))
                }
            }
            ParamKind::Float => match rng.below(4) {
                0 => Arg::Dynamic(self.b.input(vec![], DType::F64)),
                1 => Arg::Int(1),
                _ => Arg::Float(0.5),
            },
            ParamKind::Bool => Arg::Bool(rng.one_in(2)),
            ParamKind::DType => Arg::DType(rng.pick(DTYPES)),
            ParamKind::Str => Arg::Str(rng.pick(WORDS).into()),
            ParamKind::Nested => Arg::Nested {
                shape: vec![2, 2],
                dtype: DType::F32,
                values: vec![Scalar::F(0.5), Scalar::I(1), Scalar::I(2), Scalar::F(-1.0)],
            },
            ParamKind::Key => self.key(),
        }
    }
}

/// Numbers, a format, and the block of its scales.
fn numbers_in_blocks(call: &mut Call, rng: &mut Rng) -> Vec<Arg> {
    call.shape.push(rng.pick(&[32, 64, 3]));
    let x = Arg::Tensor(call.b.input(call.shape.clone(), call.dtype));
    let format = rng.pick(&["q8_0", "q4_1", "q4_k", "fp8_e4m3", "fp8_e5m2", "q3"]);
    let block = match rng.below(3) {
        0 => Arg::None,
        1 => Arg::Int(rng.pick(&[2, 128])),
        _ => Arg::Ints(vec![rng.pick(&[1, 2]), rng.pick(&[5, 128])]),
    };
    vec![x, Arg::Str(format.into()), block]
}

/// Sizes and counts that fit a convolution, mostly.
fn convolution(def: &OpDef, call: &mut Call, rng: &mut Rng) -> Vec<Arg> {
    let dims = match def.name {
        "conv1d" => 1,
        "conv3d" => 3,
        _ => 2,
    };
    let groups = rng.pick(&[1, 1, 2, 3]);
    let (inside, outputs) = (rng.pick(&[1, 2, 3]), rng.pick(&[1, 2, 3]));
    let mut shape = if rng.one_in(4) { vec![] } else { vec![rng.pick(&[1, 2, 3])] };
    let turned = def.name == "conv_transpose2d";
    shape.push(groups * inside);
    let mut weight = if turned { vec![groups * inside, outputs] } else { vec![groups * outputs, inside] };
    for _ in 0..dims {
        shape.push(rng.pick(&[1, 3, 5, 5]));
        weight.push(rng.pick(&[1, 2, 3, 3]));
    }
    call.shape = shape.clone();
    let dtype = if call.dtype == DType::Bool { DType::F32 } else { call.dtype };
    let mut args: Vec<Arg> = def.params.iter().map(|p| call.argument(rng, p)).collect();
    args[0] = Arg::Tensor(call.b.input(shape, dtype));
    args[1] = Arg::Tensor(call.b.input(weight, dtype));
    args[2] = if rng.one_in(2) { Arg::None } else { Arg::Tensor(call.b.input(vec![groups * outputs], dtype)) };
    args[6] = Arg::Int(groups as i64);
    if !rng.one_in(4) {
        args[3] = Arg::Int(rng.pick(&[1, 1, 2, 3]));
        args[4] = rng.pick(&[Arg::Int(0), Arg::Int(1), Arg::Ints(vec![1; 2 * dims]), Arg::Str("same".into())]);
    }
    args
}

/// What a call defers: equalities, and sizes that reach others.
type Deferred = (Vec<(Size, Size)>, Vec<(Size, Size)>);

fn infer(def: &OpDef, args: &[SymArg], hints: &Hints) -> (Result<Vec<TensorType>, OpError>, Deferred) {
    let facts = Facts::default();
    let mut fresh = |_: &str| Size::constant(0);
    let mut cx = InferCx { facts: &facts, fresh: &mut fresh, checks: vec![], reaches: vec![], notes: vec![] };
    let types = (def.infer)(&mut cx, args, hints).map(|t| match t {
        OpTypes::One(t) => vec![t],
        OpTypes::Many(ts) => ts,
    });
    (types, (cx.checks, cx.reaches))
}

/// Each size above 1 as the variable that stands for it; `rigid` or known to data only.
fn generalised(arg: &SymArg, kind: ParamKind, rigid: bool) -> SymArg {
    let size = |s: &Size| match s.as_const() {
        Some(n @ 2..) => {
            Size::var(SizeVar { id: n as u32, name: format!("S{n}").into(), rigid, natural: true, each: false })
        }
        _ => s.clone(),
    };
    let tensor = |t: &TensorType| TensorType { shape: t.shape.iter().map(size).collect(), ..t.clone() };
    match arg {
        SymArg::Tensor(t) if kind != ParamKind::Key => SymArg::Tensor(tensor(t)),
        SymArg::Tensors(ts) => SymArg::Tensors(ts.iter().map(tensor).collect()),
        SymArg::Ints(ns) if kind == ParamKind::Shape => SymArg::Ints(ns.iter().map(size).collect()),
        other => other.clone(),
    }
}

fn at_values(t: &TensorType) -> TensorType {
    let value = |s: &Size| s.eval(&|v| Some(i64::from(v.id))).map_or(s.clone(), Size::constant);
    TensorType { shape: t.shape.iter().map(value).collect(), ..t.clone() }
}

/// Checks one call; says whether it was a good one.
fn check(def: &OpDef, call: &mut Call, args: &[Arg], hints: &Hints) -> bool {
    let sym: Vec<SymArg> = def.params.iter().zip(args).map(|(p, a)| row::symbolic(&call.b, a, p.kind)).collect();
    let (types, checks) = infer(def, &sym, hints);
    assert!(checks == (vec![], vec![]), "{def:?} defers a check of constants: {sym:?}");
    let expanded = (def.expand)(&mut call.b, args, hints);
    if let Some(wrong) = &call.b.wrong {
        panic!("{def:?} with {sym:?}: {wrong}");
    }
    for rigid in [true, false] {
        let general: Vec<SymArg> = def.params.iter().zip(&sym).map(|(p, a)| generalised(a, p.kind, rigid)).collect();
        let (general_types, checks) = infer(def, &general, hints);
        let value = |s: &Size| s.eval(&|v| Some(i64::from(v.id)));
        let (equal, reaches) = checks;
        let holds =
            equal.iter().all(|(a, b)| value(a) == value(b)) && reaches.iter().all(|(a, b)| value(a) >= value(b));
        // Whether a kernel fits is known at the sizes themselves only.
        let outside = types.as_ref().is_err_and(|e| e.code == Code::E0711);
        if let Ok(general_types) = general_types
            && holds
            && !outside
        {
            let types =
                types.as_ref().unwrap_or_else(|e| panic!("{def:?} holds for all sizes but not for {sym:?}: {e:?}"));
            let at: Vec<TensorType> = general_types.iter().map(at_values).collect();
            assert_eq!(&at, types, "{def:?} with {general:?}");
        }
    }
    match (types, expanded) {
        (Ok(types), Ok(ids)) => {
            assert_eq!(types.len(), ids.len(), "{def:?} with {sym:?}");
            for (t, id) in types.iter().zip(ids) {
                let shape = call.b.shape(id).iter().map(|&n| Size::constant(n as i64)).collect();
                assert_eq!(&TensorType::new(shape, call.b.dtype(id)), t, "{def:?} with {sym:?}");
            }
            true
        }
        // Values are known only to the expansion.
        (Ok(_), Err(e)) if matches!(e.code, Code::E0711 | Code::E0213) => false,
        (Ok(_), Err(e)) => panic!("{def:?} with {sym:?} types but does not expand: {e:?}"),
        (Err(e), Err(_)) => {
            assert!(!e.message.is_empty() && !e.message.ends_with('.'), "{def:?}: {e:?}");
            assert!(
                e.args.iter().all(|(i, _)| *i < def.params.len()),
                "{def:?} blames a parameter that it has not: {e:?}"
            );
            false
        }
        (Err(e), Ok(_)) => panic!("{def:?} with {sym:?} expands but does not type: {e:?}"),
    }
}

/// Blocks of a size that some format has, or of none.
fn blocks(call: &mut Call, rng: &mut Rng) -> Vec<Arg> {
    let bytes = rng.pick(&[18, 20, 22, 24, 34, 144, 176, 210, 33]);
    let shape = if rng.one_in(8) { vec![bytes] } else { vec![rng.below(4) as u64, 2, bytes] };
    let dtype = if rng.one_in(8) { DType::I8 } else { DType::U8 };
    let format = if rng.one_in(2) { Arg::None } else { Arg::Str(rng.pick(&["q4_0", "q4_1", "q8_0", "q6_k"]).into()) };
    vec![Arg::Tensor(call.b.input(shape, dtype)), format]
}

/// Operators with products of complex numbers, which run through kernels of their own.
const OTHER_PRODUCTS: &[&str] = &["spectral_conv"];

/// Whether a call made products; an operator that does says so in the table.
fn makes_products(def: &OpDef, call: &Call) -> bool {
    let told = def.factors().is_some() || OTHER_PRODUCTS.contains(&def.name);
    assert!(!call.b.product || told, "{def:?} becomes a matrix product, and its row does not say so");
    call.b.product
}

const MODES: &[Precision] =
    &[Precision::Safe, Precision::Standard { f16: false }, Precision::Standard { f16: true }, Precision::Aggressive];

#[test]
fn rules_and_expansions_agree_on_every_row() {
    let (mut never, mut untold) = (BTreeSet::new(), BTreeSet::new());
    for def in all() {
        let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
        let (mut good, mut products, mut steps, mut others) = (0, 0, 0, 0);
        for _ in 0..600 {
            let mut call = Call::new(&mut rng);
            let args: Vec<Arg> = match def.name {
                "dequantize" => blocks(&mut call, &mut rng),
                "quantize" | "fake_quantize" => numbers_in_blocks(&mut call, &mut rng),
                name if name.starts_with("conv") => convolution(def, &mut call, &mut rng),
                _ => def.params.iter().map(|p| call.argument(&mut rng, p)).collect(),
            };
            let hints = Hints {
                accum_dtype: if rng.one_in(8) { Some(rng.pick(DTYPES)) } else { None },
                out_dtype: if rng.one_in(8) { Some(rng.pick(&[DType::F32, DType::Bf16, DType::F64])) } else { None },
                tile_shape: None,
                precision: if rng.one_in(4) { rng.pick(MODES) } else { Precision::Own },
                reassociate: rng.one_in(2),
            };
            let fine = check(def, &mut call, &args, &hints);
            good += usize::from(fine);
            steps += usize::from(fine && call.b.steps);
            others += usize::from(fine && call.b.others);
            products += usize::from(makes_products(def, &call));
        }
        assert!(def.factors().is_none() || products > 0, "{def:?} is called a product, and makes none");
        if def.elementwise != (steps > 0 && others == 0) {
            untold.insert(format!("{def:?}: {}", def.elementwise));
        }
        if good < 3 && def.unsupported.is_none() {
            never.insert(format!("{def:?} {good}"));
        }
    }
    assert!(untold.is_empty(), "these rows do not say right whether they are elementwise: {untold:?}");
    assert!(never.is_empty(), "too few calls of these made sense: {never:?}");
}
