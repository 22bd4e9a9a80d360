//! The layouts that types claim: for every operator and every placement of its operands over a
//! mesh of two by three devices, the layout that the checker derives is one that devices reach
//! without moving anything but positions that the operator takes from elsewhere, and a refusal names
//! what is so. What is refused is listed with its reason.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tessera_base::{DType, Mesh, Monoid, Sharding};
use tessera_ir::graph::Graph;
use tessera_ops::prim::{Prim, Scalar, Steps};
use tessera_ops::surface::{Hints, OpDef, all};
use tessera_shard::propagate_sharding::{Problem, derive, nodes};
use tessera_tests::arguments::Call;
use tessera_tests::compare::interpreted;
use tessera_tests::exact::numbers;
use tessera_tests::laws::on_two_threads;
use tessera_tests::meshes::{combinations, described, mesh, stated, with_inputs};
use tessera_tests::operators::expand;
use tessera_tests::random::{Fill, Random};
use tessera_tests::random_graph::{Builder, Case};
use tessera_tests::summands;

/// Sizes of operands; dims are split where the devices divide them.
const SIZES: &[u64] = &[6, 1, 2, 6, 12];
/// Element types of calls; a row takes some of them.
const DTYPES: &[DType] = &[DType::F32, DType::F32, DType::F64, DType::I64, DType::I8, DType::C64, DType::Bool];
/// Calls that are tried for one row and type.
const TRIES: u64 = 12;
/// Placements of one call: all where there are so many at most, else so many random ones.
const PLACEMENTS: usize = 3000;
/// How far sums of summands may be from the sum, relative to the largest element.
const NEAR: f64 = 1e-3;

/// An accepted call of a row, the `n`-th one of its type, with small numbers.
fn call(def: &'static OpDef, row: u64, n: u64) -> Option<Case> {
    let dtype = DTYPES[n as usize % DTYPES.len()];
    (0..TRIES).find_map(|try_| {
        let seed = (row * 16 + n) * 16 + try_;
        let mut b = Builder::plain(seed);
        let mut call = Call::among(&mut b, dtype, SIZES[seed as usize * 5 % SIZES.len()], SIZES);
        call.fill = Fill::Small;
        let args = call.arguments(def);
        b.graph.outputs = expand(&mut b, def, &args, &Hints::default()).ok()?;
        b.graph.name = format!("{} of {dtype}", def.name);
        let case = Case { graph: tessera_graph::prune(&b.graph), inputs: b.data };
        interpreted(&case.graph, &case.inputs).is_ok().then_some(case)
    })
}

/// Layouts of an input that its sizes allow.
fn allowed(mesh: &Arc<Mesh>, shape: &[u64], dtype: DType) -> Vec<Sharding> {
    let monoids: &[Monoid] = match dtype {
        DType::Bool => &[],
        DType::C64 => &[Monoid::Sum],
        _ => &[Monoid::Sum, Monoid::Max, Monoid::Min],
    };
    let even = |l: &Sharding| (0..shape.len()).all(|d| shape[d].is_multiple_of(l.parts(d)));
    stated(mesh, shape.len(), monoids).into_iter().filter(even).collect()
}

/// Numbers that are the same but for the order of sums.
fn near(g: &Graph, output: usize, expected: &[u8], got: &[u8]) -> Result<(), String> {
    let dtype = g.ty(g.outputs[output]).dtype;
    let real = |s: &Scalar| match *s {
        Scalar::F(x) => x,
        Scalar::I(n) => n as f64,
    };
    let (expected, got) = (numbers(dtype, expected), numbers(dtype, got));
    let largest = expected.iter().map(real).filter(|x| x.is_finite()).fold(1.0, |m: f64, x| m.max(x.abs()));
    for (i, (e, g)) in expected.iter().zip(&got).enumerate() {
        let (x, y) = (real(e), real(g));
        let same = e == g || !x.is_finite() || dtype.is_float() | dtype.is_complex() && (x - y).abs() <= NEAR * largest;
        if !same {
            return Err(format!("output {output}: element {i} is {y}, not {x}"));
        }
    }
    Ok(())
}

/// Whether a refusal says what is so.
fn names_what_is_so(g: &Graph, problem: &Problem) -> Result<(), String> {
    let layout = |n: &u32| &g.inputs[*n as usize].ty.sharding;
    let uses = |axis: &str| {
        let tensors = g.inputs.iter().map(|i| &i.ty.sharding);
        tensors.filter(|s| s.dim_of(axis).is_some() || s.partial_over(axis).is_some()).count()
    };
    let so = match problem {
        Problem::Conflict { axis } | Problem::Order { axis } => uses(axis) > 0,
        Problem::Apart { axis, at } => {
            g.inputs.iter().any(|i| i.ty.sharding.position(axis) == Some(*at)) && uses(axis) > 1
        }
        Problem::Partial { axis, monoid, input: Some(n) } => layout(n).partial_over(axis) == Some(*monoid),
        Problem::Whole { axis, dim, input: Some(n) } => layout(n).dim_of(axis) == Some(*dim),
        Problem::Divide { axis, parts, from, to, .. } => {
            uses(axis) > 0 && (!from.is_multiple_of(*parts) || !to.is_multiple_of(*parts))
        }
        Problem::Partial { axis, input: None, .. } => {
            return Err(format!("no input is blamed for a partial value over {axis}"));
        }
        Problem::Whole { axis, .. } => uses(axis) > 0,
        Problem::Meshes(..) => false,
    };
    if so { Ok(()) } else { Err(format!("{problem:?} is not so")) }
}

/// How many placements were taken and refused.
#[derive(Default, Clone, Copy)]
struct Seen {
    taken: usize,
    refused: usize,
}

fn check(case: &Case, layouts: &[Sharding], random: &mut Random, seen: &mut Seen) -> Result<(), String> {
    let g = with_inputs(&case.graph, layouts);
    let told = |e: String| format!("{}: {}: {e}", g.name, described(&g));
    match nodes(&g) {
        Err(problem) => {
            seen.refused += 1;
            names_what_is_so(&g, &problem).map_err(told)
        }
        Ok(known) => {
            seen.taken += 1;
            let expected = interpreted(&case.graph, &case.inputs)?;
            let got = summands::outputs(&g, &known, &case.inputs, random).map_err(told)?;
            let mut all = expected.iter().zip(&got).enumerate();
            all.try_for_each(|(i, (e, g))| near(&case.graph, i, e, g)).map_err(told)
        }
    }
}

#[test]
fn devices_reach_the_layouts_of_types() {
    let start = Instant::now();
    let rows: Vec<&OpDef> = all().filter(|d| d.unsupported.is_none()).collect();
    let total = Mutex::new(BTreeMap::<&str, Seen>::new());
    let mut failures = on_two_threads(rows.len(), |row| {
        let (mut out, mut seen) = (vec![], Seen::default());
        for n in 0..DTYPES.len() as u64 {
            let Some(case) = call(rows[row], row as u64, n) else { continue };
            if case.graph.nodes.iter().any(|n| matches!(n.prim, Prim::Scan { .. })) {
                continue;
            }
            let mut random = Random::new(row as u64 * 16 + n);
            let inputs = case.graph.inputs.iter().filter(|i| !i.scalar);
            let choices: Vec<_> = inputs.map(|i| allowed(&mesh(), &i.ty.shape, i.ty.dtype)).collect();
            for layouts in combinations(&choices, PLACEMENTS, &mut random) {
                out.extend(check(&case, &layouts, &mut random, &mut seen).err());
            }
        }
        total.lock().unwrap_or_else(|e| e.into_inner()).insert(rows[row].name, seen);
        out
    });
    let seen = total.into_inner().unwrap_or_else(|e| e.into_inner());
    let sum = |f: fn(&Seen) -> usize| seen.values().map(f).sum::<usize>();
    let (taken, refused) = (sum(|s| s.taken), sum(|s| s.refused));
    println!(
        "{} operators, {taken} placements taken, {refused} refused, in {:.1} s",
        rows.len(),
        start.elapsed().as_secs_f64()
    );
    if std::env::var_os("TESSERA_SHOW").is_some() {
        seen.iter().for_each(|(name, s)| println!("{name}: {} taken, {} refused", s.taken, s.refused));
    }
    let count = failures.len();
    failures.dedup_by_key(|f| f.split(':').next().unwrap_or("").to_owned());
    failures.truncate(12);
    assert!(count == 0, "{count} failures\n{}", failures.join("\n"));
}

// ---- What is refused ------------------------------------------------------------------------

/// Calls of one row that are looked at for refusals.
const CALLS: u64 = 16;

/// The operators that refuse some dim of some operand when nothing else is split, and why.
const REFUSED: &[(&str, &str)] = &[
    ("argmax", MINOR),
    ("argmin", MINOR),
    ("argsort", ALONG),
    ("attention", "rows of a causal product know their position"),
    ("cholesky", MATRIX),
    ("conv1d", KERNEL),
    ("conv2d", MINOR),
    ("conv3d", MINOR),
    ("conv_transpose2d", MINOR),
    ("bincount", "any element may count for any int"),
    ("cummax", ALONG),
    ("cummin", ALONG),
    ("cumprod", ALONG),
    ("cumsum", ALONG),
    ("diag", MINOR),
    ("dropout", KEY),
    ("eig", MATRIX),
    ("eigh", MATRIX),
    ("eigvals", MATRIX),
    ("eigvalsh", MATRIX),
    ("fft", ALONG),
    ("flatten", MINOR),
    ("ifft", ALONG),
    ("ifft2", ALONG),
    ("irfft", ALONG),
    ("irfft2", ALONG),
    ("logcumsumexp", ALONG),
    ("lu_factor", MATRIX),
    ("median", ALONG),
    ("moe_combine", TOKENS),
    ("moe_dispatch", TOKENS),
    ("percentile", ALONG),
    ("qr", MATRIX),
    ("quantile", ALONG),
    ("random.bernoulli", KEY),
    ("random.beta", KEY),
    ("random.binomial", KEY),
    ("random.categorical", KEY),
    ("random.cauchy", KEY),
    ("random.chisquare", KEY),
    ("random.choice", KEY),
    ("random.dirichlet", KEY),
    ("random.exponential", KEY),
    ("random.fold_in", KEY),
    ("random.gamma", KEY),
    ("random.geometric", KEY),
    ("random.gumbel", KEY),
    ("random.laplace", KEY),
    ("random.loggamma", KEY),
    ("random.logistic", KEY),
    ("random.normal", KEY),
    ("random.permutation", KEY),
    ("random.poisson", KEY),
    ("random.rademacher", KEY),
    ("random.randint", KEY),
    ("random.split", KEY),
    ("random.t", KEY),
    ("random.truncated_normal", KEY),
    ("random.uniform", KEY),
    ("repeat", MINOR),
    ("rfft", ALONG),
    ("rfft2", ALONG),
    ("roll", MINOR),
    ("scatter_add", "any position may add to any"),
    ("solve", MATRIX),
    ("solve_triangular", MATRIX),
    ("sort", ALONG),
    ("svd", MATRIX),
    ("svdvals", MATRIX),
    ("tile", "every device would need several blocks"),
    ("topk", "all positions of a dim in order are a sort of it"),
    ("trace", MINOR),
    ("argwhere", COUNTED),
    ("count_unique", COUNTED),
    ("nonzero", COUNTED),
    ("unique", COUNTED),
    ("segment_max", ROWS),
    ("segment_mean", ROWS),
    ("segment_min", ROWS),
    ("segment_sum", ROWS),
];
/// The dim that an operator goes along.
const ALONG: &str = "all positions are needed, and no other dim can be split meanwhile";
/// A dim that is joined with one before it.
const MINOR: &str = "blocks of a minor dim are no blocks of the joined one";
const MATRIX: &str = "a matrix is whole where it is taken apart";
const KERNEL: &str = "the elements of a kernel are joined with its channels";
const KEY: &str = "a key is two numbers";
const COUNTED: &str = "all elements are counted in their order";
const ROWS: &str = "any row may be part of any other";
const TOKENS: &str = "any expert may take any token";

/// Whether an operator refuses an operand of which one axis splits one dim, with all others in full.
fn refuses(def: &'static OpDef) -> bool {
    // The same calls, wherever in the table the row stands.
    let row = def.name.bytes().fold(7u64, |h, b| h * 31 % 1_000_003 + u64::from(b));
    (0..CALLS).filter_map(|n| call(def, row, n)).any(|case| {
        let shapes: Vec<_> = case.graph.inputs.iter().filter(|i| !i.scalar).map(|i| i.ty.shape.clone()).collect();
        let dims = shapes.iter().enumerate().flat_map(|(i, shape)| (0..shape.len()).map(move |d| (i, d)));
        dims.filter(|&(i, d)| shapes[i][d].is_multiple_of(2)).any(|(i, d)| {
            let whole =
                |shape: &Vec<u64>| Sharding { mesh: Some(mesh()), dims: vec![vec![]; shape.len()], partial: vec![] };
            let mut layouts: Vec<Sharding> = shapes.iter().map(whole).collect();
            layouts[i].dims[d].push("a".into());
            derive(&with_inputs(&case.graph, &layouts)).is_err()
        })
    })
}

#[test]
fn nothing_is_refused_by_accident() {
    let found: Vec<&str> = all().filter(|d| d.unsupported.is_none() && refuses(d)).map(|d| d.name).collect();
    let listed = |name: &&str| REFUSED.iter().any(|r| r.0 == *name);
    let new: Vec<&&str> = found.iter().filter(|name| !listed(name)).collect();
    let gone: Vec<&str> = REFUSED.iter().map(|r| r.0).filter(|name| !found.contains(name)).collect();
    assert!(new.is_empty() && gone.is_empty(), "refused and not listed: {new:?}; listed and not refused: {gone:?}");
}

// ---- Products -------------------------------------------------------------------------------

/// What an operand of a product, or the product, is along one axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Along {
    Same,
    Rows,
    Columns,
    Sum,
}

/// The product along one axis; `None` is a conflict. The contracted dim is the first one's
/// columns and the second one's rows.
fn product(a: Along, b: Along) -> Option<Along> {
    use Along::*;
    match (a, b) {
        (Same, Same) => Some(Same),
        (Rows, Same) => Some(Rows),
        (Same, Columns) => Some(Columns),
        (Same, Rows) | (Columns, Same | Rows) => Some(Sum),
        _ => None,
    }
}

fn along(layout: &Sharding, axis: &str) -> Along {
    match (layout.dim_of(axis), layout.partial_over(axis)) {
        (Some(0), _) => Along::Rows,
        (Some(_), _) => Along::Columns,
        (None, Some(Monoid::Sum)) => Along::Sum,
        _ => Along::Same,
    }
}

#[test]
fn all_placements_of_a_product() {
    let m = mesh();
    let mut b = Builder::plain(0);
    let [x, y] = [[12, 6], [6, 12]].map(|shape| b.input_of(&shape, DType::F32, vec![], false));
    let dot = Prim::dot(DType::F32, Steps::All);
    b.graph.outputs = vec![b.push(dot, &[x, y], &[12, 12], DType::F32)];
    // Where both axes split a dim, in the order of the mesh.
    let in_order = |l: &Sharding| l.dims.iter().all(|axes| axes.is_sorted());
    let all: Vec<Sharding> = stated(&m, 2, &[]).into_iter().filter(in_order).collect();
    let mut count = 0;
    for pair in combinations(&[all.clone(), all], 81, &mut Random::new(0)) {
        count += 1;
        let expected: Vec<Option<Along>> =
            m.names().iter().map(|axis| product(along(&pair[0], axis), along(&pair[1], axis))).collect();
        // `b` alone on one side of the contracted dim and after `a` on the other: other blocks.
        let minor = |l: &Sharding, d: usize| l.axes(d) == ["b"];
        let both = |l: &Sharding, d: usize| l.axes(d) == ["a", "b"];
        let crossed = minor(&pair[0], 1) && both(&pair[1], 0) || both(&pair[0], 1) && minor(&pair[1], 0);
        let got = derive(&with_inputs(&b.graph, &pair));
        let shown = format!("{} @ {}", pair[0].describe(2), pair[1].describe(2));
        match got {
            Ok(found) => {
                let found: Vec<Option<Along>> = m.names().iter().map(|axis| Some(along(&found[0], axis))).collect();
                assert_eq!(found, expected, "{shown}");
                assert!(!crossed, "{shown}");
            }
            Err(Problem::Conflict { axis }) => {
                let at = m.names().iter().position(|a| *a == axis);
                assert!(at.is_some_and(|at| expected[at].is_none()), "{shown}: a conflict over {axis}");
            }
            Err(Problem::Order { .. }) => assert!(crossed, "{shown}"),
            Err(other) => panic!("{shown}: {other:?}"),
        }
    }
    assert_eq!(count, 81);
}
