//! Commands of the session: `:type`, `:emit` and the like.

use super::look;
use super::state::{Outcome, State};
use super::value::of_each;
use crate::cli::Ir;
use crate::files::Disk;
use crate::profile::shown;
use clap::ValueEnum;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_infer::db::Entity;
use tessera_infer::describe;
use tessera_resolve::source::{Loaded, SourceMap};
use tessera_runtime::io::files::{write_atomically, write_fault};

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
    ("timeit", "EXPR", "the median time of several runs of an expression, the first one apart"),
    ("profile", "EXPR", "run an expression and show the time of each of its kernels"),
    ("doc", "NAME", "what something is (also `?NAME`, `NAME?`; `??NAME` shows its source)"),
    ("load", "FILE", "run a program as if it were typed here"),
    ("reload", "", "run imported modules again that have changed, and what they give"),
    ("save", "FILE", "write the inputs of the session as a program"),
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
    let Some((name, needs, _)) = found else { return unknown(state, name) };
    if arg.is_empty() && !needs.is_empty() {
        return state.wrong(&format!("`:{name}` is written `:{name} {needs}`"));
    }
    match *name {
        "type" => type_of(state, arg),
        "emit" => emit(state, arg),
        "explain" => match crate::explain::explain(Some(arg)) {
            Ok(text) => done(state, &text),
            Err(why) => state.wrong(&why.replace("`tessera explain` lists", "`tessera explain` (outside) lists")),
        },
        "time" => time(state, arg),
        "timeit" => timeit(state, arg),
        "profile" => profile(state, arg),
        "doc" => look::look(state, arg, false),
        "load" => load(state, arg),
        "reload" => reload(state),
        "save" => save(state, arg),
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

fn unknown(state: &State, name: &str) -> Outcome {
    let hint = match tessera_base::nearest(name, DIRECTIVES.iter().map(|(n, ..)| *n)) {
        Some(near) => format!("did you mean `:{near}`?"),
        None => "`:help` lists the commands".to_owned(),
    };
    state.wrong(&format!("there is no command `:{name}`; {hint}"))
}

fn help() -> String {
    let mut text = String::from(
        "Statements run, expressions show their type and value; `_` is the last value.\nA `;` at the end keeps a value from being shown. `?NAME` tells what something is, `??NAME` shows its source.\nA block ends with a blank line. Ctrl-C clears the line or stops what runs.\n\n",
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
        Err(diagnostics) if diagnostics.is_empty() => state.wrong("`:type` takes an expression"),
        Err(diagnostics) => {
            state.show(&diagnostics, &state.checker.database().source_map());
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
        return state.wrong("`:emit` shows tensor code: graph, schedule, tile, llvm or asm");
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
                state.show(&[*d], &state.checker.database().source_map());
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
    let (check, compile, run) = (ms(t.check), ms(t.compile), ms(t.run));
    state.remark(&format!("{check:.3} ms to check, {compile:.3} ms to compile, {run:.3} ms to run\n"));
    outcome
}

/// Runs of `:timeit`: at least so many, and no more once they took so long.
const RUNS_MIN: usize = 3;
const RUNS_MAX: usize = 1000;
const RUNS_TAKE: Duration = Duration::from_secs(1);

fn timeit(state: &mut State, text: &str) -> Outcome {
    let recording = std::mem::replace(&mut state.recording, false);
    let begin = Instant::now();
    let mut times: Vec<Duration> = vec![];
    let mut outcome = Outcome::Done;
    while times.len() < RUNS_MIN + 1 || times.len() < RUNS_MAX && begin.elapsed() < RUNS_TAKE {
        outcome = state.eval_silently(text);
        if outcome != Outcome::Done {
            break;
        }
        times.push(state.times.run);
    }
    state.recording = recording;
    let [first, later @ ..] = &mut times[..] else { return outcome };
    if outcome != Outcome::Done || later.is_empty() {
        return outcome;
    }
    later.sort_unstable();
    let (median, runs) = (shown(later[later.len() / 2]), later.len());
    let (least, first) = (shown(later[0]), shown(*first));
    done(state, &format!("{median} median of {runs} runs, {least} the fastest; {first} the first\n"))
}

fn profile(state: &mut State, text: &str) -> Outcome {
    tessera_runtime::profile::start(Default::default());
    let outcome = state.eval_silently(text);
    let profile = tessera_runtime::profile::end();
    if outcome == Outcome::Done {
        let whole = state.times.run;
        state.say(&crate::profile::table(&profile, whole, None, &state.checker.database().source_map()));
        state.say(&crate::profile::taken(&profile.rows));
    }
    outcome
}

fn load(state: &mut State, arg: &str) -> Outcome {
    let loaded = match crate::files::read_source(Path::new(arg)) {
        Ok(l) => l,
        Err(d) => {
            state.show(&[d], &SourceMap::default());
            return Outcome::Failed;
        }
    };
    // A module of the same name is another thing: it runs by itself.
    let beside = Path::new(arg).parent().is_none_or(|p| p.as_os_str().is_empty());
    let path = if beside { format!("./{}", loaded.path) } else { loaded.path.to_string() };
    state.load(&path, &loaded.text)
}

/// Imports again whatever inputs imported: what has changed runs.
fn reload(state: &mut State) -> Outcome {
    let is_import = |text: &&String| text.starts_with("import ") || text.starts_with("from ");
    let mut imports: Vec<String> = vec![];
    for text in state.accepted.iter().filter(is_import) {
        imports.retain(|t| t != text);
        imports.push(text.clone());
    }
    if imports.is_empty() {
        return state.wrong("nothing was imported");
    }
    let recording = std::mem::replace(&mut state.recording, false);
    let outcomes: Vec<Outcome> = imports.iter().map(|text| state.eval_silently(text)).collect();
    state.recording = recording;
    outcomes.into_iter().find(|o| *o != Outcome::Done).unwrap_or(Outcome::Done)
}

fn save(state: &mut State, arg: &str) -> Outcome {
    let path = Path::new(arg);
    let text: Arc<str> = super::saved::program(&state.accepted).into();
    let loaded = Loaded { path: path.to_string_lossy().into(), text: text.clone() };
    let checked = crate::program::check(&loaded);
    if checked.diagnostics.iter().any(tessera_base::Diagnostic::is_error) {
        state.show(&checked.diagnostics, &checked.sources);
        return state.wrong("the inputs are no program as they stand: nothing was written");
    }
    let written = write_atomically(path, |to| to.write_all(text.as_bytes()).map_err(|e| write_fault(path, &e)));
    match written {
        Ok(()) => Outcome::Done,
        Err(fault) => {
            state.show(&[crate::program::told(fault)], &SourceMap::default());
            Outcome::Failed
        }
    }
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
