//! `tessera plan`: what a program, or a model given by its numbers, needs on a machine that is not
//! there.
//!
//! The program's own code runs, and its tensors have shapes and no elements: every region that
//! it calls is traced, divided over its mesh and placed in memory as if it was to run.

mod report;
mod program;
mod closed;

use crate::program::Setup;
use std::path::Path;
use tessera_base::near::nearest;
use tessera_plan::topology::{Topology, names};

/// What the command line says.
pub struct Asked<'a> {
    pub file: &'a Path,
    pub topology: &'a str,
    pub best: usize,
    pub args: Vec<String>,
}

/// Runs the command; returns the exit code.
pub fn plan(setup: &Setup, asked: Asked) -> u8 {
    let topology = match topology(asked.topology) {
        Ok(t) => t,
        Err(why) => {
            eprintln!("error[E0602]: {why}");
            return 2;
        }
    };
    match asked.file.extension().is_some_and(|e| e == "json") {
        true => closed::plan(setup, asked.file, &topology, asked.best),
        false => program::plan(setup, asked.file, &topology, asked.args),
    }
}

/// A machine that comes along, or one from a file.
fn topology(name: &str) -> Result<Topology, String> {
    if let Some(found) = Topology::named(name) {
        return Ok(found);
    }
    if !name.ends_with(".json") {
        let near = nearest(name, names()).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
        return Err(format!(
            "there is no topology `{name}`{near} There are {}, or a file that ends in `.json`",
            names().join(", ")
        ));
    }
    let text = std::fs::read_to_string(name).map_err(|e| format!("`{name}` cannot be read: {e}"))?;
    Topology::parse(&text).map_err(|e| format!("`{name}` describes no machine: {e}"))
}
