//! Gradients against central differences in f64, for every elementwise function and operator that
//! has one; products of directional derivatives and cotangents; loops; derivatives of derivatives.

use std::sync::Arc;
use tessera_autodiff::{Writer, on_devices, pullback, pushforward};
use tessera_base::{DType, Mesh, Span};
use tessera_ir::graph::derivatives::Along;
use tessera_ir::graph::{Graph, Input, Node, NodeId, NodeType, Origin, Policy};
use tessera_ir::{interpret, verify};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Collective, CollectiveKind, Prim, Scalar};
use tessera_ops::surface::{self, Arg, Build, Hints, Id, ParamKind, expand};

/// An argument of an operator.
#[derive(Clone)]
enum A {
    /// A tensor that counts.
    T(Vec<u64>),
    /// The same in another dtype.
    C(Vec<u64>, DType),
    /// A complex tensor: two real ones that count.
    Z(Vec<u64>),
    Ints(Vec<u64>, Vec<i64>),
    Bools(Vec<u64>, Vec<i64>),
    /// A list of tensors that count.
    L(Vec<Vec<u64>>),
    S(Arg),
}

fn t(shape: &[u64]) -> A {
    A::T(shape.to_vec())
}

fn int(n: i64) -> A {
    A::S(Arg::Int(n))
}

fn ints(n: &[i64]) -> A {
    A::S(Arg::Ints(n.to_vec()))
}

fn none() -> A {
    A::S(Arg::None)
}

fn text(s: &str) -> A {
    A::S(Arg::Str(s.into()))
}

fn input(g: &mut Graph, shape: &[u64], dtype: DType) -> NodeId {
    let ty = NodeType::new(shape.to_vec(), dtype);
    let n = g.inputs.len() as u32;
    g.inputs.push(Input { name: "x".into(), ty: ty.clone(), scalar: false });
    g.push(Node {
        prim: Prim::Input(n),
        operands: vec![],
        ty,
        results: vec![],
        origin: Origin::default(),
        policy: Policy::default(),
    })
}

fn writer(g: &mut Graph) -> Writer<'_> {
    Writer::new(g, Policy::default())
}

/// Numbers without a pattern, no two equal, none near an integer or zero.
fn noise(n: u64, from: f64, to: f64) -> Vec<f64> {
    (0..n).map(|i| from + (to - from) * (((i * 37 + 11) % 101) as f64 + 0.5) / 101.0 + i as f64 * 1e-4).collect()
}

fn bytes(values: &[f64], dtype: DType) -> Vec<u8> {
    match dtype {
        DType::F64 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        _ => values.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect(),
    }
}

fn floats(bytes: &[u8], dtype: DType) -> Vec<f64> {
    let f32s = || bytes.chunks_exact(4).map(|c| f64::from(f32::from_le_bytes([c[0], c[1], c[2], c[3]])));
    match dtype {
        DType::F64 => bytes.chunks_exact(8).map(|c| f64::from_le_bytes(c.try_into().unwrap_or_default())).collect(),
        _ => f32s().collect(),
    }
}

/// A sum of the elements with weights, so that every element's cotangent differs.
fn weighted_sum(w: &mut Writer, y: Id) -> Id {
    let dtype = w.dtype(y);
    if dtype.is_complex() {
        let parts = [expand::real(w, y), expand::imag(w, y)];
        let [re, im] = parts.map(|p| weighted_sum(w, p));
        let im = expand::binary_const(w, MapOp::mul, im, 0.7);
        return expand::map(w, MapOp::add, &[re, im]);
    }
    let shape = w.shape(y);
    let n: u64 = shape.iter().product();
    let weights = bytes(&noise(n, -1.0, 1.5), dtype);
    let weights = w.push(Prim::Literal(weights.into()), &[], shape.clone(), dtype);
    let terms = expand::map(w, MapOp::mul, &[y, weights]);
    let axes: Vec<usize> = (0..shape.len()).collect();
    expand::reduce(w, terms, tessera_ops::prim::Reduction::Sum, &axes, false)
}

/// A function of the inputs of a graph, with its inputs' types and a range of values.
struct Case<'a> {
    name: String,
    inputs: Vec<(Vec<u64>, DType)>,
    range: (f64, f64),
    build: &'a dyn Fn(&mut Writer, &[Id]) -> Id,
}

fn close(name: &str, got: f64, want: f64, dtype: DType) {
    let (relative, absolute) = if dtype == DType::F64 { (2e-6, 2e-7) } else { (3e-2, 2e-2) };
    let bound = relative * want.abs().max(got.abs()) + absolute;
    assert!((got - want).abs() <= bound, "{name}: the derivative is {got}, and differences give {want}");
}

/// The gradient of the weighted sum of the result against central differences, and the product of
/// a directional derivative with the weights against the same from the gradient.
fn check(case: &Case) {
    let mut g = Graph::default();
    let nodes: Vec<NodeId> = case.inputs.iter().map(|(s, d)| input(&mut g, s, *d)).collect();
    let ids: Vec<Id> = nodes.iter().map(|n| Id(n.0)).collect();
    let mut w = writer(&mut g);
    let y = (case.build)(&mut w, &ids);
    let loss = weighted_sum(&mut w, y);
    let dtype = w.dtype(loss);
    let one = NodeId(expand::full(&mut w, &[], dtype, Scalar::F(1.0)).0);
    let loss = NodeId(loss.0);
    let made = pullback(&mut g, &[(loss, one)], &nodes).unwrap_or_else(|b| panic!("{}: {}", case.name, b.why));
    let mut tangents = vec![];
    for &n in &nodes {
        let ty = g.ty(n).clone();
        let values = bytes(&noise(ty.elems().unwrap_or(0), -0.5, 1.0), ty.dtype);
        let mut w = writer(&mut g);
        tangents.push((n, NodeId(w.push(Prim::Literal(values.into()), &[], ty.shape, ty.dtype).0)));
    }
    let along = pushforward(&mut g, &[loss], &tangents).unwrap_or_else(|b| panic!("{}: {}", case.name, b.why));
    let mut w = writer(&mut g);
    let mut outputs = vec![loss];
    for (c, (shape, dtype)) in made.iter().zip(&case.inputs) {
        outputs.push(c.unwrap_or_else(|| NodeId(expand::full(&mut w, shape, *dtype, Scalar::F(0.0)).0)));
    }
    outputs.push(along[0].unwrap_or_else(|| NodeId(expand::full(&mut w, &[], dtype, Scalar::F(0.0)).0)));
    g.outputs = outputs;
    assert_eq!(verify::verify(&g), Vec::<String>::new(), "{}", case.name);
    let values: Vec<Vec<f64>> = case
        .inputs
        .iter()
        .enumerate()
        .map(|(k, (s, _))| {
            let (from, to) = case.range;
            let shift = 0.013 * k as f64;
            noise(s.iter().product(), from + shift, to + shift)
        })
        .collect();
    let run = |values: &[Vec<f64>]| {
        let raw: Vec<Vec<u8>> = values.iter().zip(&case.inputs).map(|(v, (_, d))| bytes(v, *d)).collect();
        let raw: Vec<&[u8]> = raw.iter().map(Vec::as_slice).collect();
        interpret::run(&g, &raw).unwrap_or_else(|s| panic!("{}: {}", case.name, s.error.message))
    };
    let all = run(&values);
    let value = |out: &[Vec<u8>]| floats(&out[0], dtype)[0];
    assert!(value(&all).is_finite(), "{}: the value is not finite", case.name);
    let mut product = 0.0;
    for (k, (_, of)) in case.inputs.iter().enumerate() {
        let gradient = floats(&all[k + 1], *of);
        let tangent = noise(gradient.len() as u64, -0.5, 1.0);
        product += gradient.iter().zip(&tangent).map(|(g, t)| g * t).sum::<f64>();
        for i in 0..gradient.len() {
            let step = if *of == DType::F64 { 1e-5 } else { 4e-3 };
            let mut moved = values.clone();
            moved[k][i] += step;
            let above = value(&run(&moved));
            moved[k][i] -= 2.0 * step;
            let below = value(&run(&moved));
            close(&format!("{}, input {k}, element {i}", case.name), gradient[i], (above - below) / (2.0 * step), *of);
        }
    }
    let last = floats(&all[nodes.len() + 1], dtype)[0];
    close(&format!("{}, along a direction", case.name), last, product, dtype);
}

/// Functions and ranges on which they are smooth.
#[test]
fn elementwise_functions_have_their_derivatives() {
    for &op in MapOp::ALL {
        if op.def().gradient.is_none() {
            continue;
        }
        let ranges: &[(f64, f64)] = match op {
            MapOp::sqrt | MapOp::rsqrt | MapOp::log | MapOp::log2 | MapOp::log10 | MapOp::pow => &[(0.2, 2.0)],
            MapOp::asin | MapOp::acos | MapOp::log1p | MapOp::xlog1py | MapOp::atanh | MapOp::erfinv => &[(-0.9, 0.9)],
            MapOp::ndtri | MapOp::logit => &[(0.1, 0.9)],
            MapOp::acosh => &[(1.2, 3.0)],
            MapOp::gamma | MapOp::lgamma | MapOp::digamma | MapOp::polygamma | MapOp::betaln | MapOp::xlogy => {
                &[(0.3, 2.5)]
            }
            MapOp::betainc | MapOp::betainc_da | MapOp::betainc_dx => &[(0.2, 0.9)],
            MapOp::gammainc | MapOp::gammaincc | MapOp::gammainc_da | MapOp::gammainc_dx => &[(0.3, 3.5), (13.0, 17.0)],
            MapOp::r#mod => &[(5.1, 5.7)],
            _ => &[(0.2, 0.9), (-2.0, -0.3)],
        };
        for &range in ranges {
            let arity = op.def().arity;
            let condition = op == MapOp::r#where;
            // The others count as constants.
            let last_only = matches!(op, MapOp::polygamma | MapOp::gammainc_da | MapOp::betainc_da);
            let count = if last_only {
                1
            } else if condition {
                2
            } else {
                arity
            };
            let build = |w: &mut Writer, x: &[Id]| {
                if last_only {
                    let first = expand::like(w, x[0], 2.0);
                    let operands = [first, first, x[0]];
                    return expand::map(w, op, &operands[3 - arity..]);
                }
                if !condition {
                    return expand::map(w, op, x);
                }
                let test = expand::map(w, MapOp::lt, x);
                expand::map(w, op, &[test, x[0], x[1]])
            };
            check(&Case { name: op.name().into(), inputs: vec![(vec![5], DType::F64); count], range, build: &build });
        }
    }
}

/// An operator at arguments.
fn apply(w: &mut Writer, name: &str, args: &[A], x: &[Id]) -> Vec<Id> {
    let def = surface::find(name).unwrap_or_else(|| panic!("there is no operator {name}"));
    let mut next = x.iter().copied();
    let mut given = vec![];
    for (arg, param) in args.iter().zip(def.params) {
        given.push(match arg {
            A::T(_) | A::C(..) => Arg::Tensor(next.next().unwrap_or(Id(0))),
            A::Z(_) => {
                let (re, im) = (next.next().unwrap_or(Id(0)), next.next().unwrap_or(Id(0)));
                Arg::Tensor(expand::complex(w, re, im))
            }
            A::L(shapes) => Arg::Tensors(shapes.iter().filter_map(|_| next.next()).collect()),
            A::Ints(shape, values) | A::Bools(shape, values) => {
                let is_bool = matches!(arg, A::Bools(..));
                let raw: Vec<u8> = match is_bool {
                    true => values.iter().map(|&v| v as u8).collect(),
                    false => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
                };
                let dtype = if is_bool { DType::Bool } else { DType::I64 };
                Arg::Tensor(w.push(Prim::Literal(raw.into()), &[], shape.clone(), dtype))
            }
            A::S(Arg::Int(n)) if param.kind == ParamKind::Operand => Arg::Scalar(Scalar::I(*n)),
            A::S(Arg::Float(v)) if param.kind == ParamKind::Operand => Arg::Scalar(Scalar::F(*v)),
            A::S(arg) => arg.clone(),
        });
    }
    (def.expand)(w, &given, &Hints::default()).unwrap_or_else(|e| panic!("{name}: {}", e.message))
}

fn operators() -> Vec<(&'static str, Vec<A>)> {
    let f = |v: f64| A::S(Arg::Float(v));
    let yes = || A::S(Arg::Bool(true));
    vec![
        ("sum", vec![t(&[3, 4]), int(1)]),
        ("sum", vec![t(&[2, 3, 2]), ints(&[0, 2]), yes()]),
        ("mean", vec![t(&[3, 4]), int(0)]),
        ("var", vec![t(&[3, 4]), int(1)]),
        ("std", vec![t(&[3, 4])]),
        ("max", vec![t(&[3, 4]), int(1)]),
        ("max", vec![t(&[2, 3, 4]), ints(&[0, 2])]),
        ("min", vec![t(&[3, 4])]),
        ("prod", vec![t(&[2, 5]), int(1)]),
        ("prod", vec![t(&[2, 3]), none()]),
        ("logsumexp", vec![t(&[3, 4]), int(0)]),
        ("cumsum", vec![t(&[3, 4]), int(0)]),
        ("cumprod", vec![t(&[2, 5]), int(1)]),
        ("cummax", vec![t(&[3, 4]), int(1)]),
        ("cummin", vec![t(&[3, 4]), int(0)]),
        ("logcumsumexp", vec![t(&[3, 4]), int(0)]),
        ("quantile", vec![t(&[3, 5]), f(0.3), int(1)]),
        ("percentile", vec![t(&[3, 5]), f(30.0), int(0)]),
        ("reshape", vec![t(&[3, 4]), ints(&[2, 6])]),
        ("transpose", vec![t(&[2, 3, 4]), ints(&[2, 0, 1])]),
        ("swapaxes", vec![t(&[2, 3]), int(0), int(1)]),
        ("moveaxis", vec![t(&[2, 3, 2]), int(0), int(2)]),
        ("squeeze", vec![t(&[3, 1])]),
        ("unsqueeze", vec![t(&[3]), int(0)]),
        ("broadcast_to", vec![t(&[3, 1]), ints(&[2, 3, 4])]),
        ("flip", vec![t(&[3, 4]), int(1)]),
        ("roll", vec![t(&[5]), int(2)]),
        ("tile", vec![t(&[2, 3]), ints(&[2, 2])]),
        ("repeat", vec![t(&[2, 3]), int(2), int(1)]),
        ("pad", vec![t(&[2, 3]), ints(&[1, 0, 0, 2])]),
        ("concat", vec![A::L(vec![vec![2, 3], vec![1, 3]]), int(0)]),
        ("stack", vec![A::L(vec![vec![3], vec![3]]), int(1)]),
        ("split", vec![t(&[4, 2]), int(2)]),
        ("diag", vec![t(&[4])]),
        ("tril", vec![t(&[3, 3])]),
        ("triu", vec![t(&[3, 3])]),
        ("matmul", vec![t(&[3, 4]), t(&[4, 2])]),
        ("matmul", vec![t(&[2, 3, 4]), t(&[4, 2])]),
        ("matmul", vec![t(&[4]), t(&[4, 2])]),
        ("einsum", vec![text("bij,bkj->bik"), A::L(vec![vec![2, 2, 3], vec![2, 4, 3]])]),
        ("outer", vec![t(&[3]), t(&[4])]),
        ("dot", vec![t(&[4]), t(&[4])]),
        ("where", vec![A::Bools(vec![4], vec![1, 0, 1, 1]), t(&[4]), t(&[4])]),
        ("clip", vec![t(&[7]), f(0.35), f(0.75)]),
        ("softmax", vec![t(&[3, 5])]),
        ("softmax", vec![t(&[3, 5]), int(0)]),
        ("log_softmax", vec![t(&[3, 5])]),
        ("layer_norm", vec![t(&[3, 6]), ints(&[6]), t(&[6]), t(&[6])]),
        ("rms_norm", vec![t(&[3, 6]), ints(&[6]), t(&[6])]),
        ("batch_norm", vec![t(&[2, 3, 4]), t(&[3]), t(&[3]), t(&[3]), t(&[3])]),
        ("gelu", vec![t(&[5]), text("tanh")]),
        ("cross_entropy", vec![t(&[4, 5]), A::Ints(vec![4], vec![2, 0, 4, 2])]),
        ("cross_entropy", vec![t(&[4, 5]), t(&[4, 5])]),
        ("mse", vec![t(&[3, 2]), t(&[3, 2])]),
        ("l1", vec![t(&[3, 2]), t(&[3, 2])]),
        ("embedding", vec![A::Ints(vec![2, 3], vec![1, 0, 1, 3, 1, 2]), t(&[4, 3])]),
        ("take", vec![t(&[2, 4]), A::Ints(vec![3], vec![1, 3, 1]), int(1)]),
        ("gather", vec![t(&[3, 4]), int(1), A::Ints(vec![3, 2], vec![0, 2, 1, 1, 3, 0])]),
        ("scatter_add", vec![t(&[4]), int(0), A::Ints(vec![3], vec![1, 3, 1]), t(&[3])]),
        ("segment_sum", vec![t(&[3, 2]), A::Ints(vec![3], vec![2, 0, 2]), int(4)]),
        ("segment_mean", vec![t(&[3, 2]), A::Ints(vec![3], vec![2, 0, 2]), int(4)]),
        ("segment_max", vec![t(&[3, 2]), A::Ints(vec![3], vec![1, 0, 1]), int(2)]),
        ("segment_min", vec![t(&[3, 2]), A::Ints(vec![3], vec![1, 0, 1]), int(2)]),
        ("sort", vec![t(&[3, 5]), int(1)]),
        ("conv1d", vec![t(&[2, 2, 7]), t(&[3, 2, 3]), t(&[3]), int(2), int(1)]),
        ("conv2d", vec![t(&[2, 2, 5, 4]), t(&[4, 1, 3, 2]), none(), int(1), int(1), int(1), int(2)]),
        ("conv_transpose2d", vec![t(&[1, 2, 3, 3]), t(&[2, 2, 2, 2]), none(), int(2)]),
        ("max_pool", vec![t(&[1, 2, 4, 4]), int(2)]),
        ("avg_pool", vec![t(&[1, 2, 5, 5]), int(3), int(2)]),
        ("attention", vec![t(&[2, 3, 4]), t(&[2, 5, 4]), t(&[2, 5, 3])]),
        ("attention", vec![t(&[4, 4, 2]), t(&[2, 4, 2]), t(&[2, 4, 2]), yes()]),
        ("attention", vec![t(&[3, 2]), t(&[3, 2]), t(&[3, 2]), A::S(Arg::Bool(false)), t(&[3, 3])]),
        ("attention", vec![t(&[2, 4, 3]), t(&[2, 4, 3]), t(&[2, 4, 3]), yes(), none(), none(), A::S(Arg::Float(0.5))]),
        (
            "attention",
            vec![t(&[3, 2]), t(&[3, 2]), t(&[3, 2]), A::S(Arg::Bool(false)), t(&[3, 3]), none(), A::S(Arg::Float(1.5))],
        ),
        ("fft", vec![A::C(vec![2, 6], DType::F32)]),
        ("ifft", vec![A::Z(vec![7])]),
        ("rfft", vec![A::C(vec![3, 8], DType::F32)]),
        ("rfft", vec![A::C(vec![9], DType::F32)]),
        ("irfft", vec![A::Z(vec![5])]),
        ("irfft", vec![A::Z(vec![4]), int(7)]),
        ("fft2", vec![A::C(vec![4, 3], DType::F32)]),
        ("spectral_conv", vec![A::C(vec![2, 2, 8], DType::F32), A::Z(vec![2, 3, 4])]),
        ("complex", vec![A::C(vec![3], DType::F32), A::C(vec![3], DType::F32)]),
        ("mul", vec![A::Z(vec![3]), A::Z(vec![3])]),
        ("elu", vec![t(&[5])]),
        ("leaky_relu", vec![t(&[5])]),
        ("take_along_axis", vec![t(&[3, 4]), A::Ints(vec![3, 2], vec![0, 2, 1, 1, 3, 0]), int(1)]),
        ("tensordot", vec![t(&[3, 4]), t(&[4, 2]), int(1)]),
        ("solve", vec![t(&[3, 3]), t(&[3, 2])]),
        ("solve", vec![t(&[3, 3]), t(&[2, 3, 2])]),
        ("solve", vec![t(&[2, 2, 2]), t(&[2])]),
        ("solve_triangular", vec![t(&[3, 3]), t(&[3, 2])]),
        ("solve_triangular", vec![t(&[2, 3, 3]), t(&[3, 2]), A::S(Arg::Bool(false))]),
        ("solve_triangular", vec![t(&[3, 3]), t(&[3, 2]), A::S(Arg::Bool(false)), yes()]),
        ("solve_triangular", vec![t(&[3, 3]), t(&[3, 2]), yes(), yes(), yes()]),
        ("qr", vec![t(&[3, 3])]),
        ("qr", vec![t(&[2, 4, 3])]),
        ("qr", vec![t(&[3, 5])]),
        ("eigh", vec![t(&[2, 3, 3])]),
        ("eigvalsh", vec![t(&[4, 4])]),
        ("svd", vec![t(&[3, 3])]),
        ("svd", vec![t(&[2, 4, 3])]),
        ("svd", vec![t(&[3, 5])]),
        ("svdvals", vec![t(&[3, 4])]),
        ("eigvals", vec![A::C(vec![3, 3], DType::F32)]),
        ("eigvals", vec![A::C(vec![2, 2, 2], DType::F32)]),
    ]
}

#[test]
fn operators_have_their_derivatives() {
    let mut failed = vec![];
    for (name, args) in operators() {
        let mut inputs = vec![];
        for a in &args {
            match a {
                A::T(s) => inputs.push((s.clone(), DType::F64)),
                A::C(s, d) => inputs.push((s.clone(), *d)),
                A::Z(s) => inputs.extend([(s.clone(), DType::F32), (s.clone(), DType::F32)]),
                A::L(shapes) => inputs.extend(shapes.iter().map(|s| (s.clone(), DType::F64))),
                _ => {}
            }
        }
        let build = |w: &mut Writer, x: &[Id]| {
            let outputs = apply(w, name, &args, x);
            // Several results: the second, with weights of its own, joins the first.
            match outputs[..] {
                [y] => y,
                [y, z, ..] => {
                    let (y, z) = (weighted_sum(w, y), weighted_sum(w, z));
                    let square = expand::map(w, MapOp::mul, &[z, z]);
                    expand::map(w, MapOp::add, &[y, square])
                }
                [] => Id(0),
            }
        };
        let case = Case { name: name.into(), inputs, range: (0.2, 1.4), build: &build };
        let run = std::panic::AssertUnwindSafe(|| check(&case));
        if let Err(e) = std::panic::catch_unwind(run) {
            failed.push(format!("{name}: {:?}", e.downcast_ref::<String>()));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A function of matrices whose result is what counts of an operator's results.
type OfMatrices = fn(&mut Writer, &[Id]) -> Id;

/// The matrices' products with their transposed ones, and more on the diagonals.
fn positive(w: &mut Writer, x: Id) -> Id {
    let shape = w.shape(x);
    let rank = shape.len();
    let perm: Vec<usize> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
    let turned = expand::transpose(w, x, &perm);
    let product = expand::dot(w, x, turned, DType::F64, DType::F64);
    let (row, column) = (expand::iota(w, &shape, rank - 2), expand::iota(w, &shape, rank - 1));
    let at = expand::map(w, MapOp::eq, &[row, column]);
    let at = expand::cast(w, at, DType::F64);
    expand::map(w, MapOp::add, &[product, at])
}

fn part(w: &mut Writer, name: &str, x: Id, which: usize) -> Id {
    let def = surface::find(name).unwrap_or_else(|| panic!("there is no operator {name}"));
    let parts = (def.expand)(w, &[Arg::Tensor(x)], &Hints::default());
    parts.unwrap_or_else(|e| panic!("{name}: {}", e.message))[which]
}

/// The derivatives are made of nodes that have derivatives: the gradient of a product of the gradient with weights.
#[test]
fn factors_have_derivatives_of_derivatives() {
    let cases: &[(&str, &[u64], OfMatrices)] = &[
        ("cholesky", &[2, 3, 3], |w, x| {
            let x = positive(w, x[0]);
            part(w, "cholesky", x, 0)
        }),
        // Only the lower triangle is read, also by the derivative.
        ("cholesky as it is read", &[1, 1], |w, x| part(w, "cholesky", x[0], 0)),
        ("lu", &[3, 3], |w, x| part(w, "lu_factor", x[0], 0)),
        ("lu, tall", &[4, 2], |w, x| part(w, "lu_factor", x[0], 0)),
        ("lu, wide", &[3, 5], |w, x| part(w, "lu_factor", x[0], 0)),
        ("q", &[4, 3], |w, x| part(w, "qr", x[0], 0)),
        ("r", &[3, 4], |w, x| part(w, "qr", x[0], 1)),
        ("w", &[3, 3], |w, x| part(w, "eigh", x[0], 0)),
        ("v", &[3, 3], |w, x| part(w, "eigh", x[0], 1)),
        ("eigenvalues", &[3, 3], |w, x| part(w, "eigvalsh", x[0], 0)),
        ("u", &[3, 2], |w, x| part(w, "svd", x[0], 0)),
        ("s", &[3, 4], |w, x| part(w, "svd", x[0], 1)),
        ("vh", &[2, 3], |w, x| part(w, "svd", x[0], 2)),
        ("singular values", &[3, 3], |w, x| part(w, "svdvals", x[0], 0)),
        ("solve", &[3, 3], |w, x| {
            let def = surface::find("solve").expect("an operator");
            (def.expand)(w, &[Arg::Tensor(x[0]), Arg::Tensor(x[0])], &Hints::default()).expect("a system")[0]
        }),
    ];
    for (name, shape, build) in cases {
        let once = |w: &mut Writer, x: &[Id]| build(w, x);
        let twice = |w: &mut Writer, x: &[Id]| {
            let y = build(w, x);
            let loss = weighted_sum(w, y);
            let one = expand::full(w, &[], DType::F64, Scalar::F(1.0));
            let made = pullback(w.graph, &[(NodeId(loss.0), NodeId(one.0))], &[NodeId(x[0].0)]);
            let made = made.unwrap_or_else(|b| panic!("{name}: {}", b.why));
            made[0].map_or_else(|| expand::like(w, x[0], 0.0), |id| Id(id.0))
        };
        let inputs = vec![(shape.to_vec(), DType::F64)];
        check(&Case { name: (*name).into(), inputs: inputs.clone(), range: (0.2, 1.4), build: &once });
        check(&Case { name: format!("{name}, twice"), inputs, range: (0.2, 1.4), build: &twice });
    }
}

/// What does not depend on how eigenvectors are turned: the squared magnitudes of their elements times their eigenvalues.
#[test]
fn eigenvectors_of_any_matrix_have_their_derivatives() {
    let build = |w: &mut Writer, x: &[Id]| {
        let (values, v) = (part(w, "eig", x[0], 0), part(w, "eig", x[0], 1));
        let shape = w.shape(v);
        let spread = expand::broadcast_dims(w, values, &shape, vec![1]);
        let stretched = expand::map(w, MapOp::mul, &[v, spread]);
        let squares = [expand::real(w, stretched), expand::imag(w, stretched)];
        let squares = squares.map(|part| expand::map(w, MapOp::mul, &[part, part]));
        expand::map(w, MapOp::add, &squares)
    };
    let inputs = vec![(vec![3, 3], DType::F32)];
    check(&Case { name: "eig".into(), inputs, range: (0.2, 1.4), build: &build });
}

/// Operators without a case above: results that are not floats, values that do not depend on a
/// float, or the same expansion as one that has a case.
#[test]
fn every_operator_has_a_case_or_a_reason() {
    let cases: Vec<&str> = operators().iter().map(|c| c.0).collect();
    let without = |name: &str| {
        const NOT_SMOOTH: &[&str] = &[
            "any",
            "all",
            "argmax",
            "argmin",
            "argsort",
            "eye",
            "tri",
            "array",
            "zeros",
            "ones",
            "full",
            "empty",
            "zeros_like",
            "ones_like",
            "full_like",
            "empty_like",
            "arange",
            "linspace",
            "one_hot",
            "fftfreq",
            "rfftfreq",
            "count_nonzero",
            "nonzero",
            "argwhere",
            "count_unique",
            "bincount",
            "searchsorted",
            "allclose",
            "array_equal",
            "isclose",
            "indices",
        ];
        const LIKE_ANOTHER: &[&str] = &[
            "unique",
            "cast",
            "real",
            "imag",
            "conj",
            "angle",
            "inner",
            "vdot",
            "fftshift",
            "ifftshift",
            "conv3d",
            "conv_transpose1d",
            "conv_transpose3d",
            "topk",
            "trace",
            "dropout",
            "rope",
            "permute",
            "expand",
            "flatten",
            "ravel",
            "slice",
            "chunk",
            "hstack",
            "vstack",
            "concatenate",
            "ifft2",
            "rfft2",
            "irfft2",
            "fftn",
            "ifftn",
            "rfftn",
            "irfftn",
            "quantize",
            "dequantize",
            "fake_quantize",
            "moe_dispatch",
            "moe_combine",
            "expand_dims",
            "to",
            "item",
            "T",
            "norm",
            "median",
            "diff",
            "kron",
            "cross",
            // In `factors_have_derivatives_of_derivatives` and behind it.
            "cholesky",
            "lu_factor",
            "eig",
        ];
        name.starts_with("random.")
            || MapOp::parse(name).is_some()
            || NOT_SMOOTH.contains(&name)
            || LIKE_ANOTHER.contains(&name)
    };
    let missing: Vec<&str> = surface::all()
        .filter(|d| d.unsupported.is_none() && !cases.contains(&d.name) && !without(d.name))
        .map(|d| d.name)
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// `Π` by a loop of multiplications, with a constant that every turn uses.
fn scanned(w: &mut Writer, x: &[Id]) -> Id {
    let mut body = Graph { name: "body".into(), ..Graph::default() };
    let carry = input(&mut body, &[2], DType::F64);
    let element = input(&mut body, &[2], DType::F64);
    let constant = input(&mut body, &[2], DType::F64);
    let mut b = writer(&mut body);
    let product = expand::map(&mut b, MapOp::mul, &[Id(carry.0), Id(element.0)]);
    let bent = expand::unary(&mut b, MapOp::sin, product);
    let next = expand::map(&mut b, MapOp::add, &[bent, Id(constant.0)]);
    body.outputs = vec![NodeId(next.0), NodeId(bent.0)];
    w.graph.bodies.push(body);
    let at = w.graph.bodies.len() as u32 - 1;
    let prim = Prim::Scan { body: at, carry: 1, sequences: 1, trips: 5, reversed: false, until: false };
    let results = vec![NodeType::new(vec![2], DType::F64), NodeType::new(vec![5, 2], DType::F64)];
    let operands = x.iter().map(|x| NodeId(x.0)).collect();
    let node = w.node(prim, operands, results[0].clone(), results);
    let (last, all) = (w.get(node, 0).unwrap_or(node), w.get(node, 1).unwrap_or(node));
    let last = expand::broadcast_to(w, Id(last.0), &[5, 2]);
    expand::map(w, MapOp::mul, &[last, Id(all.0)])
}

#[test]
fn loops_run_the_other_way() {
    let inputs = vec![(vec![2], DType::F64), (vec![5, 2], DType::F64), (vec![2], DType::F64)];
    check(&Case { name: "scan".into(), inputs, range: (0.3, 1.2), build: &scanned });
}

#[test]
fn rows_go_back_to_where_they_came_from() {
    for from in [vec![2, 0, 1], vec![1, 1, 1], vec![2, 0, 2]] {
        let build = |w: &mut Writer, x: &[Id]| {
            let (shape, dtype) = (w.shape(x[0]), w.dtype(x[0]));
            w.push(Prim::Rows { axis: 1, from: from.clone() }, x, shape, dtype)
        };
        let inputs = vec![(vec![2, 3, 2], DType::F64)];
        check(&Case { name: format!("rows {from:?}"), inputs, range: (0.3, 1.2), build: &build });
    }
}

/// Three devices with blocks `[3, 6]` of their own and `[6]` that all have.
#[test]
fn what_devices_do_together_has_its_derivative() {
    let mesh = Arc::new(Mesh { axes: vec![("sp".into(), 3)] });
    let along = Arc::new(Along { name: "sp".into(), mesh });
    let kinds: Vec<(CollectiveKind, Vec<u64>)> = vec![
        (CollectiveKind::Sum, vec![3, 6]),
        (CollectiveKind::Max, vec![3, 6]),
        (CollectiveKind::Min, vec![3, 6]),
        (CollectiveKind::Gather { dim: 1 }, vec![3, 18]),
        (CollectiveKind::Scatter { dim: 1 }, vec![3, 2]),
        (CollectiveKind::Turn { from: 0, to: 1 }, vec![9, 2]),
        (CollectiveKind::Rows { from: vec![1, 2, 0] }, vec![3, 6]),
        (CollectiveKind::Rows { from: vec![1, 1, 1] }, vec![3, 6]),
    ];
    for (kind, shape) in kinds {
        let name = format!("{kind:?}");
        let build = |w: &mut Writer, x: &[Id]| {
            let mut body = Graph::default();
            let block = Id(input(&mut body, &[3, 6], DType::F64).0);
            let shared = Id(input(&mut body, &[6], DType::F64).0);
            let mut b = writer(&mut body);
            let shared = expand::broadcast_to(&mut b, shared, &[3, 6]);
            let own = expand::unary(&mut b, MapOp::sin, block);
            let own = expand::map(&mut b, MapOp::mul, &[own, shared]);
            let what = |kind| Prim::Collective(Arc::new(Collective { axis: "sp".into(), devices: 3, kind }));
            let y = b.push(what(kind.clone()), &[own], shape.clone(), DType::F64);
            let rank = b.push(what(CollectiveKind::Rank), &[], vec![], DType::I64);
            let rank = expand::cast(&mut b, rank, DType::F64);
            let rank = expand::broadcast_to(&mut b, rank, &shape);
            let y = expand::map(&mut b, MapOp::mul, &[y, rank]);
            body.outputs = vec![NodeId(y.0)];
            let given = [(NodeId(x[0].0), true), (NodeId(x[1].0), false)];
            Id(on_devices(w.graph, &body, &given, &[true], &along, Span::NONE)[0].0)
        };
        let inputs = vec![(vec![3, 3, 6], DType::F64), (vec![6], DType::F64)];
        check(&Case { name, inputs, range: (0.3, 1.2), build: &build });
    }
}

/// The derivative of a derivative, of what a rule, a part known as a whole and a loop give.
#[test]
fn derivatives_have_derivatives() {
    let second = |inner: &dyn Fn(&mut Writer, &[Id]) -> Id, w: &mut Writer, x: &[Id]| {
        let y = inner(w, x);
        let loss = weighted_sum(w, y);
        let one = expand::full(w, &[], DType::F64, Scalar::F(1.0));
        let wrt: Vec<NodeId> = x.iter().map(|x| NodeId(x.0)).collect();
        let made = pullback(w.graph, &[(NodeId(loss.0), NodeId(one.0))], &wrt).unwrap_or_default();
        let mut sum = None;
        for c in made.into_iter().flatten() {
            let part = weighted_sum(w, Id(c.0));
            let part = expand::map(w, MapOp::mul, &[part, part]);
            sum = Some(sum.map_or(part, |s| expand::map(w, MapOp::add, &[s, part])));
        }
        sum.unwrap_or(loss)
    };
    let loops = |w: &mut Writer, x: &[Id]| second(&scanned, w, x);
    let inputs = vec![(vec![2], DType::F64), (vec![5, 2], DType::F64), (vec![2], DType::F64)];
    check(&Case { name: "scan twice".into(), inputs, range: (0.3, 1.2), build: &loops });
    for (name, args) in [
        ("softmax", vec![t(&[2, 4])]),
        ("layer_norm", vec![t(&[2, 5]), ints(&[5])]),
        ("attention", vec![t(&[3, 2]), t(&[3, 2]), t(&[3, 2])]),
        ("cumprod", vec![t(&[4])]),
    ] {
        let shapes: Vec<Vec<u64>> =
            args.iter().filter_map(|a| if let A::T(s) = a { Some(s.clone()) } else { None }).collect();
        let inner = |w: &mut Writer, x: &[Id]| apply(w, name, &args, x)[0];
        let twice = |w: &mut Writer, x: &[Id]| second(&inner, w, x);
        let inputs = shapes.into_iter().map(|s| (s, DType::F64)).collect();
        check(&Case { name: format!("{name} twice"), inputs, range: (0.3, 1.2), build: &twice });
    }
}
