//! Programs that once came out differently: every graph of `data/found`, compiled for other machines and with random
//! directives, and on meshes however its inputs lie.

use std::path::Path;
use std::sync::Arc;
use tessera_base::{Mesh, Sharding};
use tessera_ir::graph_text;
use tessera_shard::spmd_partition::divide;
use tessera_tests::compare::{Bench, interpreted};
use tessera_tests::meshes::{combinations, described, layouts, of, play, with_inputs};
use tessera_tests::random::{Fill, Random};
use tessera_tests::random_graph::{Case, elems};
use tessera_tests::sweep::{checked, machine};

/// Random machines and directives of each program.
const SCHEDULES: u64 = 100;
/// Placements of each program on each mesh, at most.
const PLACEMENTS: usize = 200;

fn found() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/found");
    let mut files: Vec<_> = std::fs::read_dir(&folder).expect("a folder").flatten().map(|e| e.path()).collect();
    files.sort();
    let one = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a file");
        let graph = graph_text::parse(&text).unwrap_or_else(|e| panic!("{}: {}", path.display(), e.message));
        let mut random = Random::new(1);
        let data = |i: &tessera_ir::graph::Input| random.elements(i.ty.dtype, elems(&i.ty.shape), Fill::Ordinary);
        let inputs = graph.inputs.iter().map(data).collect();
        Case { graph, inputs }
    };
    files.iter().map(one).collect()
}

#[test]
fn found_programs_compiled() {
    for case in found() {
        let mut bench = Bench::new();
        for seed in 0..SCHEDULES {
            let mut random = Random::new(seed);
            bench.set_machine(machine(&mut random));
            bench.set_directives((!random.once_in(4)).then_some(seed));
            if let Err(d) = checked(&mut bench, &case) {
                panic!("{}, schedules of seed {seed}: {}\n{}", case.graph.name, d.line(), bench.kernels(&case));
            }
        }
    }
}

fn on(case: &Case, mesh: &Arc<Mesh>, inputs: &[Sharding]) -> Result<(), String> {
    let graph = tessera_graph::prune(&with_inputs(&case.graph, inputs));
    let (expected, got) = (interpreted(&case.graph, &case.inputs), play(&graph, &divide(&graph, mesh), &case.inputs));
    match expected == got {
        true => Ok(()),
        false => Err(format!("{}: {}: {:?}", case.graph.name, described(&graph), got.err())),
    }
}

#[test]
fn found_programs_on_meshes() {
    for case in found() {
        for mesh in [of(&[2, 3]), of(&[1, 5])] {
            let tensors = case.graph.inputs.iter().filter(|i| !i.scalar);
            let choices: Vec<Vec<Sharding>> = tensors.map(|i| layouts(&mesh, i.ty.shape.len())).collect();
            for inputs in combinations(&choices, PLACEMENTS, &mut Random::new(2)) {
                on(&case, &mesh, &inputs).unwrap_or_else(|e| panic!("{e}"));
            }
        }
    }
}
