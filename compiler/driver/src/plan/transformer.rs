//! The plan of a transformer that is given by its numbers: the best ways to divide its training
//! over devices.

use super::report::{table, time};
use crate::program::{Setup, out};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use tessera_plan::model::{Gpt, Job};
use tessera_plan::request::Training;
use tessera_plan::search::{Wanted, Way, search};
use tessera_plan::stack::{Sends, Stack};
use tessera_plan::topology::Topology;
use tessera_runtime::fault::human_bytes;

#[derive(Serialize)]
struct Row<'a> {
    schema: u32,
    job: &'a Job,
    step: &'a tessera_plan::training::Step,
}

/// Shows the `best` ways; returns the exit code.
pub fn plan(setup: &Setup, path: &Path, topology: &Topology, best: usize) -> u8 {
    let read =
        std::fs::read_to_string(path).map_err(|e| ("E0706", format!("`{}` cannot be read: {e}", path.display())));
    let parsed = read.and_then(|text| {
        let wrong = |e: String| ("E0707", format!("`{}` describes no training: {e}", path.display()));
        Training::parse(&text, topology).map_err(wrong)
    });
    let training = match parsed {
        Ok(t) => t,
        Err((code, why)) => {
            eprintln!("error[{code}]: {why}");
            return 1;
        }
    };
    let wanted = training.wanted();
    let ways = search(topology, &training.model, &wanted);
    if ways.is_empty() && !is_possible(topology, &training.model, &wanted) {
        let Wanted { devices, batch, context_max: context, .. } = wanted;
        eprintln!(
            "error[E0707]: `{}` describes no training: {devices} devices are no product of parts of matrices that divide \
             {} heads, stages of {} layers, parts of sequences up to {context}, and replicas with a share of {batch} \
             sequences, as far as the file leaves them open",
            path.display(),
            training.model.heads,
            training.model.layers,
        );
        eprintln!(
            "  = help: take other devices, a larger batch, or leave `tensor`, `pipeline`, `data`, `chunks` and `micro` open"
        );
        return 1;
    }
    if ways.is_empty() {
        eprintln!(
            "error[E0710]: no way to divide the model fits into {} of each device",
            human_bytes(topology.device.memory_bytes)
        );
        eprintln!("  = help: take more devices, or a batch that more ways divide");
        return 1;
    }
    let shown = &ways[..best.clamp(1, ways.len())];
    if setup.global.json {
        for Way { job, step } in shown {
            out(&(serde_json::to_string(&Row { schema: 1, job, step }).unwrap_or_default() + "\n"));
        }
    } else {
        out(&text(&training.model, topology, &wanted, shown, ways.len()));
    }
    0
}

/// Whether there is a way at all where memory does not matter.
fn is_possible(topology: &Topology, model: &Gpt, wanted: &Wanted) -> bool {
    let mut roomy = topology.clone();
    roomy.device.memory_bytes = u64::MAX;
    !search(&roomy, model, wanted).is_empty()
}

/// What runs, as a line: whose program, its attention, libraries and what goes along with what.
fn stack_line(stack: &Stack, topology: &Topology) -> String {
    let program = match stack.sends {
        Sends::Tessera => "what Tessera sends",
        Sends::Megatron => "what Megatron-LM sends",
    };
    let libraries = stack.libraries.map_or("the newest libraries".into(), |year| format!("libraries of {year}"));
    let operators = if stack.fused { "operators fused" } else { "operators one by one" };
    let overlap = format!("{:?}", stack.overlap).to_lowercase();
    format!("{program}, attention {}, {operators}, {libraries}, overlap {overlap}", stack.attention(topology).name())
}

/// What is computed again: `3 of 8` layers of a chunk, or the name of the choice.
fn again(model: &Gpt, job: &Job) -> String {
    match job.again {
        Some(n) => format!("{n} of {}", job.chunk_layers(model)),
        None => format!("{:?}", job.recompute).to_lowercase(),
    }
}

fn text(model: &Gpt, topology: &Topology, wanted: &Wanted, ways: &[Way], all: usize) -> String {
    let mut out = String::new();
    let name = if model.name.is_empty() { "model" } else { &model.name };
    let parameters = model.parameters() / 1e9;
    let _ = writeln!(
        out,
        "{name}: {parameters:.1} billion parameters, {} sequences of {} a step, {} devices of `{}`",
        wanted.batch, model.seq, wanted.devices, topology.name
    );
    let _ = writeln!(out, "{}", stack_line(&wanted.stack, topology));
    let heads = [
        "tensor×pipeline×context×data",
        "chunks",
        "micro",
        "again",
        "states",
        "step",
        "slower",
        "TFLOP/s",
        "of peak",
        "bubble",
        "exposed",
        "memory",
    ];
    let best = ways.first().map_or(1.0, |w| w.step.seconds);
    let rows = ways.iter().map(|Way { job, step }| {
        let exposed = step.exposed_tensor + step.exposed_pipeline + step.exposed_data;
        vec![
            format!("{}×{}×{}×{}", job.tensor, job.pipeline, job.context, job.data),
            job.chunks.to_string(),
            job.micro.to_string(),
            again(model, job),
            format!("{:?}", job.states).to_lowercase(),
            time(step.seconds),
            format!("{:.1} %", 100.0 * (step.seconds / best - 1.0)),
            format!("{:.0}", step.tflops),
            format!("{:.1} %", 100.0 * step.mfu),
            format!("{:.1} %", 100.0 * step.bubble),
            format!("{:.1} %", 100.0 * exposed / step.seconds),
            human_bytes(step.memory as u64),
        ]
    });
    table(&mut out, &heads, rows.collect());
    let _ = writeln!(out, "predicted, the best {} of {all} ways that fit", ways.len());
    out
}
