//! Commands of the session: `:type`, `:emit` and the like.

use super::state::{Outcome, State};
use super::value::of_each;
use crate::cli::Ir;
use crate::files::Disk;
use clap::ValueEnum;
use tessera_infer::db::Entity;
use tessera_infer::describe;

/// Name, argument and what the command does.
pub const DIRECTIVES: &[(&str, &str, &str)] = &[
    ("help", "", "list the commands"),
    ("type", "EXPR", "the type of an expression, which is not run"),
    (
        "emit",
        "[FORM] EXPR",
        "run an expression and show what its tensor code became: graph (the default), schedule, tile, llvm, asm",
    ),
    ("explain", "TOPIC", "explain a diagnostic code or an operator"),
    ("time", "STATEMENT", "run a statement and tell how long checking, compiling and running took"),
    ("names", "", "list variables, functions and structs"),
    ("reset", "", "forget all variables and definitions"),
    ("quit", "", "leave (also Ctrl-D)"),
];

/// Runs a command, given without its colon.
pub fn run(state: &mut State, line: &str) -> Outcome {
    let (name, arg) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let arg = arg.trim();
    let found = DIRECTIVES.iter().find(|(n, ..)| {
        *n == name || matches!(name, "q" | "exit") && *n == "quit" || matches!(name, "h" | "?") && *n == "help"
    });
    let Some((name, needs, _)) = found else { return unknown(name) };
    if arg.is_empty() && !needs.is_empty() {
        return wrong(&format!("`:{name}` is written `:{name} {needs}`"));
    }
    match *name {
        "type" => type_of(state, arg),
        "emit" => emit(state, arg),
        "explain" => match crate::explain::explain(Some(arg)) {
            Ok(text) => done(state, &text),
            Err(why) => wrong(&why.replace("`tessera explain` lists", "`tessera explain` (outside) lists")),
        },
        "time" => time(state, arg),
        "names" => names(state),
        "reset" => {
            state.reset();
            Outcome::Done
        }
        "quit" => Outcome::Exit(state.code()),
        _ => done(state, &help()),
    }
}

/// Whether an input that is no command means to leave, as it does elsewhere.
pub fn leaves(state: &State, text: &str) -> bool {
    let word = text.trim().trim_end_matches("()");
    matches!(word, "quit" | "exit")
        && !state.checker.variables().iter().any(|v| &*v.name == word)
        && !state.checker.names().iter().any(|(n, _)| &**n == word)
}

fn done(state: &State, text: &str) -> Outcome {
    state.say(text);
    Outcome::Done
}

fn wrong(message: &str) -> Outcome {
    eprintln!("error[E0602]: {message}");
    Outcome::Failed
}

fn unknown(name: &str) -> Outcome {
    let hint = match tessera_base::nearest(name, DIRECTIVES.iter().map(|(n, ..)| *n)) {
        Some(near) => format!("did you mean `:{near}`?"),
        None => "`:help` lists the commands".to_owned(),
    };
    wrong(&format!("there is no command `:{name}`; {hint}"))
}

fn help() -> String {
    let mut text = String::from(
        "Statements run, expressions show their type and value; `_` is the last value.\nA block ends with a blank line. Ctrl-C clears the line or stops what runs.\n\n",
    );
    for (name, arg, what) in DIRECTIVES {
        text.push_str(&format!("  {:<18} {what}\n", format!(":{name} {arg}")));
    }
    text
}

fn type_of(state: &mut State, text: &str) -> Outcome {
    let known = state.checker.names().into_iter().find(|(n, _)| **n == *text);
    if let Some((_, Entity::Def(id))) = known
        && let Some(head) = state.checker.head(id)
    {
        return done(state, &format!("{head}\n"));
    }
    match state.checker.type_of(text, &Disk) {
        Ok(ty) => done(state, &format!("{}\n", describe(&of_each(&ty)))),
        Err(diagnostics) if diagnostics.is_empty() => wrong("`:type` takes an expression"),
        Err(diagnostics) => {
            state.setup.show(&diagnostics, &state.checker.database().source_map());
            Outcome::Failed
        }
    }
}

fn emit(state: &mut State, arg: &str) -> Outcome {
    let (form, text) = match arg.split_once(char::is_whitespace) {
        Some((first, rest))
            if rest
                .trim_start()
                .starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '(' | '[' | '-' | '~')) =>
        {
            match Ir::from_str(first, false) {
                Ok(form) => (form, rest.trim_start()),
                Err(_) => (Ir::Graph, arg),
            }
        }
        _ => (Ir::Graph, arg),
    };
    if matches!(form, Ir::Ast | Ir::Core | Ir::Host) {
        return wrong("`:emit` shows tensor code: graph, schedule, tile, llvm or asm");
    }
    let (outcome, graphs, backend) = state.graphs(text);
    if outcome != Outcome::Done {
        return outcome;
    }
    if graphs.is_empty() {
        return done(
            state,
            "no tensor code runs here; give an expression that computes a tensor, such as a call of a function\n",
        );
    }
    for graph in &graphs {
        match crate::emit::text_of(&backend, graph, form) {
            Ok(text) => state.say(&text),
            Err(d) => {
                state.setup.show(&[*d], &state.checker.database().source_map());
                return Outcome::Failed;
            }
        }
    }
    Outcome::Done
}

fn time(state: &mut State, text: &str) -> Outcome {
    let outcome = state.eval(text);
    let t = state.times;
    let ms = |d: std::time::Duration| d.as_secs_f64() * 1e3;
    eprintln!("{:.3} ms to check, {:.3} ms to compile, {:.3} ms to run", ms(t.check), ms(t.compile), ms(t.run));
    outcome
}

fn names(state: &State) -> Outcome {
    let mut text = String::new();
    for v in state.checker.variables().iter().filter(|v| &*v.name != "_") {
        text.push_str(&format!("{}: {}\n", v.name, v.ty));
    }
    for (name, entity) in state.checker.names() {
        let line = match entity {
            Entity::Def(id) => state.checker.head(id).unwrap_or_else(|| name.to_string()),
            Entity::Struct(_) => format!("struct {name}"),
            Entity::Module(_) | Entity::File(_) => format!("module {name}"),
            Entity::Member(..) | Entity::Builtin(_) => name.to_string(),
            Entity::Broken => continue,
        };
        text.push_str(&format!("{line}\n"));
    }
    done(state, &text)
}
