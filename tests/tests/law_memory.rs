//! A bound on memory changes no bit: differentiated random programs under random bounds give what they give without,
//! compiled too, and take just the memory that is told.

use std::sync::Arc;
use tessera::backend::{Backend, Options};
use tessera::cache::DiskCache;
use tessera_autodiff::pullback;
use tessera_graph::recompute;
use tessera_ir::graph::{Graph, Node, NodeId, Origin, Policy};
use tessera_ops::prim::{Prim, Scalar};
use tessera_runtime::pool::Pool;
use tessera_tests::compare::Bench;
use tessera_tests::program::run_source;
use tessera_tests::random::Random;
use tessera_tests::random_graph::{Case, Scale, case};

/// The case with the derivatives of its float outputs with respect to its float inputs; `None` where an
/// operation has none.
fn differentiated(seed: u64) -> Option<Case> {
    let mut case = case(seed, Scale::Small);
    let g = &mut case.graph;
    let smooth = |g: &Graph, id: &NodeId| g.ty(*id).dtype.is_float();
    let wrt: Vec<NodeId> = g.ids().filter(|id| matches!(g.node(*id).prim, Prim::Input(_)) && smooth(g, id)).collect();
    let outputs: Vec<NodeId> = g.outputs.iter().copied().filter(|id| smooth(g, id)).collect();
    let mut seeds = vec![];
    for id in outputs {
        let one = Node {
            prim: Prim::Full { value: Scalar::F(1.0) },
            operands: vec![],
            ty: g.ty(id).clone(),
            results: vec![],
            origin: Origin::default(),
            policy: Policy::Deterministic,
        };
        seeds.push((id, g.push(one)));
    }
    let cotangents = pullback(g, &seeds, &wrt).ok()?;
    g.outputs.extend(cotangents.into_iter().flatten());
    Some(case)
}

#[test]
fn a_bound_changes_no_bit_and_is_kept() {
    let options = Options { checked: true, quiet: true, ..Options::default() };
    let backend = Backend::new(options, DiskCache::new(None), Arc::new(Pool::new(1)));
    let mut bench = Bench::new();
    let (mut programs, mut again, mut kept) = (0, 0, 0);
    for seed in 0..if cfg!(debug_assertions) { 40 } else { 4000 } {
        let Some(case) = differentiated(seed) else { continue };
        let graph = backend.optimise(&case.graph);
        // The position of an extreme of nothing, for instance.
        if !tessera_ir::verify::verify(&graph).is_empty() {
            continue;
        }
        let Ok(free) = backend.footprint(&graph) else { panic!("seed {seed} has no plan") };
        let share = 30 + Random::new(seed).below(70) as u64;
        let bound = free.arguments + graph.outputs.iter().filter_map(|&o| graph.ty(o).bytes()).sum::<u64>();
        let room = free.arena * share / 100;
        let fit = backend.fit(graph.clone(), bound + room);
        let Ok(plan) = backend.plan(&fit.graph) else { panic!("seed {seed} has no plan") };
        let told = fit.shortage.as_ref().map(|s| s.between);
        assert_eq!(told.unwrap_or(plan.arena_bytes), plan.arena_bytes, "seed {seed}");
        assert!(told.is_some() || plan.arena_bytes <= room, "seed {seed}: {} of {room}", plan.arena_bytes);
        assert!(plan.arena_bytes <= free.arena, "seed {seed}");
        let values = recompute::count(&fit.graph);
        (programs, kept) = (programs + 1, kept + usize::from(told.is_none()));
        if values == 0 {
            continue;
        }
        again += 1;
        let wrong = tessera_ir::verify::verify(&fit.graph);
        assert!(wrong.is_empty(), "seed {seed}: {wrong:?}");
        let expected = tessera_tests::compare::interpreted(&graph, &case.inputs);
        let got = tessera_tests::compare::interpreted(&fit.graph, &case.inputs);
        assert!(expected == got, "seed {seed}: other bits with {values} values computed again");
        if again % 8 == 0 {
            let compiled = bench.check_compiled(&case, &fit.graph);
            assert!(compiled.is_ok(), "seed {seed}: {:?}", compiled.err());
        }
    }
    println!("{programs} programs, {again} compute values again, {kept} keep to the bound");
    assert!(cfg!(debug_assertions) || again > 300 && kept > 300, "{again} of {programs}, {kept} kept");
}

/// A small GPT that is trained for some steps.
const GPT: &str = "from std import nn, optim

def loss(m, x, y):
    scores = nn.gpt(m, x)
    return op.cross_entropy(scores.reshape(-1, scores.shape[2]), y.reshape(-1))

def step(m, state, x, y):
    value, grads = autodiff.value_and_grad(loss)(m, x, y)
    m, state = optim.adamw(m, grads, state, lr=0.001)
    return value, m, state

m = nn.gpt_init(random.key(0), 65, 64, 96, 4, 3)
x = random.randint(random.key(1), (8, 64), 0, 65)
y = random.randint(random.key(2), (8, 64), 0, 65)
state = optim.adam_init(m)
for i in range(4):
    value, m, state = step(m, state, x, y)
    print(value.item())
";

/// The bytes in between, now and without a bound, that `-v` tells of the training step.
fn told(err: &str) -> Option<(u64, u64)> {
    let line = err.lines().find(|l| l.contains(" computed again, "))?;
    let (now, before) = line.split_once(" again, ")?.1.split_once(" instead of ")?;
    Some((now.parse().ok()?, before.split_whitespace().next()?.parse().ok()?))
}

#[test]
fn a_gpt_is_trained_to_the_same_bits_in_less_memory() {
    let run = |args: &[&str]| run_source(GPT, args).unwrap_or_else(|e| panic!("{e}"));
    let free = run(&["run"]);
    assert_eq!((free.code, free.out.lines().count()), (0, 4), "{}", free.err);
    // Far too little, for which the message says what it would take.
    let least = run(&["run", "-v", "--memory", "8MiB"]);
    let Some((least_bytes, before)) = told(&least.err) else { panic!("nothing was told: {}", least.err) };
    assert!(least.code == 1 && least.err.contains("error[E0717]"), "{}", least.err);
    assert!(least_bytes * 10 < before * 5, "{least_bytes} of {before}");
    let fixed = least.err.lines().find_map(|l| l.split_once("note: arguments ")).map(|(_, rest)| rest);
    let numbers =
        fixed.map(|l| l.split('(').skip(1).filter_map(|p| p.split(' ').next()?.parse::<u64>().ok()).sum::<u64>());
    let Some(fixed) = numbers else { panic!("{}", least.err) };
    for share in [90, 60] {
        let bound = (fixed + before * share / 100).to_string();
        for threads in ["1", "2"] {
            let less = run(&["run", "-v", "--memory", &bound, "--threads", threads]);
            assert_eq!((less.code, &less.out), (0, &free.out), "{}", less.err);
            assert!(told(&less.err).is_some_and(|(now, _)| now <= before * share / 100), "{}", less.err);
        }
    }
}
