//! Values of expansions, run by the reference kernels, against plain loops in f64.

mod distributions;
mod windows;

use std::collections::BTreeMap;
use tessera_base::DType;
use tessera_ir::reference;
use tessera_ops::prim::Prim;
use tessera_ops::prim::Scalar;
use tessera_ops::surface::*;

/// Runs each node as it is added.
#[derive(Default)]
pub struct Eager {
    nodes: Vec<(Vec<u64>, DType, Vec<u8>)>,
}

impl Eager {
    pub fn bytes(&self, id: Id) -> &[u8] {
        &self.nodes[id.0 as usize].2
    }
}

impl Build for Eager {
    fn shape(&self, id: Id) -> Vec<u64> {
        self.nodes[id.0 as usize].0.clone()
    }

    fn dtype(&self, id: Id) -> DType {
        self.nodes[id.0 as usize].1
    }

    fn push(&mut self, prim: Prim, operands: &[Id], shape: Vec<u64>, dtype: DType) -> Id {
        let arrays: Vec<reference::ArrayRef> = operands
            .iter()
            .map(|o| {
                let (shape, dtype, bytes) = &self.nodes[o.0 as usize];
                reference::ArrayRef { dtype: *dtype, shape, bytes }
            })
            .collect();
        let bytes = reference::eval(&prim, &arrays, dtype, &shape).unwrap_or_else(|e| panic!("{prim:?}: {e}"));
        self.nodes.push((shape, dtype, bytes));
        Id(self.nodes.len() as u32 - 1)
    }
}

/// A tensor with its elements as f64.
#[derive(Clone, PartialEq, Debug)]
struct Array {
    shape: Vec<u64>,
    values: Vec<f64>,
}

fn array(shape: &[u64], values: &[f64]) -> Array {
    assert_eq!(shape.iter().product::<u64>() as usize, values.len());
    Array { shape: shape.to_vec(), values: values.to_vec() }
}

/// Some numbers without a pattern.
fn noise(shape: &[u64]) -> Array {
    let n: u64 = shape.iter().product();
    array(shape, &(0..n).map(|i| ((i * 7 + 3) % 11) as f64 / 4.0 - 1.0).collect::<Vec<_>>())
}

enum In {
    /// f32.
    F(Array),
    /// i64.
    I(Array),
    S(Arg),
}

fn ints(n: &[i64]) -> In {
    In::S(Arg::Ints(n.to_vec()))
}

fn int(n: i64) -> In {
    In::S(Arg::Int(n))
}

fn add(b: &mut Eager, a: &Array, dtype: DType) -> Id {
    let bytes = a.values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
    let wide = b.push(Prim::Literal(bytes.into()), &[], a.shape.clone(), DType::F64);
    b.push(Prim::Cast, &[wide], a.shape.clone(), dtype)
}

fn read(b: &mut Eager, id: Id) -> Array {
    let shape = b.shape(id);
    let wide = b.push(Prim::Cast, &[id], shape.clone(), DType::F64);
    let bytes = &b.nodes[wide.0 as usize].2;
    let values = bytes.chunks_exact(8).map(|c| f64::from_le_bytes(c.try_into().unwrap())).collect();
    Array { shape, values }
}

fn run_all(name: &str, args: Vec<In>) -> Vec<Array> {
    let mut b = Eager::default();
    let mut given: Vec<Arg> = vec![];
    let mut list = vec![];
    let def = find(name).unwrap_or_else(|| panic!("no row {name}"));
    for a in args {
        let arg = match a {
            In::F(a) => Arg::Tensor(add(&mut b, &a, DType::F32)),
            In::I(a) => Arg::Tensor(add(&mut b, &a, DType::I64)),
            In::S(arg) => arg,
        };
        match (def.params[given.len().min(def.params.len() - 1)].kind, &arg) {
            (ParamKind::Tensors, Arg::Tensor(id)) => list.push(*id),
            _ => {
                if !list.is_empty() {
                    given.push(Arg::Tensors(std::mem::take(&mut list)));
                }
                given.push(arg);
            }
        }
    }
    if !list.is_empty() {
        given.push(Arg::Tensors(list));
    }
    let ids = (def.expand)(&mut b, &given, &Hints::default()).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    ids.into_iter().map(|id| read(&mut b, id)).collect()
}

fn run(name: &str, args: Vec<In>) -> Array {
    run_all(name, args).swap_remove(0)
}

fn close(got: &Array, want: &Array) {
    assert_eq!(got.shape, want.shape);
    for (g, w) in got.values.iter().zip(&want.values) {
        assert!(
            g == w || (g - w).abs() <= 2e-6 * w.abs().max(1.0) || g.is_nan() && w.is_nan(),
            "{got:?} is not {want:?}"
        );
    }
}

fn same(name: &str, args: Vec<In>, shape: &[u64], values: &[f64]) {
    close(&run(name, args), &array(shape, values));
}

#[test]
fn movement() {
    let x = || In::I(array(&[2, 3], &[0., 1., 2., 3., 4., 5.]));
    same("flip", vec![x(), int(1)], &[2, 3], &[2., 1., 0., 5., 4., 3.]);
    same("roll", vec![x(), int(1)], &[2, 3], &[5., 0., 1., 2., 3., 4.]);
    same("roll", vec![x(), int(-1), int(1)], &[2, 3], &[1., 2., 0., 4., 5., 3.]);
    same(
        "tile",
        vec![x(), ints(&[2, 2])],
        &[4, 6],
        &[0., 1., 2., 0., 1., 2., 3., 4., 5., 3., 4., 5., 0., 1., 2., 0., 1., 2., 3., 4., 5., 3., 4., 5.],
    );
    same("repeat", vec![x(), int(2), int(0)], &[4, 3], &[0., 1., 2., 0., 1., 2., 3., 4., 5., 3., 4., 5.]);
    same("pad", vec![x(), ints(&[0, 1, 1, 0]), int(9)], &[3, 4], &[9., 0., 1., 2., 9., 3., 4., 5., 9., 9., 9., 9.]);
    same("slice", vec![x(), ints(&[0, 1]), ints(&[-1, 3])], &[1, 2], &[1., 2.]);
    same("moveaxis", vec![x(), int(0), int(-1)], &[3, 2], &[0., 3., 1., 4., 2., 5.]);
    same("concat", vec![x(), x(), int(1)], &[2, 6], &[0., 1., 2., 0., 1., 2., 3., 4., 5., 3., 4., 5.]);
    same("stack", vec![x(), x(), int(-1)], &[2, 3, 2], &[0., 0., 1., 1., 2., 2., 3., 3., 4., 4., 5., 5.]);
    let parts = run_all("split", vec![x(), ints(&[1]), int(1)]);
    assert_eq!(parts, [array(&[2, 1], &[0., 3.]), array(&[2, 2], &[1., 2., 4., 5.])]);
}

#[test]
fn creation_and_diagonals() {
    let x = || In::I(array(&[2, 3], &[0., 1., 2., 3., 4., 5.]));
    same("arange", vec![int(5), int(0), int(-2)], &[3], &[5., 3., 1.]);
    same("arange", vec![In::S(Arg::Float(0.5)), In::S(Arg::Float(2.0)), In::S(Arg::Float(0.5))], &[3], &[0.5, 1., 1.5]);
    same("linspace", vec![int(0), int(1), int(5)], &[5], &[0., 0.25, 0.5, 0.75, 1.]);
    same("eye", vec![int(2), int(3), int(1)], &[2, 3], &[0., 1., 0., 0., 0., 1.]);
    same("tri", vec![int(2)], &[2, 2], &[1., 0., 1., 1.]);
    same("tril", vec![x()], &[2, 3], &[0., 0., 0., 3., 4., 0.]);
    same("triu", vec![x(), int(1)], &[2, 3], &[0., 1., 2., 0., 0., 5.]);
    same("diag", vec![x(), int(1)], &[2], &[1., 5.]);
    same("diag", vec![x(), int(-1)], &[1], &[3.]);
    let v = || In::I(array(&[2], &[7., 8.]));
    same("diag", vec![v(), int(1)], &[3, 3], &[0., 7., 0., 0., 0., 8., 0., 0., 0.]);
    same("diag", vec![v(), int(-1)], &[3, 3], &[0., 0., 0., 7., 0., 0., 0., 8., 0.]);
    same("trace", vec![x()], &[], &[4.]);
    same("one_hot", vec![v(), int(8)], &[2, 8], &[0., 0., 0., 0., 0., 0., 0., 1., 0., 0., 0., 0., 0., 0., 0., 0.]);
}

#[test]
fn positions() {
    let x = || In::F(array(&[2, 3], &[3., 1., 2., 0., 5., 4.]));
    same("take", vec![x(), In::I(array(&[2], &[2., 0.])), int(1)], &[2, 2], &[2., 3., 4., 0.]);
    same("gather", vec![x(), int(1), In::I(array(&[2, 1], &[1., 2.]))], &[2, 1], &[1., 4.]);
    same("gather", vec![x(), int(0), In::I(array(&[1, 2], &[1., 0.]))], &[1, 2], &[0., 1.]);
    same(
        "scatter_add",
        vec![x(), int(0), In::I(array(&[2, 2], &[1., 0., 1., 0.])), In::F(array(&[2, 2], &[1., 2., 3., 4.]))],
        &[2, 3],
        &[3., 7., 2., 4., 5., 4.],
    );
    let top = run_all("topk", vec![x(), int(2)]);
    assert_eq!(top, [array(&[2, 2], &[3., 2., 5., 4.]), array(&[2, 2], &[0., 2., 1., 2.])]);
    same("argsort", vec![x(), int(0)], &[2, 3], &[1., 0., 0., 0., 1., 1.]);
    same("argmax", vec![x()], &[], &[4.]);
    same("argmin", vec![x(), int(1)], &[2], &[1., 0.]);
    same("cumsum", vec![x()], &[6], &[3., 4., 6., 6., 11., 15.]);
    same("cumprod", vec![x(), int(0)], &[2, 3], &[3., 1., 2., 0., 5., 8.]);
}

#[test]
fn tokens_go_to_experts_and_back() {
    let x = || In::F(array(&[3, 2], &[1., 2., 3., 4., 5., 6.]));
    // Token 0 chooses experts 1 and 0, token 1 experts 1 and 2, token 2 (a tie) experts 0 and 1.
    let gates = || In::F(array(&[3, 3], &[0.25, 0.75, 0., 0., 0.5, 0.25, 0.5, 0.5, 0.]));
    same(
        "moe_dispatch",
        vec![x(), gates(), int(2)],
        &[3, 3, 2],
        &[1., 2., 5., 6., 0., 0., 1., 2., 3., 4., 5., 6., 3., 4., 0., 0., 0., 0.],
    );
    // With room for one token each, the later ones are left out.
    let one = run("moe_dispatch", vec![x(), gates(), int(2), int(1)]);
    close(&one, &array(&[3, 1, 2], &[1., 2., 1., 2., 3., 4.]));
    let all = run("moe_dispatch", vec![x(), gates(), int(2)]);
    same("moe_combine", vec![In::F(all), gates(), int(2)], &[3, 2], &[1., 2., 2.25, 3., 5., 6.]);
    same("moe_combine", vec![In::F(one), gates(), int(2)], &[3, 2], &[1., 2., 0.75, 1., 0., 0.]);
    let none = array(&[0, 3], &[]);
    same("moe_dispatch", vec![In::F(array(&[0, 2], &[])), In::F(none), int(1)], &[3, 0, 2], &[]);
}

#[test]
fn reductions() {
    let x = noise(&[3, 4]);
    let mean = x.values.iter().sum::<f64>() / 12.0;
    let var = x.values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 12.0;
    same("mean", vec![In::F(x.clone())], &[], &[mean]);
    same("var", vec![In::F(x.clone())], &[], &[var]);
    same("std", vec![In::F(x.clone())], &[], &[var.sqrt()]);
    same("mean", vec![In::I(array(&[2], &[1., 2.]))], &[], &[1.5]);
    let rows: Vec<f64> = x.values.chunks(4).map(|r| r.iter().map(|v| v.exp()).sum::<f64>().ln()).collect();
    same("logsumexp", vec![In::F(x.clone()), int(1)], &[3], &rows);
    let low = f64::NEG_INFINITY;
    same("logsumexp", vec![In::F(array(&[3], &[low, low, low]))], &[], &[low]);
    same("logsumexp", vec![In::F(array(&[2], &[1000., 1000.]))], &[], &[1000. + 2f64.ln()]);
    let soft: Vec<f64> = x.values.iter().enumerate().map(|(i, v)| (v - rows[i / 4]).exp()).collect();
    same("softmax", vec![In::F(x.clone())], &[3, 4], &soft);
    let logs: Vec<f64> = x.values.iter().enumerate().map(|(i, v)| v - rows[i / 4]).collect();
    same("log_softmax", vec![In::F(x.clone())], &[3, 4], &logs);
    let targets = In::I(array(&[3], &[1., 3., 0.]));
    same("cross_entropy", vec![In::F(x.clone()), targets], &[], &[-(logs[1] + logs[7] + logs[8]) / 3.0]);
    let p = array(&[3, 4], &[0.25; 12]);
    same(
        "cross_entropy",
        vec![In::F(x.clone()), In::F(p), In::S(Arg::Str("sum".into()))],
        &[],
        &[-logs.iter().sum::<f64>() / 4.0],
    );
    same(
        "mse",
        vec![In::F(x.clone()), In::F(array(&[3, 4], &[1.0; 12]))],
        &[],
        &[x.values.iter().map(|v| (v - 1.0).powi(2)).sum::<f64>() / 12.0],
    );
}

#[test]
fn normalisation() {
    let x = noise(&[2, 4]);
    let (w, bias) = (array(&[4], &[1., 2., 3., 4.]), array(&[4], &[0.5; 4]));
    let rows = |centre: bool| -> Vec<f64> {
        let mut out = vec![];
        for row in x.values.chunks(4) {
            let mean = if centre { row.iter().sum::<f64>() / 4.0 } else { 0.0 };
            let var = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 4.0;
            let eps = if centre { 1e-5 } else { 1e-6 };
            out.extend(
                row.iter()
                    .enumerate()
                    .map(|(i, v)| (v - mean) / (var + eps).sqrt() * w.values[i] + if centre { 0.5 } else { 0.0 }),
            );
        }
        out
    };
    same("layer_norm", vec![In::F(x.clone()), ints(&[4]), In::F(w.clone()), In::F(bias)], &[2, 4], &rows(true));
    same("rms_norm", vec![In::F(x.clone()), ints(&[4]), In::F(w.clone())], &[2, 4], &rows(false));
    let stats = |v: f64| In::F(array(&[4], &[v; 4]));
    let want: Vec<f64> = x.values.iter().map(|v| (v - 0.5) / (2.0f64 + 1e-5).sqrt()).collect();
    same("batch_norm", vec![In::F(x.clone()), stats(0.5), stats(2.0)], &[2, 4], &want);
}

#[test]
fn rotation() {
    let x = noise(&[1, 3, 4]);
    let mut want = vec![0.0; 12];
    for t in 0..3 {
        for i in 0..2 {
            let angle = t as f64 * 10000f64.powf(-(i as f64) / 2.0);
            let (u, v) = (x.values[t * 4 + i], x.values[t * 4 + i + 2]);
            want[t * 4 + i] = u * angle.cos() - v * angle.sin();
            want[t * 4 + i + 2] = v * angle.cos() + u * angle.sin();
        }
    }
    same("rope", vec![In::F(x.clone())], &[1, 3, 4], &want);
    // The same with each pair side by side.
    let beside = |v: &[f64]| -> Vec<f64> { v.chunks(4).flat_map(|c| [c[0], c[2], c[1], c[3]]).collect() };
    let args = vec![
        In::F(array(&[1, 3, 4], &beside(&x.values))),
        In::S(Arg::None),
        In::S(Arg::Float(10000.0)),
        int(-2),
        In::S(Arg::Bool(true)),
    ];
    same("rope", args, &[1, 3, 4], &beside(&want));
}

/// The sum of products by a loop over all labels.
fn naive_einsum(equation: &str, operands: &[Array]) -> Array {
    let (left, out) = equation.split_once("->").unwrap();
    let terms: Vec<&str> = left.split(',').collect();
    let mut sizes = BTreeMap::new();
    for (term, x) in terms.iter().zip(operands) {
        sizes.extend(term.chars().zip(x.shape.iter().map(|&n| n as usize)));
    }
    let letters: Vec<char> = sizes.keys().copied().collect();
    let at = |term: &str, index: &BTreeMap<char, usize>| term.chars().fold(0, |n, c| n * sizes[&c] + index[&c]);
    let shape: Vec<u64> = out.chars().map(|c| sizes[&c] as u64).collect();
    let mut values = vec![0.0; shape.iter().product::<u64>() as usize];
    let total: usize = sizes.values().product();
    for mut flat in 0..total {
        let mut index = BTreeMap::new();
        for &c in letters.iter().rev() {
            index.insert(c, flat % sizes[&c]);
            flat /= sizes[&c];
        }
        values[at(out, &index)] += terms.iter().zip(operands).map(|(t, x)| x.values[at(t, &index)]).product::<f64>();
    }
    Array { shape, values }
}

#[test]
fn contractions() {
    for (equation, shapes) in [
        ("ij,jk->ik", vec![vec![2, 3], vec![3, 4]]),
        ("bqhd,bkhd->bhqk", vec![vec![2, 3, 2, 4], vec![2, 5, 2, 4]]),
        ("ii->i", vec![vec![3, 3]]),
        ("ii->", vec![vec![3, 3]]),
        ("iji->j", vec![vec![3, 2, 3]]),
        ("ij->ji", vec![vec![2, 3]]),
        ("ij,ij->ij", vec![vec![2, 3], vec![2, 3]]),
        ("i,j,k->kij", vec![vec![2], vec![3], vec![4]]),
        ("ab,bc,cd->ad", vec![vec![2, 3], vec![3, 4], vec![4, 2]]),
        ("ab,b,cb->ac", vec![vec![2, 3], vec![3], vec![4, 3]]),
        ("abc,d->b", vec![vec![2, 3, 2], vec![2]]),
        ("bij,bjk,bk->bi", vec![vec![2, 3, 4], vec![2, 4, 2], vec![2, 2]]),
        ("i,i->", vec![vec![1], vec![1]]),
    ] {
        let operands: Vec<Array> = shapes.iter().map(|s: &Vec<u64>| noise(s)).collect();
        let mut args = vec![In::S(Arg::Str(equation.into()))];
        args.extend(operands.iter().cloned().map(In::F));
        close(&run("einsum", args), &naive_einsum(equation, &operands));
    }
    let (x, y) = (noise(&[2, 3, 4]), noise(&[4, 3, 5]));
    let want = naive_einsum("abc,cbd->ad", &[x.clone(), y.clone()]);
    close(&run("tensordot", vec![In::F(x), In::F(y), ints(&[1, 2, 1, 0])]), &want);
    for (a, b, equation) in [
        (vec![3], vec![3], "k,k->"),
        (vec![3], vec![3, 2], "k,kn->n"),
        (vec![2, 3], vec![3], "mk,k->m"),
        (vec![4, 2, 3], vec![3, 5], "bmk,kn->bmn"),
        (vec![2, 3], vec![4, 3, 5], "mk,bkn->bmn"),
        (vec![4, 2, 3], vec![4, 3, 5], "bmk,bkn->bmn"),
    ] {
        let (x, y) = (noise(&a), noise(&b));
        let want = naive_einsum(equation, &[x.clone(), y.clone()]);
        close(&run("matmul", vec![In::F(x), In::F(y)]), &want);
    }
}

#[test]
fn random_numbers() {
    let key = |n: i64| {
        let k = run("random.key", vec![int(n)]);
        assert_eq!(k.values, [(n & 0xffff_ffff) as f64, (n >> 32 & 0xffff_ffff) as f64]);
        k
    };
    let moments = |a: &Array| {
        let n = a.values.len() as f64;
        let mean = a.values.iter().sum::<f64>() / n;
        (mean, a.values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n)
    };
    let u = run("random.uniform", vec![In::I(key(7)), ints(&[20000])]);
    assert!(u.values.iter().all(|v| (0.0..1.0).contains(v)));
    let (mean, var) = moments(&u);
    assert!((mean - 0.5).abs() < 0.01 && (var - 1.0 / 12.0).abs() < 0.005, "{mean} {var}");
    let z = run("random.normal", vec![In::I(key(3)), ints(&[20000])]);
    let (mean, var) = moments(&z);
    assert!(mean.abs() < 0.03 && (var - 1.0).abs() < 0.05, "{mean} {var}");
    let keys = run("random.split", vec![In::I(key(1)), int(3)]);
    let rows: std::collections::BTreeSet<String> = keys.values.chunks(2).map(|k| format!("{k:?}")).collect();
    assert_eq!((keys.shape, rows.len()), (vec![3, 2], 3));
    let fold = |k: i64, d: i64| run("random.fold_in", vec![In::I(key(k)), int(d)]).values;
    assert_ne!(fold(0, 1), fold(1, 0));
    assert_eq!(fold(0, 1), fold(0, 1));
    let dice = run(
        "random.randint",
        vec![In::I(key(2)), ints(&[600]), In::S(Arg::Scalar(Scalar::I(-2))), In::S(Arg::Scalar(Scalar::I(4)))],
    );
    assert!((-2..4).all(|v| dice.values.iter().filter(|d| **d == v as f64).count() > 60));
    let mut p = run("random.permutation", vec![In::I(key(1)), int(50)]).values;
    assert!(p.windows(2).any(|w| w[0] > w[1]));
    p.sort_by(f64::total_cmp);
    assert_eq!(p, (0..50).map(f64::from).collect::<Vec<_>>());
    let coin = run("random.bernoulli", vec![In::I(key(5)), In::S(Arg::Scalar(Scalar::F(0.25))), ints(&[4000])]);
    assert!((moments(&coin).0 - 0.25).abs() < 0.03);
    let kept = run("dropout", vec![In::F(array(&[4000], &[1.0; 4000])), In::S(Arg::Float(0.5)), In::I(key(9))]);
    assert!(kept.values.iter().all(|v| *v == 0.0 || *v == 2.0) && (moments(&kept).0 - 1.0).abs() < 0.06);
}

/// Scores of every query and key, their exponentials, and the mean of the values, in f64.
fn attention_of(q: &Array, k: &Array, v: &Array, keep: &dyn Fn(usize, usize) -> bool, scale: f64) -> Array {
    attention_with(q, k, v, keep, &|s| s * scale)
}

/// The same with scores that `changed` makes of products.
fn attention_with(
    q: &Array,
    k: &Array,
    v: &Array,
    keep: &dyn Fn(usize, usize) -> bool,
    changed: &dyn Fn(f64) -> f64,
) -> Array {
    let at = |a: &Array, h: usize, i: usize, j: usize| {
        let (n, m) = (a.shape[1] as usize, a.shape[2] as usize);
        a.values[(h * n + i) * m + j]
    };
    let [heads, s, d] = [0, 1, 2].map(|i| q.shape[i] as usize);
    let (t, e) = (v.shape[1] as usize, v.shape[2] as usize);
    let group = heads / k.shape[0] as usize;
    let mut out = vec![];
    for (h, i) in (0..heads).flat_map(|h| (0..s).map(move |i| (h, i))) {
        let score = |j: usize| changed((0..d).map(|f| at(q, h, i, f) * at(k, h / group, j, f)).sum::<f64>());
        let weights: Vec<f64> = (0..t).map(|j| if keep(i, j) { score(j).exp() } else { 0.0 }).collect();
        let sum: f64 = weights.iter().sum();
        for f in 0..e {
            let mean = (0..t).map(|j| weights[j] * at(v, h / group, j, f)).sum::<f64>() / sum;
            out.push(if sum == 0.0 { 0.0 } else { mean });
        }
    }
    array(&[heads as u64, s as u64, e as u64], &out)
}

#[test]
fn attention() {
    let (q, k, v) = (noise(&[4, 5, 3]), noise(&[2, 7, 3]), noise(&[2, 7, 2]));
    let given = || vec![In::F(q.clone()), In::F(k.clone()), In::F(v.clone())];
    let third = 1.0 / 3f64.sqrt();
    close(&run("attention", given()), &attention_of(&q, &k, &v, &|_, _| true, third));
    let mut args = given();
    args.extend([In::S(Arg::Bool(true)), In::S(Arg::None), In::S(Arg::Float(0.5))]);
    close(&run("attention", args), &attention_of(&q, &k, &v, &|i, j| j <= i, 0.5));
    // Scores that are kept below 0.25.
    let mut args = given();
    args.extend([In::S(Arg::Bool(true)), In::S(Arg::None), In::S(Arg::None), In::S(Arg::Float(0.25))]);
    close(&run("attention", args), &attention_with(&q, &k, &v, &|i, j| j <= i, &|s| 0.25 * (s * third / 0.25).tanh()));
    // More queries than keys, and a bias that leaves the second query nothing.
    let (q, k, v) = (noise(&[1, 4, 3]), noise(&[1, 2, 3]), noise(&[1, 2, 3]));
    let bias = array(&[4, 1], &[0.0, f64::NEG_INFINITY, 0.0, 0.0]);
    let args = vec![In::F(q.clone()), In::F(k.clone()), In::F(v.clone()), In::S(Arg::Bool(true)), In::F(bias)];
    close(&run("attention", args), &attention_of(&q, &k, &v, &|i, j| j <= i && i != 1, third));
}

#[test]
fn values_that_causal_attention_does_not_reach_may_be_infinite() {
    let x = noise(&[3, 2]);
    let v = array(&[3, 2], &[1.0, 2.0, 3.0, 4.0, f64::INFINITY, f64::NAN]);
    let args = vec![In::F(x.clone()), In::F(x.clone()), In::F(v), In::S(Arg::Bool(true))];
    let got = run("attention", args);
    assert!(got.values[..4].iter().all(|v| v.is_finite()), "{got:?}");
    assert!(!got.values[4].is_finite() && got.values[5].is_nan());
    // No keys at all.
    let (q, none) = (noise(&[2, 3]), array(&[0, 3], &[]));
    same("attention", vec![In::F(q), In::F(none.clone()), In::F(none)], &[2, 3], &[0.0; 6]);
}
