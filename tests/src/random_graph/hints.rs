//! Some nodes of some graphs belong to kernels with random directives.

use crate::random::Random;
use tessera_ir::graph::Graph;
use tessera_ir::hints::KernelHints;

/// Gives one graph in three kernels; the same ones for the same seed.
pub fn sprinkle(graph: &mut Graph, seed: u64) {
    let mut random = Random::new(seed ^ 0x6b65_726e);
    if !random.once_in(3) {
        return;
    }
    let count = 1 + random.below(3) as u32;
    graph.kernels = (0..count).map(|i| hints(&mut random, i)).collect();
    for node in &mut graph.nodes {
        node.origin.kernel = (!random.once_in(3)).then(|| random.below(count as usize) as u32);
    }
}

fn hints(random: &mut Random, number: u32) -> KernelHints {
    let sides = random.below(4);
    let tile = (0..sides).map(|_| 1 + random.below(80) as u64).collect();
    let maybe = |random: &mut Random, from: &[u32]| random.once_in(2).then(|| random.pick(from));
    KernelHints {
        kernel: format!("kernel{number}").into(),
        tile,
        vectorize: maybe(random, &[2, 4, 8, 16, 32, 64]),
        shared: random.once_in(2).then(|| random.once_in(2)),
        unroll: maybe(random, &[1, 2, 3, 4, 7, 8]),
        parallel: (0..random.below(3)).map(|_| random.below(4) as u32).collect(),
        warps: maybe(random, &[4, 8]),
        ..KernelHints::default()
    }
}
