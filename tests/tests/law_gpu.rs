//! Programs have the bits of the processor on a GPU: its kernels run in the interpreter of PTX behind the stand-in for the
//! driver, which checks every access and finds lanes that do not wait for each other.
//!
//! `TESSERA_SEED=N` runs one random program, `TESSERA_PROGRAMS=N` so many.

use std::sync::Arc;
use tessera::backend::{Backend, Options};
use tessera::cache::DiskCache;
use tessera::target::{Cuda, Target};
use tessera_ops::prim::Prim;
use tessera_runtime::execute::{Workspace, execute};
use tessera_runtime::pool::Pool;
use tessera_tests::compare::{arguments, interpreted, outputs, same};
use tessera_tests::documents;
use tessera_tests::laws::{on_two_threads, seeds};
use tessera_tests::program::Ran;
use tessera_tests::random_graph::{Scale, case};
use tessera_tests::standin;

#[test]
fn random_programs_have_the_bits_of_the_processor() {
    standin::take();
    let target: Arc<dyn Target> = Arc::new(Cuda::first());
    target.ready().unwrap_or_else(|e| panic!("{}", e.why));
    let failures = on_two_threads(2, |half| {
        let pool = Arc::new(Pool::new(1));
        let options = Options { quiet: true, always_compile: true, ..Options::default() };
        let backend = Backend::on(target.clone(), options, DiskCache::new(None), pool.clone());
        let device = target.device(&pool);
        let of_half = seeds(if cfg!(debug_assertions) { 20 } else { 300 }).filter(|s| s % 2 == half as u64);
        let one = |seed| {
            let case = case(seed, Scale::Small);
            // The order of this machine's instruction for bf16, which a GPU does not have.
            if case.graph.nodes.iter().any(|n| matches!(n.prim, Prim::Dot { order, .. } if order.is_paired())) {
                return Ok(());
            }
            let graph = backend.optimise(&case.graph);
            let plan = backend.plan(&graph).map_err(|e| format!("seed {seed}: {e:?}"))?;
            // The second time with memory that may be written over, on the device already for some of them.
            for offset in [0, 1] {
                let args = arguments(&graph, &case.inputs, offset).map_err(|e| e.what)?;
                let got = outputs(execute(&plan, args, &*device, &mut Workspace::default()));
                let same = same("on the GPU", &graph, &interpreted(&graph, &case.inputs), &got);
                same.map_err(|e| format!("seed {seed}: {}\n{graph}", e.what))?;
            }
            Ok(())
        };
        of_half.filter_map(|seed| one(seed).err()).collect::<Vec<String>>()
    });
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n----\n"));
}

/// The code of the first error that a run names.
fn code(ran: &Ran) -> Option<&str> {
    ran.err.lines().find_map(|l| l.strip_prefix("error[")).and_then(|l| l.get(..5))
}

/// A text as documents have it: no spaces end its lines.
fn trimmed(text: &str) -> String {
    text.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// What does not belong to a run on a GPU.
const APART: &[(&str, &str)] = &[];

#[test]
fn programs_of_the_documents_print_the_same() {
    let stated = documents::programs().into_iter().filter_map(|p| {
        let kind = |info: &str| matches!(info.split(' ').next(), Some("output" | "error"));
        let block =
            p.follow.iter().find(|b| kind(&b.info) && !b.info.contains("within") && !b.info.contains("check"))?;
        let apart = APART.iter().any(|(file, what)| p.place.contains(file) && p.source.contains(what));
        (!apart).then(|| (p.place.clone(), p.source.clone(), block.info.clone(), block.text.clone()))
    });
    let programs: Vec<_> = stated.collect();
    assert!(programs.len() > 300, "{} programs only", programs.len());
    let failures = on_two_threads(programs.len(), |i| {
        let (place, source, info, text) = &programs[i];
        let ran = standin::run_on_gpu(source, &[]).unwrap_or_else(|e| panic!("{e}"));
        // As it is told, or its code and line.
        let told =
            text.lines().find_map(|l| l.strip_prefix("error[")).or(Some(text.as_str()).filter(|t| t.starts_with('E')));
        let wanted = told.and_then(|l| l.get(..5));
        let fine = match info.split(' ').next() {
            Some("output") => trimmed(&ran.out) == trimmed(text),
            _ => code(&ran) == wanted && !ran.err.contains("cuda stand-in"),
        };
        match fine {
            true => vec![],
            false => vec![format!("{place}\n{source}\nexit {}\n{}{}\nexpected\n{text}", ran.code, ran.out, ran.err)],
        }
    });
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n----\n"));
}
