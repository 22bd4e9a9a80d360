//! Programs on a device of its own: the bits of the interpreter of Graph IR, and the output that documents state.

use crate::compare::{arguments, interpreted, outputs, same};
use crate::documents;
use crate::laws::{on_two_threads, seeds};
use crate::program::Ran;
use crate::random_graph::{Scale, case};
use std::sync::Arc;
use tessera::backend::{Backend, Options};
use tessera::cache::DiskCache;
use tessera::target::Target;
use tessera_ops::prim::{Order, Prim};
use tessera_runtime::execute::{Workspace, execute};
use tessera_runtime::pool::Pool;

/// Random graphs on a target, `usual` of them where the environment does not say: what is wrong. Products in an order that the
/// target does not have are left out.
pub fn random_programs(target: &Arc<dyn Target>, usual: u64, has: fn(Order) -> bool) -> Vec<String> {
    target.ready().unwrap_or_else(|e| panic!("{}", e.why));
    on_two_threads(2, |half| {
        let pool = Arc::new(Pool::new(1));
        let options = Options { quiet: true, always_compile: true, ..Options::default() };
        let backend = Backend::on(target.clone(), options, DiskCache::new(None), pool.clone());
        let device = target.device(&pool);
        let of_half = seeds(usual).filter(|s| s % 2 == half as u64);
        let one = |seed| {
            let case = case(seed, Scale::Small);
            if case.graph.nodes.iter().any(|n| matches!(n.prim, Prim::Dot { order, .. } if !has(order))) {
                return Ok(());
            }
            let graph = backend.optimise(&case.graph);
            let plan = backend.plan(&graph).map_err(|e| format!("seed {seed}: {e:?}"))?;
            // The second time with memory that may be written over, on the device already for some of them.
            for offset in [0, 1] {
                let args = arguments(&graph, &case.inputs, offset).map_err(|e| e.what)?;
                let got = outputs(execute(&plan, args, &*device, &mut Workspace::default()));
                let same = same("on the device", &graph, &interpreted(&graph, &case.inputs), &got);
                same.map_err(|e| format!("seed {seed}: {}\n{graph}", e.what))?;
            }
            Ok(())
        };
        of_half.filter_map(|seed| one(seed).err()).collect::<Vec<String>>()
    })
}

/// The code of the first error that a run names.
fn code(ran: &Ran) -> Option<&str> {
    ran.err.lines().find_map(|l| l.strip_prefix("error[")).and_then(|l| l.get(..5))
}

/// A text as documents have it: no spaces end its lines.
fn trimmed(text: &str) -> String {
    text.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// The programs of the documents, as `run` runs them: those that print something else than the documents say. `apart` are
/// places and parts of programs that are left out.
pub fn programs_of_documents(run: impl Fn(&str) -> std::io::Result<Ran> + Sync, apart: &[(&str, &str)]) -> Vec<String> {
    let stated = documents::programs().into_iter().filter_map(|p| {
        let kind = |info: &str| matches!(info.split(' ').next(), Some("output" | "error"));
        let block =
            p.follow.iter().find(|b| kind(&b.info) && !b.info.contains("within") && !b.info.contains("check"))?;
        let apart = apart.iter().any(|(file, what)| p.place.contains(file) && p.source.contains(what));
        (!apart).then(|| (p.place.clone(), p.source.clone(), block.info.clone(), block.text.clone()))
    });
    let programs: Vec<_> = stated.collect();
    assert!(programs.len() > 300, "{} programs only", programs.len());
    on_two_threads(programs.len(), |i| {
        let (place, source, info, text) = &programs[i];
        let ran = run(source).unwrap_or_else(|e| panic!("{e}"));
        // As it is told, or its code and line.
        let told =
            text.lines().find_map(|l| l.strip_prefix("error[")).or(Some(text.as_str()).filter(|t| t.starts_with('E')));
        let wanted = told.and_then(|l| l.get(..5));
        let fine = match info.split(' ').next() {
            Some("output") => trimmed(&ran.out) == trimmed(text),
            _ => code(&ran) == wanted && !ran.err.contains("stand-in"),
        };
        match fine {
            true => vec![],
            false => vec![format!("{place}\n{source}\nexit {}\n{}{}\nexpected\n{text}", ran.code, ran.out, ran.err)],
        }
    })
}
