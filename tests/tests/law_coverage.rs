//! No silent fall-back: what kernels cover is compiled, in the representative programs and in
//! random ones. (Of every operator and type, `law_operators` says the same.)

use tessera_abi::plan::{BufRef, Step};
use tessera_tests::compare::Bench;
use tessera_tests::coverage::without_kernel;
use tessera_tests::random_graph::{Scale, case};
use tessera_tests::representative;

/// Programs that take more than one kernel, with their number: a factor of a product may be packed by a
/// kernel of its own (of attention both); parts of a long sum are added by a second one; a transform of
/// 127 points is a convolution between transforms.
const SEVERAL: &[(&str, u64)] = &[
    ("attention", 3),
    ("causal_attention", 3),
    ("written_attention", 3),
    ("sum_all", 2),
    ("cumsum_1", 2),
    ("fft_127", 3),
    ("cross_entropy", 3),
];

#[test]
fn representative_programs_are_compiled() {
    let bench = Bench::with(Some(tessera_schedule::reference()));
    let mut wrong = vec![];
    for case in representative::compiled() {
        let graph = bench.backend.optimise(&case.graph);
        let name = &case.graph.name;
        let plan = bench.backend.plan(&graph).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        for step in &plan.steps {
            match step {
                Step::Host { name: step, .. } => wrong.push(format!("{name}: `{step}` runs without a kernel")),
                // Memory that the caller gives up is not copied.
                Step::Copy { dst: BufRef::Output(o), src: BufRef::Input(i), .. }
                    if plan.outputs[*o as usize].in_place_of == Some(*i) => {}
                Step::Copy { bytes, .. } => wrong.push(format!("{name}: {bytes} bytes are copied")),
                Step::Kernel { .. } | Step::Loop(_) => {}
            }
        }
        let expected = SEVERAL.iter().find(|(n, _)| n == name).map_or(1, |(_, k)| *k);
        if plan.counts.kernels != expected {
            wrong.push(format!("{name}: {} kernels instead of {expected}", plan.counts.kernels));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn random_programs_are_compiled() {
    let bench = Bench::new();
    let mut wrong = vec![];
    for seed in 0..1500 {
        let graph = bench.backend.optimise(&case(seed, Scale::Small).graph);
        let found = without_kernel(&graph, &bench.backend.groups(&graph));
        wrong.extend(found.into_iter().map(|f| format!("seed {seed}: {f}\n{}", graph)));
    }
    assert!(wrong.is_empty(), "{} operations\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}
