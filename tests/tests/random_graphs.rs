//! Random programs give the bits of the interpreter: after every pass, compiled, on one thread
//! and on three, with the schedules of the cost model for this machine and for others, and with
//! random ones.
//!
//! `TESSERA_SEED=N` runs one program, `TESSERA_PROGRAMS=N` so many.

use std::collections::BTreeMap;
use std::time::Duration;
use tessera_base::DType;
use tessera_ops::map::MapOp;
use tessera_ops::prim::Prim;
use tessera_tests::laws::seeds;
use tessera_tests::random_graph::{Scale, case};
use tessera_tests::sweep::random_graphs;

fn hold(programs: u64, scale: Scale) {
    let sweep = random_graphs(seeds(programs), scale, Duration::MAX);
    println!("{}", sweep.summary());
    assert!(sweep.failures.is_empty(), "{}", sweep.failures.join("\n"));
}

#[test]
fn small_programs() {
    hold(10_000, Scale::Small);
}

#[test]
fn large_programs() {
    hold(150, Scale::Large);
}

/// The name of an operation, with the kind of a reduction.
fn word(prim: &Prim) -> String {
    match prim {
        Prim::Map(op) => op.name().to_owned(),
        Prim::Reduce { kind, .. } => format!("Reduce {}", kind.name()),
        Prim::Cumulate { kind, .. } => format!("Cumulate {}", kind.name()),
        other => format!("{other:?}").split(|c: char| !c.is_alphanumeric()).next().unwrap_or("").to_owned(),
    }
}

#[test]
fn the_generator_makes_every_operation_of_every_type() {
    let mut found: BTreeMap<String, u32> = BTreeMap::new();
    for seed in 0..5000 {
        let graph = case(seed, Scale::Small).graph;
        for n in graph.nodes.iter().chain(graph.bodies.iter().flat_map(|b| &b.nodes)) {
            *found.entry(word(&n.prim)).or_default() += 1;
            *found.entry(format!("of {}", n.ty.dtype)).or_default() += 1;
        }
    }
    let kinds = "Input Full Iota Literal Cast Broadcast Reshape Transpose Slice Pad Concat ArgReduce Dot DynamicSlice DynamicUpdate \
                 UpdateSlice Take Gather Scatter TakeAlong ScatterAddAlong Sort ArgSort RandomBits Part Complex Fft Scan Get";
    let monoids = ["sum", "prod", "max", "min", "any", "all"].into_iter();
    let wanted: Vec<String> = MapOp::ALL
        .iter()
        .map(|op| op.name().to_owned())
        .chain(DType::ALL.iter().map(|d| format!("of {d}")))
        .chain(kinds.split_whitespace().map(str::to_owned))
        .chain(monoids.flat_map(|m| [format!("Reduce {m}"), format!("Cumulate {m}")]))
        .collect();
    let rare: Vec<&String> = wanted.iter().filter(|w| found.get(*w).copied().unwrap_or(0) < 10).collect();
    assert!(rare.is_empty(), "hardly or never made: {rare:?}\nof {found:?}");
    if std::env::var_os("TESSERA_SHOW").is_some() {
        println!("{found:?}");
    }
}
