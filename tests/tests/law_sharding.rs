//! Every operator of the table over a mesh of two by three devices: however its operands lie,
//! and whether or not sizes divide, the devices together give the bits of one. So do random programs;
//! `TESSERA_SEED=N` runs one of these, `TESSERA_PROGRAMS=N` so many. `TESSERA_CALLS=N` plays so many calls of each
//! operator and type, with `TESSERA_OPERATOR=NAME` of this one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tessera::backend::{Backend, Options};
use tessera::cache::DiskCache;
use tessera::mesh_run::{MeshError, MeshRun};
use tessera_base::{DType, Mesh, Sharding};
use tessera_ir::graph::{Node, NodeId, Policy};
use tessera_ir::verify::verify;
use tessera_ops::map::MapOp;
use tessera_ops::prim::fold::DOT_LEAF;
use tessera_ops::prim::{LEAF, Order, Prim, Reduction, Scalar, Steps};
use tessera_ops::surface::{Hints, OpDef, all};
use tessera_runtime::execute::{Argument, PlanError};
use tessera_runtime::pool::Pool;
use tessera_runtime::tensor::Parts;
use tessera_runtime::tensor::{OutOfMemory, Tensor};
use tessera_shard::layout::real;
use tessera_shard::propagate_sharding::derive;
use tessera_shard::spmd_partition::divide;
use tessera_tests::arguments::Call;
use tessera_tests::bits::difference;
use tessera_tests::compare::{self, Bits, interpreted};
use tessera_tests::laws::{on_two_threads, seeds};
use tessera_tests::meshes::{
    self, arguments, combinations, described, go_together, layouts, mesh, on_mesh, play, with_inputs,
};
use tessera_tests::operators::{NAMES, expand, number_of};
use tessera_tests::random::{Fill, Random};
use tessera_tests::random_graph::{self, Builder, Case, Scale};

/// Sizes that the devices divide, and others: fewer elements than devices among them.
const SIZES: &[u64] = &[0, 1, 2, 3, 5, 6, 12];
/// Element types of calls; a row takes some of them.
const DTYPES: &[DType] = &[DType::F32, DType::F32, DType::Bf16, DType::I64, DType::C64, DType::Bool];
/// Calls that are tried for one row and type.
const TRIES: u64 = 12;
/// Placements of one call: all where there are so many at most, else so many random ones.
const PLACEMENTS: usize = 400;
/// Random programs, and placements of each.
const PROGRAMS: u64 = 6000;
const PLACEMENTS_OF_PROGRAM: usize = 4;
/// Meshes of random programs.
const MESHES: &[&[u64]] = &[&[2, 3], &[2, 3], &[4], &[2, 2, 2], &[1, 5], &[3, 1, 2]];
/// Random programs that are compiled.
const COMPILED: u64 = 150;
/// Threads of a compiled run; the devices share them.
const THREADS: usize = 2;

/// Operators and their further calls that failed once: a product over a split dim whose other operand only one position of
/// that axis has.
const FOUND: &[(&str, u64)] = &[("conv1d", 4)];
/// An accepted call of a row, the `n`-th one of its type.
fn call(def: &'static OpDef, row: u64, n: u64) -> Option<Case> {
    let dtype = DTYPES[n as usize];
    (0..TRIES).find_map(|try_| {
        let seed = (row * 16 + n) * 16 + try_;
        let mut b = Builder::plain(seed);
        let size = SIZES[(seed as usize * 5 + n as usize) % SIZES.len()];
        let args = Call::among(&mut b, dtype, size, SIZES).arguments(def);
        b.graph.outputs = expand(&mut b, def, &args, &Hints::default()).ok()?;
        b.graph.name = format!("{} of {dtype} ({row})", def.name);
        Some(Case { graph: b.graph, inputs: b.data })
    })
}

/// The layouts that outputs get: those that types say where they say one, none, random ones.
fn outputs(case: &Case, m: &Arc<Mesh>, inputs: &[Sharding], random: &mut Random) -> Vec<Option<Sharding>> {
    let any = |random: &mut Random| {
        let rank = |o: &tessera_ir::graph::NodeId| case.graph.ty(*o).shape.len();
        let all = |rank| layouts(m, rank);
        case.graph.outputs.iter().map(|o| Some(all(rank(o))[random.below(all(rank(o)).len())].clone())).collect()
    };
    match random.below(3) {
        0 => vec![None; case.graph.outputs.len()],
        1 => any(random),
        _ => match derive(&with_inputs(&case.graph, inputs)) {
            Ok(found) => found.into_iter().map(Some).collect(),
            Err(_) => any(random),
        },
    }
}

/// Some placements of the tensor inputs of a case.
fn placements(case: &Case, m: &Arc<Mesh>, most: usize, random: &mut Random) -> Vec<Vec<Sharding>> {
    let tensors = case.graph.inputs.iter().filter(|i| !i.scalar);
    let choices: Vec<Vec<Sharding>> = tensors.map(|i| layouts(m, i.ty.shape.len())).collect();
    combinations(&choices, most, random)
}

fn same(case: &Case, expected: &Bits, got: &Bits) -> Result<(), String> {
    let (expected, got) = match (expected, got) {
        (Err(_), Err(_)) => return Ok(()),
        (Err(a), Ok(_)) => return Err(format!("does not stop with `{a}`")),
        (Ok(_), Err(b)) => return Err(format!("stops: {b}")),
        (Ok(a), Ok(b)) => (a, b),
    };
    for (i, (e, g)) in expected.iter().zip(got).enumerate() {
        if let Some(what) = difference(case.graph.ty(case.graph.outputs[i]).dtype, e, g) {
            return Err(format!("output {i}: {what}"));
        }
    }
    Ok(())
}

/// Plays a placed case on the devices.
fn check(case: &Case, mesh: &Arc<Mesh>, expected: &Bits) -> Result<(), String> {
    let graph = tessera_graph::prune(&case.graph);
    let devices = divide(&graph, mesh);
    for (d, g) in devices.graphs.iter().enumerate() {
        let wrong = verify(g);
        if !wrong.is_empty() {
            return Err(format!("device {d}: {}\n{g}", wrong.join("; ")));
        }
    }
    TOGETHER.fetch_add(go_together(&devices)?, Ordering::Relaxed);
    same(case, expected, &play(&graph, &devices, &case.inputs))
}

/// Exchanges that went with another one.
static TOGETHER: AtomicUsize = AtomicUsize::new(0);

/// A random program, and a mesh on which some of its values change their layout.
fn program(seed: u64) -> (Arc<Mesh>, Case) {
    let mut random = Random::new(seed);
    let m = meshes::of(MESHES[random.below(MESHES.len())]);
    let case = random_graph::case(seed, Scale::Small);
    let graph = meshes::with_conversions(&case.graph, &m, &mut random);
    (m, Case { graph, ..case })
}

/// All placements of a case; how many there were, and what is wrong.
fn played(case: &Case, m: &Arc<Mesh>, most: usize, seed: u64) -> (usize, Vec<String>) {
    let mut random = Random::new(seed);
    let expected = interpreted(&case.graph, &case.inputs);
    let all = placements(case, m, most, &mut random);
    let one = |inputs: &Vec<Sharding>| {
        let placed = on_mesh(case, inputs, &outputs(case, m, inputs, &mut random));
        check(&placed, m, &expected).err().map(|e| format!("{}: {}: {e}", case.graph.name, described(&placed.graph)))
    };
    (all.len(), all.iter().filter_map(one).collect())
}

/// The whole graph as a plan, and the devices on threads of their own: as programs run.
fn compiled(backend: &Backend, m: &Arc<Mesh>, case: &Case) -> Result<(), String> {
    let expected = interpreted(&backend.optimise(&case.graph), &case.inputs);
    let Some(run) = MeshRun::of(&case.graph, backend) else { return Ok(()) };
    let args = parts(case, m).map_err(|e| format!("no memory: {} bytes", e.bytes))?;
    for turn in ["first", "second"] {
        let got = match run.run(backend, THREADS, args.clone()) {
            Ok(tensors) => {
                tensors.iter().map(|t| t.whole().map(|t| t.bytes().to_vec()).map_err(|e| e.message)).collect()
            }
            Err(MeshError::Plan(PlanError::Step(stop))) => Err(stop.message),
            Err(MeshError::Plan(PlanError::Interrupted)) => return Err("interrupted".into()),
            Err(MeshError::Backend(e)) => return Err(format!("{e:?}")),
            Err(MeshError::Devices(n)) => return Err(format!("{n} devices are too many")),
            Err(MeshError::World(fault, _)) => return Err(fault.message),
        };
        same(case, &expected, &got).map_err(|e| format!("{turn} run: {e}"))?;
    }
    Ok(())
}

/// The inputs as a program passes them: in parts, where they lie on a mesh.
fn parts(case: &Case, m: &Arc<Mesh>) -> Result<Vec<Argument>, OutOfMemory> {
    let held: Vec<Vec<Vec<u8>>> = (0..m.devices()).map(|d| arguments(&case.graph, m, &case.inputs, d)).collect();
    let whole = compare::arguments(&case.graph, &case.inputs, 0).unwrap_or_default();
    let one = |(i, arg): (usize, Argument)| {
        let ty = &case.graph.inputs[i].ty;
        let (Argument::Tensor(t), Some(_)) = (&arg, &ty.sharding.mesh) else { return Ok(arg) };
        let part = |d: usize| {
            let shape: Vec<u64> = ty.sharding.block(&ty.shape, d as u64).iter().map(|r| r.end - r.start).collect();
            Tensor::from_bytes(ty.dtype, &shape, &held[d][i])
        };
        let parts = (0..held.len()).map(part).collect::<Result<_, _>>()?;
        let parts = Parts { layout: ty.sharding.clone(), parts };
        Ok(Argument::Tensor(Tensor::in_parts(t.dtype, ty.shape.clone(), parts)?))
    };
    whole.into_iter().enumerate().map(one).collect()
}

/// Some placements of a case, compiled.
fn ran(backend: &Backend, m: &Arc<Mesh>, case: &Case, most: usize, seed: u64) -> Vec<String> {
    let mut random = Random::new(seed);
    let some = (0..most).flat_map(|_| placements(case, m, 1, &mut random)).collect::<Vec<_>>();
    let one = |inputs: &Vec<Sharding>| {
        let placed = on_mesh(case, inputs, &outputs(case, m, inputs, &mut random));
        compiled(backend, m, &placed).err().map(|e| format!("{}: {}: {e}", case.graph.name, described(&placed.graph)))
    };
    some.iter().filter_map(one).collect()
}

fn backend() -> Backend {
    let options = Options { quiet: true, always_compile: true, ..Options::default() };
    Backend::new(options, DiskCache::new(None), Arc::new(Pool::new(1)))
}

/// At most so many failures are told.
const TOLD: usize = 12;

fn told(mut failures: Vec<String>) {
    let count = failures.len();
    failures.truncate(TOLD);
    assert!(count == 0, "{count} failures\n{}", failures.join("\n"));
}

#[test]
fn every_operator_however_its_operands_lie() {
    let start = Instant::now();
    let asked = std::env::var("TESSERA_OPERATOR").ok();
    let meant = |d: &&OpDef| d.unsupported.is_none() && asked.as_ref().is_none_or(|name| name == d.name);
    let rows: Vec<&OpDef> = all().filter(meant).collect();
    let (calls, runs) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let calls_of_each: u64 = std::env::var("TESSERA_CALLS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let failures = on_two_threads(rows.len(), |row| {
        let mut out = vec![];
        let found = FOUND.iter().filter(|f| f.0 == rows[row].name).map(|f| f.1);
        for (turn, n) in
            (0..calls_of_each).chain(found).flat_map(|turn| (0..DTYPES.len() as u64).map(move |n| (turn, n)))
        {
            let number = number_of(rows[row].name) + turn * NAMES;
            let Some(case) = call(rows[row], number, n) else { continue };
            let (count, wrong) = played(&case, &mesh(), PLACEMENTS, number * 16 + n);
            calls.fetch_add(1, Ordering::Relaxed);
            runs.fetch_add(count, Ordering::Relaxed);
            out.extend(wrong);
        }
        out
    });
    let (calls, runs) = (calls.into_inner(), runs.into_inner());
    println!("{} operators, {calls} calls, {runs} placements in {:.1} s", rows.len(), start.elapsed().as_secs_f64());
    told(failures);
}

#[test]
fn random_programs_however_their_inputs_lie() {
    let start = Instant::now();
    let runs = AtomicUsize::new(0);
    let seeds = seeds(PROGRAMS);
    let count = seeds.end - seeds.start;
    let seeds = seeds.collect::<Vec<u64>>();
    let failures = on_two_threads(seeds.len(), |n| {
        let seed = seeds[n];
        let (m, case) = program(seed);
        let (count, wrong) = played(&case, &m, PLACEMENTS_OF_PROGRAM, seed);
        runs.fetch_add(count, Ordering::Relaxed);
        // A seed of its own is told with its program.
        let text = (!wrong.is_empty() && seeds.len() == 1).then(|| case.graph.to_string());
        wrong.into_iter().chain(text).collect()
    });
    let together = TOGETHER.load(Ordering::Relaxed);
    let (runs, seconds) = (runs.into_inner(), start.elapsed().as_secs_f64());
    println!("{count} programs, {runs} placements, {together} exchanges with another one in {seconds:.1} s");
    assert!(count < PROGRAMS || together > 1000, "{together}");
    told(failures);
}

/// A gradient of a weight over `tokens`, the sum of its rows, and a larger product beside them.
fn gradient(tokens: u64, [rows, columns]: [u64; 2], dtype: DType, seed: u64) -> Case {
    let mut b = Builder::plain(seed);
    let input = |b: &mut Builder, shape: &[u64]| {
        let count: u64 = shape.iter().product();
        let bytes = b.random.elements(dtype, count as usize, Fill::Ordinary);
        b.input_of(shape, dtype, bytes, false)
    };
    let (x, y) = (input(&mut b, &[tokens, rows]), input(&mut b, &[tokens, columns]));
    let product = Prim::dot(dtype, Steps::All);
    let turned = b.push(Prim::Transpose { perm: vec![1, 0] }, &[x], &[rows, tokens], dtype);
    let gradient = b.push(product.clone(), &[turned, y], &[rows, columns], dtype);
    let twice = b.push(Prim::Map(MapOp::add), &[gradient, gradient], &[rows, columns], dtype);
    let sum = Prim::Reduce { kind: Reduction::Sum, axes: vec![0] };
    let bias = b.push(sum, &[y], &[columns], dtype);
    // The same with the summed dims around one that stays.
    let parts = b.push(Prim::Reshape, &[y], &[tokens / 2, columns, 2], dtype);
    let around = b.push(Prim::Reduce { kind: Reduction::Sum, axes: vec![0, 2] }, &[parts], &[columns], dtype);
    let w = input(&mut b, &[columns, 256]);
    let long = b.push(product, &[y, w], &[tokens, 256], dtype);
    b.graph.outputs = vec![twice, gradient, bias, around, long];
    b.graph.name = format!("gradient over {tokens} of {dtype}");
    Case { graph: b.graph, inputs: b.data }
}

/// The gradient of a convolution's weights, and a product that is most of the work.
fn of_windows(items: u64, rows: u64, seed: u64) -> Case {
    let (mut b, f) = (Builder::plain(seed), DType::F32);
    let input = |b: &mut Builder, shape: &[u64]| {
        let count: u64 = shape.iter().product();
        let bytes = b.random.elements(f, count as usize, Fill::Ordinary);
        b.input_of(shape, f, bytes, false)
    };
    let (x, c) = (input(&mut b, &[items, 1, rows, 6, 2]), input(&mut b, &[items, 1, rows, 4, 3]));
    let zero = b.push(Prim::Full { value: Scalar::F(0.0) }, &[], &[], f);
    let pad = Prim::Pad { low: vec![0, 0, 1, 0, 0], high: vec![0, 0, 1, 0, 0] };
    let channels = Prim::Transpose { perm: vec![0, 1, 4, 2, 3] };
    let x = b.push(pad, &[x, zero], &[items, 1, rows + 2, 6, 2], f);
    let x = b.push(channels.clone(), &[x], &[items, 1, 2, rows + 2, 6], f);
    let windows = Prim::Windows { stride: vec![1, 1], dilation: vec![1, 1] };
    let x = b.push(windows, &[x], &[items, 1, 2, rows, 4, 3, 3], f);
    let x = b.push(Prim::Transpose { perm: vec![0, 1, 3, 4, 2, 5, 6] }, &[x], &[items, 1, rows, 4, 2, 3, 3], f);
    let x = b.push(Prim::Reshape, &[x], &[items, 1, rows * 4, 18], f);
    let c = b.push(channels, &[c], &[items, 1, 3, rows, 4], f);
    let c = b.push(Prim::Reshape, &[c], &[items, 1, 3, rows * 4], f);
    let product = Prim::dot(f, Steps::All);
    let each = b.push(product.clone(), &[c, x], &[items, 1, 3, 18], f);
    let flat = b.push(Prim::Reshape, &[each], &[items, 54], f);
    let ones = b.push(Prim::Full { value: Scalar::F(1.0) }, &[], &[1, items], f);
    let sum = b.push(product.clone(), &[ones, flat], &[1, 54], f);
    let (left, right) = (input(&mut b, &[rows, 512]), input(&mut b, &[512, items * 16]));
    let long = b.push(product, &[left, right], &[rows, items * 16], f);
    b.graph.outputs = vec![sum, long];
    b.graph.name = format!("weights over {rows} rows of {items} images");
    Case { graph: b.graph, inputs: b.data }
}

/// Checks a case whose inputs are split over their dims of one size.
fn split_over(case: &Case, size: u64, wrong: &mut Vec<String>) {
    let expected = interpreted(&case.graph, &case.inputs);
    for sizes in [&[2][..], &[4], &[2, 2], &[5]] {
        let m = meshes::of(sizes);
        let split = |shape: &[u64]| {
            let first = shape.iter().position(|&n| n == size);
            (0..shape.len()).map(|d| if first == Some(d) { vec!["a".to_owned()] } else { vec![] }).collect()
        };
        let lies = |dims| Sharding { mesh: Some(m.clone()), dims, partial: vec![] };
        let inputs: Vec<Sharding> = case.graph.inputs.iter().map(|i| lies(split(&i.ty.shape))).collect();
        let whole = |o: &NodeId| Some(real(&Sharding::default(), &m, case.graph.ty(*o).shape.len()));
        for outputs in [case.graph.outputs.iter().map(whole).collect(), vec![None; case.graph.outputs.len()]] {
            let placed = on_mesh(case, &inputs, &outputs);
            let all = [check(&placed, &m, &expected), compiled(&backend(), &m, &placed)];
            wrong.extend(all.into_iter().filter_map(Result::err).map(|e| format!("{}: {m}: {e}", case.graph.name)));
        }
    }
}

#[test]
fn gradients_over_split_tokens() {
    let mut wrong = vec![];
    let cases =
        [(64, [3, 5]), (160, [8, 4]), (100, [4, 4]), (8192, [2, 3]), (3 * 8192, [1, 2]), (500, [3, 2]), (9002, [2, 1])];
    for (i, (tokens, sizes)) in cases.into_iter().enumerate() {
        let dtype = if i == 1 { DType::F64 } else { DType::F32 };
        split_over(&gradient(tokens, sizes, dtype, i as u64), tokens, &mut wrong);
    }
    // Over the rows of images, and over a batch of them.
    for (i, (items, rows)) in [(4, 40), (9, 30), (24, 13), (1, 100)].into_iter().enumerate() {
        let case = of_windows(items, rows, i as u64);
        [rows, items].into_iter().for_each(|size| split_over(&case, size, &mut wrong));
    }
    told(wrong);
}

/// Reductions of one input over some of its dims.
fn reductions(shape: &[u64], axes: &[usize], dtype: DType, seed: u64) -> Case {
    let mut b = Builder::plain(seed);
    let fill = b.random.pick(&[Fill::Small, Fill::Ordinary, Fill::Wide, Fill::Special]);
    let bytes = b.random.elements(dtype, shape.iter().product::<u64>() as usize, fill);
    let x = b.input_of(shape, dtype, bytes, false);
    let kept: Vec<u64> = (0..shape.len()).filter(|d| !axes.contains(d)).map(|d| shape[d]).collect();
    let kinds: &[Reduction] = match dtype {
        DType::Bool => &[Reduction::Any, Reduction::All],
        _ => &[Reduction::Sum, Reduction::Prod, Reduction::Max, Reduction::Min],
    };
    let one = |kind: &Reduction| b.push(Prim::Reduce { kind: *kind, axes: axes.to_vec() }, &[x], &kept, dtype);
    b.graph.outputs = kinds.iter().map(one).collect();
    b.graph.name = format!("reductions of {shape:?} of {dtype} over {axes:?}");
    Case { graph: b.graph, inputs: b.data }
}

/// What a device gets, in elements.
fn moved(g: &tessera_ir::graph::Graph) -> u64 {
    let exchanges = g.nodes.iter().filter(|n| matches!(n.prim, Prim::Exchange(_)));
    exchanges.map(|n| n.ty.elems().unwrap_or(0)).sum()
}

/// Each device reduces what it has, and the numbers that move are as many as devices have results.
#[test]
fn devices_reduce_their_parts_first() {
    use DType::*;
    let mut wrong = vec![];
    let cases: [(&[u64], &[usize], usize, DType); 12] = [
        (&[16384], &[0], 0, F32),
        (&[49152, 3], &[0], 0, F32),
        (&[3, 32768], &[0, 1], 1, F32),
        (&[2, 65536, 4], &[1], 1, F32),
        (&[24, 2, 8192], &[0, 2], 0, F32),
        (&[12, 5, 4096, 2], &[0, 2], 0, F64),
        (&[12, 4096], &[0, 1], 0, Bf16),
        (&[24, 4096], &[0, 1], 0, F16),
        (&[1000, 12], &[0], 0, I64),
        (&[17, 12], &[0, 1], 0, I32),
        (&[40, 60], &[1], 1, Bool),
        (&[1, 24, 2048, 6], &[0, 1, 2], 1, F32),
    ];
    for (i, (shape, axes, dim, dtype)) in cases.into_iter().enumerate() {
        let case = reductions(shape, axes, dtype, i as u64);
        let expected = interpreted(&case.graph, &case.inputs);
        let results: u64 = case.graph.outputs.iter().map(|o| case.graph.ty(*o).elems().unwrap_or(0)).sum();
        for (sizes, split) in [(&[2][..], &["a"][..]), (&[4], &["a"]), (&[2, 2], &["a", "b"]), (&[3], &["a"])] {
            let m = meshes::of(sizes);
            let mut dims = vec![vec![]; shape.len()];
            dims[dim] = split.iter().map(|a| a.to_string()).collect();
            let inputs = [Sharding { mesh: Some(m.clone()), dims, partial: vec![] }];
            let whole = |o: &NodeId| Some(real(&Sharding::default(), &m, case.graph.ty(*o).shape.len()));
            let placed = on_mesh(&case, &inputs, &case.graph.outputs.iter().map(whole).collect::<Vec<_>>());
            let devices = divide(&tessera_graph::prune(&placed.graph), &m);
            // A node or three of each device and each of the dims before it, and the results.
            let nodes = 3 * m.devices() * shape[..dim].iter().filter(|n| **n < 4).product::<u64>();
            let (most, moves) = (results * (nodes + 1), moved(&devices.graphs[0]));
            let run: u64 = axes.iter().filter(|d| **d >= dim).map(|&d| shape[d]).product();
            if run.is_multiple_of(LEAF as u64 * m.devices()) && moves > most {
                wrong.push(format!("{}: {m}: {moves} elements move, not {most}", case.graph.name));
            }
            let all = [check(&placed, &m, &expected), compiled(&backend(), &m, &placed)];
            wrong.extend(all.into_iter().filter_map(Result::err).map(|e| format!("{}: {m}: {e}", case.graph.name)));
        }
    }
    // Two dims that are split.
    let case = reductions(&[4, 16384, 2], &[0, 1], F32, 99);
    let m = meshes::of(&[2, 2]);
    let dims = vec![vec!["a".to_owned()], vec!["b".to_owned()], vec![]];
    let placed =
        on_mesh(&case, &[Sharding { mesh: Some(m.clone()), dims, partial: vec![] }], &[None, None, None, None]);
    let moves = moved(&divide(&tessera_graph::prune(&placed.graph), &m).graphs[0]);
    wrong.extend((moves > 200).then(|| format!("{moves} elements of two split dims move")));
    wrong.extend(check(&placed, &m, &interpreted(&case.graph, &case.inputs)).err());
    told(wrong);
}

/// A product `[batch, rows, depth]` by `[batch, depth, columns]`.
fn product([batch, rows, depth, columns]: [u64; 4], leaf: u64, dtype: DType, policy: Policy, seed: u64) -> Case {
    let mut b = Builder::plain(seed);
    let mut input = |shape: &[u64]| {
        let bytes = b.random.elements(dtype, shape.iter().product::<u64>() as usize, Fill::Ordinary);
        b.input_of(shape, dtype, bytes, false)
    };
    let factors = [input(&[batch, rows, depth]), input(&[batch, depth, columns])];
    let accum = if dtype.is_float() { dtype.accumulator() } else { dtype };
    let product = Prim::Dot { accum, steps: Steps::All, order: Order::Chain, leaf };
    let y = b.push(product, &factors, &[batch, rows, columns], dtype);
    b.graph.nodes[y.0 as usize].policy = policy;
    b.graph.outputs = vec![y];
    b.graph.name = format!("product of {batch}x{rows}x{depth}x{columns} of {dtype}");
    Case { graph: b.graph, inputs: b.data }
}

/// How far the first output is from what is expected, by the largest number in it.
fn away(case: &Case, expected: &Bits, got: &Bits) -> Result<f64, String> {
    let dtype = case.graph.ty(case.graph.outputs[0]).dtype;
    let numbers = |bits: &Bits| {
        let bytes = bits.as_ref().map_err(String::clone)?;
        let count = bytes[0].len() / dtype.bytes();
        let number = |i| match tessera_ops::convert::load(dtype, &bytes[0], i) {
            Some(Scalar::F(x)) => x,
            Some(Scalar::I(n)) => n as f64,
            _ => f64::NAN,
        };
        Ok::<Vec<f64>, String>((0..count).map(number).collect())
    };
    let (expected, got) = (numbers(expected)?, numbers(got)?);
    let largest = expected.iter().fold(1e-30, |m: f64, x| m.max(x.abs()));
    Ok(expected.iter().zip(&got).map(|(e, g)| (e - g).abs() / largest).fold(0.0, f64::max))
}

/// Where parts begin and end between leaves, nodes of the tree move and not operands, and the bits are those of one device.
#[test]
fn devices_fold_leaves_of_products() {
    let mut wrong = vec![];
    let mut folded = 0;
    let sizes =
        [([1, 3, 240, 5], 8), ([2, 6, 96, 4], 4), ([1, 1, 1200, 1], 20), ([1, 12, 144, 24], 6), ([3, 2, 60, 7], 5)];
    for (i, (size, leaf)) in sizes.into_iter().enumerate() {
        for dtype in [DType::F32, DType::F64, DType::Bf16] {
            let case = product(size, leaf, dtype, Policy::Deterministic, i as u64);
            let expected = interpreted(&case.graph, &case.inputs);
            let operands: u64 = case.graph.inputs.iter().map(|i| i.ty.shape.iter().product::<u64>()).sum();
            for (sizes, split) in [(&[2][..], &["a"][..]), (&[3], &["a"]), (&[2, 3], &["a", "b"]), (&[2, 2], &["b"])] {
                let m = meshes::of(sizes);
                for sides in [[true, true], [true, false], [false, true]] {
                    let lies = |side: usize| {
                        let mut dims = vec![vec![]; 3];
                        if sides[side] {
                            dims[2 - side] = split.iter().map(|a| a.to_string()).collect();
                        }
                        Sharding { mesh: Some(m.clone()), dims, partial: vec![] }
                    };
                    let whole = Some(real(&Sharding::default(), &m, 3));
                    let placed = on_mesh(&case, &[lies(0), lies(1)], &[whole]);
                    let devices = divide(&tessera_graph::prune(&placed.graph), &m);
                    folded += usize::from(moved(&devices.graphs[0]) < operands / 4);
                    let all = [check(&placed, &m, &expected), compiled(&backend(), &m, &placed)];
                    let name = |e| format!("{}: {m}, {sides:?}: {e}", case.graph.name);
                    wrong.extend(all.into_iter().filter_map(Result::err).map(name));
                }
            }
        }
    }
    assert!(folded > 40, "{folded} products are folded where they are");
    told(wrong);
}

/// Where any order of sums will do, results move and not operands.
#[test]
fn devices_sum_partial_products() {
    let mut wrong = vec![];
    let mut partial = 0;
    let sizes = [[1, 3, 240, 5], [2, 6, 96, 4], [1, 1, 1200, 1], [1, 12, 48, 24], [3, 2, 60, 7], [1, 200, 12, 3]];
    for (i, size) in sizes.into_iter().enumerate() {
        for (dtype, policy) in
            [(DType::F32, Policy::Fast), (DType::Bf16, Policy::Fast), (DType::I32, Policy::Deterministic)]
        {
            let case = product(size, DOT_LEAF, dtype, policy, i as u64);
            let expected = interpreted(&case.graph, &case.inputs);
            let operands: u64 = case.graph.inputs.iter().map(|i| i.ty.shape.iter().product::<u64>()).sum();
            for (sizes, split) in [(&[2][..], &["a"][..]), (&[4], &["a"]), (&[2, 3], &["a", "b"]), (&[2, 2], &["b"])] {
                let m = meshes::of(sizes);
                for sides in [[true, true], [true, false], [false, true]] {
                    let names = || split.iter().map(|a| a.to_string()).collect::<Vec<_>>();
                    let lies = |side: usize| {
                        let mut dims = vec![vec![]; 3];
                        if sides[side] {
                            dims[2 - side] = names();
                        }
                        Sharding { mesh: Some(m.clone()), dims, partial: vec![] }
                    };
                    let whole = Some(real(&Sharding::default(), &m, 3));
                    let placed = on_mesh(&case, &[lies(0), lies(1)], &[whole]);
                    let graph = tessera_graph::prune(&placed.graph);
                    let devices = divide(&graph, &m);
                    let what = format!("{}: {m}, {sides:?}", case.graph.name);
                    partial += usize::from(moved(&devices.graphs[0]) < operands / 4);
                    let far = away(&case, &expected, &play(&graph, &devices, &case.inputs));
                    let most = [1e-5, 0.01][usize::from(dtype == DType::Bf16)];
                    match far {
                        Ok(far) if far <= if dtype.is_float() { most } else { 0.0 } => {}
                        Ok(far) => wrong.push(format!("{what}: {far} away")),
                        Err(e) => wrong.push(format!("{what}: {e}")),
                    }
                    if !dtype.is_float() {
                        wrong.extend(compiled(&backend(), &m, &placed).err().map(|e| format!("{what}: {e}")));
                    }
                }
            }
        }
    }
    assert!(partial > 60, "{partial} products are summed by parts");
    told(wrong);
}

#[test]
fn compiled_devices_give_the_same() {
    let start = Instant::now();
    let rows: Vec<&OpDef> = all().filter(|d| d.unsupported.is_none()).collect();
    let failures = on_two_threads(rows.len(), |row| {
        let case = [0, 3, 4, 5].iter().find_map(|n| call(rows[row], row as u64, *n));
        case.map_or(vec![], |case| ran(&backend(), &mesh(), &case, 2, row as u64))
    });
    let more = on_two_threads(COMPILED as usize, |seed| {
        let (m, case) = program(seed as u64 + PROGRAMS);
        ran(&backend(), &m, &case, 1, seed as u64)
    });
    println!("{} operators, {COMPILED} programs in {:.1} s", rows.len(), start.elapsed().as_secs_f64());
    told([failures, more].concat());
}

/// Rows that go to other places: sent by devices that have one each, gathered elsewhere.
#[test]
fn rows_go_to_other_places_however_they_lie() {
    let mut complaints = vec![];
    let mut sent = 0;
    for seed in 0..300 {
        let mut b = Builder::plain(seed);
        let y = random_graph::rows(&mut b);
        b.graph.outputs = vec![y];
        b.graph.name = format!("rows {seed}");
        let m = meshes::of(MESHES[seed as usize % MESHES.len()]);
        let case = Case { graph: b.graph, inputs: b.data };
        for inputs in placements(&case, &m, 12, &mut Random::new(seed)) {
            let graph = with_inputs(&case.graph, &inputs);
            let moves = divide(&graph, &m).graphs.iter().flat_map(|g| g.nodes.clone()).filter(is_permute).count();
            sent += usize::from(moves > 0);
        }
        complaints.extend(played(&case, &m, 12, seed).1);
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(sent > 20, "{sent} placements in which devices send rows");
}

fn is_permute(node: &Node) -> bool {
    matches!(&node.prim, Prim::Exchange(e) if e.name.starts_with("permute "))
}
