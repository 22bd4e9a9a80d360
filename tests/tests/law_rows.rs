//! Softmax, norms and other operators that read rows more than once, at lengths around the
//! vector, the leaf and the chunk: compiled as interpreted, to the bit, each in one kernel.

use tessera::backend::{Backend, Options};
use tessera::cache::DiskCache;
use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ir::schedule::Machine;
use tessera_ops::surface::{Arg, Id};
use tessera_runtime::pool::Pool;
use tessera_tests::compare::Bench;
use tessera_tests::laws::hold;
use tessera_tests::operators::call;
use tessera_tests::random::Fill;
use tessera_tests::random_graph::{Builder, Case, elems};

const OPERATORS: &[&str] = &["softmax", "log_softmax", "logsumexp", "var", "std", "layer_norm", "rms_norm"];

fn case(seed: u64, name: &str, shape: &[u64], dtype: DType) -> Case {
    let mut b = Builder::plain(seed);
    let fill = b.random.pick(&[Fill::Small, Fill::Ordinary, Fill::Ordinary, Fill::Special]);
    let tensor = |b: &mut Builder, shape: &[u64]| {
        let bytes = b.random.elements(dtype, elems(shape), fill);
        Arg::Tensor(Id(b.input_of(shape, dtype, bytes, false).0))
    };
    let last = shape[shape.len() - 1];
    let mut args = vec![tensor(&mut b, shape)];
    if name.ends_with("norm") {
        args.extend([Arg::Ints(vec![last as i64]), tensor(&mut b, &[last])]);
    } else {
        args.push(Arg::Int(-1));
    }
    let out = call(&mut b, name, &args);
    let mut graph = b.graph;
    graph.outputs = vec![NodeId(out.0)];
    graph.name = format!("{name}_{dtype}_{shape:?}");
    Case { graph, inputs: b.data }
}

#[test]
fn every_length() {
    let mut cases = vec![];
    for name in OPERATORS {
        for n in [1, 2, 15, 16, 17, 63, 255, 256, 257, 300, 511, 512, 513, 9001] {
            for dtype in [DType::F32, DType::Bf16, DType::F16, DType::F64] {
                if dtype == DType::F32 || (cases.len() + n) % 3 == 0 {
                    let rows = if n > 1000 { 3 } else { 7 };
                    cases.push(case(cases.len() as u64, name, &[rows, n as u64], dtype));
                }
            }
        }
        cases.push(case(cases.len() as u64, name, &[2, 1, 5, 33], DType::F32));
        cases.push(case(cases.len() as u64, name, &[100], DType::F32));
    }
    hold("rows", cases);
}

/// On a machine of small caches rows are written past them, each while the next one is reduced.
#[test]
fn rows_behind() {
    let host = tessera_schedule::host();
    let mut bench = Bench::with(Some(Machine { l2_bytes: 1 << 10, l3_bytes: 1 << 10, ..host }));
    for name in OPERATORS {
        for shape in [&[4u64, 300][..], &[8, 16], &[6, 257], &[5, 4097], &[3, 8, 33], &[1024, 64]] {
            for dtype in [DType::F32, DType::Bf16] {
                let case = case(shape.len() as u64, name, shape, dtype);
                bench.check(&case).unwrap_or_else(|e| panic!("{name} {dtype} {shape:?}: {}", e.line()));
            }
        }
    }
}

#[test]
fn one_kernel_each() {
    let options = Options { quiet: true, always_compile: true, ..Options::default() };
    let backend = Backend::new(options, DiskCache::new(None), std::sync::Arc::new(Pool::new(1)));
    for name in OPERATORS {
        for dtype in [DType::F32, DType::Bf16] {
            let graph = tessera_graph::optimise(&case(1, name, &[64, 1000], dtype).graph);
            let kernels: usize =
                backend.groups(&graph).iter().filter_map(|p| p.lowered.as_ref()).map(|l| l.steps.len()).sum();
            assert_eq!((name, dtype, kernels), (name, dtype, 1));
        }
    }
}
