//! The bits of a kernel depend on its program and its data alone: every representative program
//! gives the same ones on 1 to 8 threads, under at least ten schedules, and as scheduled for
//! machines with other vectors, registers and caches.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tessera_base::DType;
use tessera_ir::graph::Graph;
use tessera_ir::schedule::Machine;
use tessera_runtime::execute::{Workspace, execute};
use tessera_runtime::pool::Pool;
use tessera_tests::compare::{Bench, Bits, arguments, finely, interpreted, outputs};
use tessera_tests::random_graph::Case;
use tessera_tests::representative;

/// Schedules of each program that have to be different.
const SCHEDULES: usize = 10;
/// Seeds after which there are no more different ones.
const SEEDS: u64 = 60;
const THREADS: usize = 8;

/// Machines as they are or could be, with this host's instructions.
fn machines() -> Vec<Machine> {
    let host = tessera_schedule::host();
    let like = |vector_bytes, vector_registers, l1: u32, l2: u32| Machine {
        vector_bytes,
        vector_registers,
        l1_bytes: u64::from(l1),
        l2_bytes: u64::from(l2),
        ..host.clone()
    };
    vec![host.clone(), like(16, 16, 16 << 10, 256 << 10), like(64, 32, 64 << 10, 2 << 20), like(32, 16, 512, 4 << 10)]
}

/// Everything about the kernels of a graph that schedules decide.
fn kernels(bench: &Bench, graph: &Graph) -> String {
    let groups = bench.backend.groups(graph);
    let steps = groups.iter().filter_map(|g| g.lowered.as_ref()).flat_map(|l| &l.steps);
    steps.map(|s| tessera_ir::tile::text::print(&s.kernel)).collect()
}

/// The bits of a graph as it is scheduled now, on every number of threads.
fn on_all_threads(bench: &Bench, graph: &Graph, case: &Case, pools: &[Pool]) -> Result<Vec<Bits>, String> {
    let plan = bench.backend.plan(graph).map_err(|e| format!("{e:?}"))?;
    let plan = finely(plan);
    let args = arguments(graph, &case.inputs, 0).map_err(|e| e.to_string())?;
    let mut work = Workspace::default();
    Ok(pools.iter().map(|pool| outputs(execute(&plan, args.clone(), pool, &mut work))).collect())
}

/// Checks one program; returns how many schedules it went through.
fn holds(case: &Case, pools: &[Pool]) -> Result<usize, String> {
    let mut bench = Bench::new();
    let graph = bench.backend.optimise(&case.graph);
    let expected = interpreted(&graph, &case.inputs);
    let mut seen = BTreeSet::new();
    let mut check = |bench: &Bench, what: &str| {
        if !seen.insert(kernels(bench, &graph)) {
            return Ok(seen.len());
        }
        for (threads, got) in on_all_threads(bench, &graph, case, pools)?.iter().enumerate() {
            if *got != expected {
                return Err(format!("{what}, {} threads: other bits\n{}", threads + 1, kernels(bench, &graph)));
            }
        }
        Ok(seen.len())
    };
    let mut count = 0;
    for machine in machines() {
        bench.set_machine(machine.clone());
        count = check(&bench, &format!("{machine:?}"))?;
    }
    bench.set_machine(tessera_schedule::host());
    let of_machines = count;
    for seed in 0..SEEDS {
        if count >= of_machines + SCHEDULES {
            break;
        }
        bench.set_directives(Some(seed));
        count = check(&bench, &format!("directives of seed {seed}"))?;
    }
    if count < SCHEDULES { Err(format!("has {count} schedules only")) } else { Ok(count) }
}

#[test]
fn bits_do_not_depend_on_threads_and_schedules() {
    let start = Instant::now();
    let cases = representative::compiled();
    let next = AtomicUsize::new(0);
    let found = Mutex::new((0, vec![]));
    let run = || {
        let pools: Vec<Pool> = (1..=THREADS).map(Pool::new).collect();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = holds(case, &pools);
            let mut found = found.lock().unwrap_or_else(|e| e.into_inner());
            match result {
                Ok(n) => found.0 += n,
                Err(why) => found.1.push(format!("{}: {why}", case.graph.name)),
            }
        }
    };
    std::thread::scope(|s| {
        s.spawn(run);
        run();
    });
    let (schedules, failures) = found.into_inner().unwrap_or_else(|e| e.into_inner());
    println!(
        "{} programs, {schedules} schedules, {THREADS} numbers of threads in {:.1} s",
        cases.len(),
        start.elapsed().as_secs_f64()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Programs whose numbers hide an order would prove nothing.
#[test]
fn another_order_of_a_sum_has_other_bits() {
    let sums = representative::compiled();
    let sum = sums.iter().find(|c| c.graph.name == "sum_all" && c.graph.inputs[0].ty.dtype == DType::F32);
    let Some(case) = sum else { panic!("no sum") };
    let values: Vec<f32> = case.inputs[0].as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let forwards: f32 = values.iter().sum();
    let backwards: f32 = values.iter().rev().sum();
    assert_ne!(forwards.to_bits(), backwards.to_bits());
}
