//! What becomes of one function, as the language server keeps it, and how it is found. Sizes are those of the signature, or of a
//! call of the program; where nothing says them, small ones.

use crate::ask::Asked;
use crate::cli::OfFunction;
use crate::explain::calls::sizes_of_calls;
use crate::explain::function::instances;
use crate::explain::graphs::{Facts, Graphs};
use crate::program::Setup;
use std::any::Any;
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, FileId, ItemId};
use tessera_core::ir::{Effect, FnInst};
use tessera_core::sizes::vars_of;
use tessera_infer::asked;
use tessera_infer::db::Database;

/// A function, and the program that it is looked at in.
pub type Key = (FileId, ItemId);

/// What was found of a function.
pub struct Known {
    /// Its text: of another one, something else is true.
    pub text: Arc<str>,
    /// The state of all texts.
    pub state: u64,
    /// Its file, and its first line there, from 1.
    pub path: String,
    pub first: usize,
    /// Or why there is nothing.
    pub found: Result<Found, String>,
}

/// What is told of it.
pub struct Found {
    pub facts: Facts,
    /// At which sizes, in words.
    pub at: String,
    /// Whether those are small ones that the program does not have: bytes are not those of its run.
    pub chosen: bool,
}

/// What a thread tells.
pub struct Answer {
    pub key: Key,
    /// None where an edit came first.
    pub known: Option<Known>,
    /// What went wrong in the compiler itself.
    pub fault: Option<Box<dyn Any + Send>>,
}

/// The function with its program. The picture of the texts goes here: whoever edits next does not wait for the compiler.
fn asked(db: Database, (root, id): Key) -> Result<Asked, String> {
    let all = asked::functions(&db, root);
    let (name, _) = all.iter().find(|(_, head)| head.item == id).ok_or("no function is there")?;
    let asked::Asked { checked, function } = asked::ask(&db, root, name);
    drop(db);
    if checked.diagnostics.iter().any(Diagnostic::is_error) {
        return Err("the program has errors".into());
    }
    let program = Arc::new(checked.program.ok_or("the program has errors")?);
    match function {
        Ok(function) => {
            let asked = Asked { program: program.clone(), sources: checked.sources, function };
            // What a call makes of it has sizes, and the mesh.
            let closed = |f: &FnInst| f.params.iter().all(|l| vars_of(&f.locals[l.0 as usize].ty).is_empty());
            let calls = instances(&program, id, name);
            let call = calls.iter().find(|(_, f)| f.effect == Effect::Graph && closed(f)).map(|(inst, _)| *inst);
            Ok(match call {
                Some(inst) => Asked::instance(program.clone(), asked.sources, inst, asked.function.head),
                None => asked,
            })
        }
        Err(why) if why.code == Code::E0213 => {
            let calls = instances(&program, id, name);
            let call = calls.iter().find(|(_, f)| f.effect == Effect::Graph).or(calls.first());
            let inst = call.ok_or("its parameters have no types, and nothing calls it")?.0;
            Ok(Asked::instance(program.clone(), checked.sources, inst, why.span))
        }
        Err(why) => Err(why.message.clone()),
    }
}

/// Compiles a function.
///
/// # Errors
/// Why nothing can be told of it.
pub fn find(db: Database, key: Key, setup: &Setup) -> Result<Found, String> {
    let asked = asked(db, key)?;
    if let Effect::Host { .. } = asked.inst().effect {
        let why = "it is host code, and neighbours that only compute tensors become a graph when they run";
        return Err(why.into());
    }
    let refused = |found: Vec<Diagnostic>| found.first().map_or_else(String::new, |d| d.message.clone());
    let Some(sizes) = sizes_of_calls(&asked) else {
        let of = OfFunction { function: None, sizes: None, values: None };
        let graphs = Graphs::of(setup, &asked, &of).map_err(refused)?;
        let small = "small sizes, as no call of the program says them";
        let at = match &*graphs.chosen {
            "" => format!(" at {small}"),
            chosen => format!(" at {chosen}: {small}"),
        };
        return Ok(Found { facts: graphs.facts(&asked.sources), at, chosen: true });
    };
    let facts = Graphs::of(setup, &asked, &sizes.of).map_err(refused)?.facts(&asked.sources);
    let given = sizes.of.sizes.iter().flat_map(|s| &s.0).map(|(name, n)| format!("{name}={n}"));
    let values = sizes.of.values.iter().flat_map(|v| &v.0).map(|(name, n)| format!("{name}={n}"));
    let given: Vec<String> = given.chain(values).collect();
    let line = sizes.call.and_then(|span| asked.sources.line_col(span));
    let at = match (&given[..], line) {
        ([], _) | (_, None) => String::new(),
        (given, Some((_, line, _))) => format!(" at {}, as line {line} calls it", given.join(" ")),
    };
    Ok(Found { facts, at, chosen: false })
}
