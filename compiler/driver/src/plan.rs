//! `tessera plan`: what a program, or a model given by its numbers, needs on a machine that is not
//! there.
//!
//! The program's own code runs, and its tensors have shapes and no elements: every region that
//! it calls is traced, divided over its mesh and placed in memory as if it was to run. Of one function (`--function`) nothing
//! runs: it is planned for one call at sizes that are given or chosen.

mod report;
mod program;
mod transformer;

use crate::cli::OfFunction;
use crate::program::Setup;
use std::path::Path;
use tessera_base::near::nearest;
use tessera_plan::topology::{Topology, names};

/// What the command line says.
pub struct Asked<'a> {
    pub file: &'a Path,
    pub topology: &'a str,
    pub best: usize,
    pub of: &'a OfFunction,
    pub args: Vec<String>,
}

/// Runs the command; returns the exit code.
pub fn plan(setup: &Setup, asked: Asked) -> u8 {
    let topology = match topology(asked.topology) {
        Ok(t) => t,
        Err(wrong) => return wrong.show(),
    };
    let closed = asked.file.extension().is_some_and(|e| e == "json");
    let misused = |why: String, help: &str| Wrong { code: "E0602", exit: 2, why, help: help.into() }.show();
    match (&asked.of.function, closed) {
        (Some(_), true) => {
            let why = format!("`--function`: {} describes a model by its numbers", asked.file.display());
            misused(why, "leave `--function` out")
        }
        (None, _) if asked.of.misplaced().is_some() => {
            misused("`--sizes` says nothing of a whole program".into(), "name a function: `--function NAME`")
        }
        (None, true) => transformer::plan(setup, asked.file, &topology, asked.best),
        (Some(name), false) => program::function(setup, asked.file, &topology, name, asked.of),
        (None, false) => program::plan(setup, asked.file, &topology, asked.args),
    }
}

/// A machine that cannot be planned for.
struct Wrong {
    code: &'static str,
    exit: u8,
    why: String,
    help: String,
}

impl Wrong {
    fn show(self) -> u8 {
        eprintln!("error[{}]: {}\n  = help: {}", self.code, self.why, self.help);
        self.exit
    }
}

/// A machine that comes along, or one from a file.
fn topology(name: &str) -> Result<Topology, Wrong> {
    if let Some(found) = Topology::named(name) {
        return Ok(found);
    }
    if !name.ends_with(".json") {
        let near = nearest(name, names()).map_or(String::new(), |n| format!("did you mean `{n}`? "));
        let why = format!("there is no machine `{name}` for `--topology`");
        let help = format!("{near}There are {}, or a file that ends in `.json`", names().join(", "));
        return Err(Wrong { code: "E0602", exit: 2, why, help });
    }
    let text = std::fs::read_to_string(name).map_err(|e| Wrong {
        code: "E0706",
        exit: 1,
        why: format!("`{name}` cannot be read: {e}"),
        help: format!("`--topology` takes the path of a file, or one of {}", names().join(", ")),
    })?;
    Topology::parse(&text).map_err(|e| Wrong {
        code: "E0707",
        exit: 1,
        why: format!("`{name}` describes no machine: {e}"),
        help: "the files of `compiler/plan/topologies` have every field; `docs/planner.md` says what they mean".into(),
    })
}
