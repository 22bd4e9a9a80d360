//! Every operator of the table and every elementwise function, of every type that it takes, at
//! sizes around nothing, vectors and register tiles: compiled code gives what plain loops in f64
//! do, within a bound that follows from the definitions (see `tessera_tests::exact`).
//!
//! The rows are found in the table. A new row has its calls made from its parameters; where none
//! of them is accepted, or where it expands to a primitive that has no definition, the law fails
//! and says so.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tessera_base::DType;
use tessera_ops::map::{MapOp, kind_of};
use tessera_ops::prim::Scalar;
use tessera_ops::surface::{Hints, OpDef, all};
use tessera_runtime::execute::{Workspace, execute};
use tessera_runtime::pool::Pool;
use tessera_tests::arguments::{Call, SIZES};
use tessera_tests::compare::{Bench, arguments, finely, outputs};
use tessera_tests::coverage::without_kernel;
use tessera_tests::exact::value::Value;
use tessera_tests::exact::{self, Array};
use tessera_tests::operators::{expand, number_of};
use tessera_tests::random_graph::{Builder, Case};

/// Calls that are tried for one row and type.
const TRIES: u64 = 12;
/// Accepted calls of one row and type.
const CALLS: usize = 3;
/// Accepted calls that a row has at least over all types.
const CALLS_OF_ROW: usize = 8;
/// Rows and types after which a thread forgets its kernels.
const JOBS_PER_BENCH: usize = 60;
/// Of the elements of one row this part has a bound; for others nothing is known (NaN among
/// positions, sums that overflow).
const BOUNDED: f64 = 0.4;

/// Some calls of a row with elements of a type.
fn calls(def: &'static OpDef, dtype: DType) -> Vec<Case> {
    let mut out = vec![];
    for n in 0..TRIES {
        let seed =
            (number_of(def.name) * 64 + n) * 16 + DType::ALL.iter().position(|d| *d == dtype).unwrap_or(0) as u64;
        let mut b = Builder::plain(seed);
        let size = SIZES[(seed as usize * 7 + n as usize * 4) % SIZES.len()];
        let args = Call::new(&mut b, dtype, size).arguments(def);
        let Ok(ids) = expand(&mut b, def, &args, &Hints::default()) else { continue };
        b.graph.outputs = ids;
        b.graph.name = format!("{}_{dtype}_{size}", def.name.replace('.', "_"));
        let words = |a: &tessera_ops::surface::Arg| format!("{a:?}");
        b.graph.name += &format!("({})", args.iter().map(words).collect::<Vec<_>>().join(", "));
        out.push(Case { graph: b.graph, inputs: b.data });
        if out.len() == CALLS {
            break;
        }
    }
    out
}

/// What went through the law, by row.
#[derive(Clone, Copy, Default)]
struct Seen {
    calls: usize,
    elements: usize,
    bounded: usize,
}

fn check(bench: &Bench, pool: &Pool, case: &Case, seen: &mut Seen) -> Result<(), String> {
    let expected = exact::outputs(case)?;
    let graph = bench.backend.optimise(&case.graph);
    let missing = without_kernel(&graph, &bench.backend.groups(&graph));
    if !missing.is_empty() {
        return Err(format!("without a kernel: {}", missing.join(", ")));
    }
    let plan = finely(bench.backend.plan(&graph).map_err(|e| format!("{e:?}"))?);
    let args = arguments(&graph, &case.inputs, 0).map_err(|e| e.to_string())?;
    let got = outputs(execute(&plan, args, pool, &mut Workspace::default()))?;
    for (i, (want, bytes)) in expected.iter().zip(&got).enumerate() {
        let numbers = exact::numbers(want.dtype(), bytes);
        if numbers.len() != want.values.len() {
            return Err(format!("output {i} has {} elements, not {}", numbers.len(), want.values.len()));
        }
        compare(i, want, &numbers)?;
        seen.elements += numbers.len();
        seen.bounded += want.values.iter().filter(|v| **v != Value::Any).count();
    }
    seen.calls += 1;
    Ok(())
}

fn compare(output: usize, want: &Array, got: &[Scalar]) -> Result<(), String> {
    let wrong: Vec<usize> = (0..got.len()).filter(|&i| !want.values[i].holds(&got[i])).collect();
    let Some(&first) = wrong.first() else { return Ok(()) };
    Err(format!(
        "output {output} ({:?} {}), element {first} is {:?}, not {:?}; {} of {} are wrong",
        want.shape,
        want.dtype(),
        got[first],
        want.values[first],
        wrong.len(),
        got.len()
    ))
}

#[test]
fn every_operator_is_what_plain_loops_give() {
    let start = Instant::now();
    let rows = all().filter(|d| d.unsupported.is_none());
    let jobs: Vec<(&OpDef, DType)> = rows.flat_map(|def| DType::ALL.map(|dtype| (def, dtype))).collect();
    let next = AtomicUsize::new(0);
    let total = Mutex::new((BTreeMap::<&str, Seen>::new(), vec![]));
    let run = || {
        let pool = Pool::new(1);
        let mut bench = Bench::new();
        for done in 1.. {
            let Some(&(def, dtype)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            if done % JOBS_PER_BENCH == 0 {
                bench = Bench::new();
            }
            let mut seen = Seen::default();
            let check = |c: &Case| check(&bench, &pool, c, &mut seen).map_err(|why| format!("{}: {why}", c.graph.name));
            let wrong: Vec<String> = calls(def, dtype).iter().map(check).filter_map(Result::err).collect();
            let mut total = total.lock().unwrap_or_else(|e| e.into_inner());
            let sum = total.0.entry(def.name).or_default();
            (sum.calls, sum.elements, sum.bounded) =
                (sum.calls + seen.calls, sum.elements + seen.elements, sum.bounded + seen.bounded);
            total.1.extend(wrong);
        }
    };
    std::thread::scope(|s| {
        s.spawn(run);
        run();
    });
    let (seen, mut failures) = total.into_inner().unwrap_or_else(|e| e.into_inner());
    for def in all().filter(|d| d.unsupported.is_none() && !ELSEWHERE.contains(&d.name)) {
        let s = seen.get(def.name).copied().unwrap_or_default();
        if s.calls < CALLS_OF_ROW {
            failures.push(format!("{}: only {} calls make sense; see `tessera_tests::arguments`", def.name, s.calls));
        }
        if (s.bounded as f64) < s.elements as f64 * BOUNDED {
            failures.push(format!("{}: of {} elements only {} have a bound", def.name, s.elements, s.bounded));
        }
    }
    let sum = |f: fn(&Seen) -> usize| seen.values().map(f).sum::<usize>();
    println!(
        "{} operators, {} calls, {} elements, {} of them bounded, in {:.1} s",
        seen.len(),
        sum(|s| s.calls),
        sum(|s| s.elements),
        sum(|s| s.bounded),
        start.elapsed().as_secs_f64()
    );
    failures.sort();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// Operators with a law of their own: the numbers of blocks are held to their formats by `law_blocks`, eigenvalues of any matrix to
/// their equation by `law_linalg`, and which of the categories with its random number is the largest bounds do not say, but their
/// frequencies where expansions are tested.
const ELSEWHERE: &[&str] = &["dequantize", "quantize", "fake_quantize", "eig", "eigvals", "random.categorical"];

/// The definitions cover the table of functions.
#[test]
fn every_function_has_a_definition() {
    for &op in MapOp::ALL {
        for dtype in DType::ALL {
            let takes = kind_of(dtype).is_some_and(|k| op.def().takes.accepts(k));
            assert!(!takes || exact::function::defines(op, dtype), "{} of {dtype} has no definition", op.name());
        }
    }
}
