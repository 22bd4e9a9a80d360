//! A program that `mpirun` started several times: the steps that its processes take together before
//! and after the run, and which of them speaks.
//!
//! What a process has to tell is kept until it is known who tells it: of those that say the same the
//! first one.

use super::{Ready, Setup, told};
use std::cell::RefCell;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tessera_base::{Code, Diagnostic, Span};
use tessera_resolve::source::{Loaded, SourceMap};
use tessera_runtime::fault::Fault;
use tessera_runtime::traffic::Sent;
use tessera_runtime::world::nodes::chatty;
use tessera_runtime::world::step::What;
use tessera_runtime::world::{self, Part, World};

/// Joins the other processes, if there are any; else what is wrong, which the first process tells.
pub fn join(setup: &mut Setup) -> Result<(), Option<Fault>> {
    let joined = world::join().map_err(|fault| (world::launch::number() == 0).then_some(fault))?;
    if let Some(world) = joined {
        setup.held = Some(RefCell::default());
        if world.rank() != 0 {
            (setup.global.quiet, setup.global.verbose) = (true, false);
        }
        if setup.global.verbose {
            eprintln!("nodes: {}", world.nodes().describe());
        }
    }
    Ok(())
}

/// A program from standard input, which the first process has, for all.
pub fn from_input(read: impl FnOnce() -> Result<Loaded, Diagnostic>) -> Result<Loaded, Diagnostic> {
    let Some(world) = world::world() else { return read() };
    let mut outcome = None;
    let text = world.ask("program", || {
        let read = outcome.insert(read());
        read.as_ref().map(|l| l.text.as_bytes().to_vec()).unwrap_or_default()
    });
    match (outcome, text) {
        (Some(read), _) => read,
        (None, Ok(text)) => {
            Ok(Loaded { path: "<stdin>.tsr".into(), text: String::from_utf8_lossy(&text).into_owned().into() })
        }
        (None, Err(fault)) => Err(told(fault)),
    }
}

/// Before the run: whether all processes have the same program and can run it. Otherwise the exit code.
pub fn start(setup: &Setup, ready: Option<Ready>, args: &[String]) -> Result<Ready, u8> {
    let Some(world) = world::world() else { return ready.ok_or(1) };
    if let Some(ready) = &ready {
        world.set_places(places(ready));
    }
    let parts = parts(setup, ready.as_ref(), args);
    let all: Vec<[u8; 8]> = parts.iter().map(|p| p.hash.to_le_bytes()).collect();
    world.set_parts(parts);
    let all: Vec<&[u8]> = all.iter().map(|hash| &hash[..]).collect();
    let agreed = world.agree(What::Start, world::hash(&all), ready.is_none(), 0);
    match (ready, agreed) {
        (Some(ready), Ok(_)) => {
            tell(setup, world.rank() == 0);
            Ok(ready)
        }
        (_, outcome) => {
            if let Some(fault) = outcome.err().filter(|f| f.code != world::ELSEWHERE) {
                setup.held.iter().for_each(|h| h.borrow_mut().clear());
                setup.show(&[told(fault)], &SourceMap::default());
            }
            tell(setup, world.tells() == Some(true));
            Err(1)
        }
    }
}

/// What has to be the same in all processes. What depends on files of the others comes last: it differs where they do.
fn parts(setup: &Setup, ready: Option<&Ready>, args: &[String]) -> Vec<Part> {
    let part = |name: &str, text: &[u8]| Part { name: name.to_owned(), hash: world::hash(&[text]) };
    let global = &setup.global;
    let mesh = global.mesh.as_ref().map(ToString::to_string);
    let options = format!("{} {} {:?} {mesh:?} {args:?}", global.policy, global.check_nan, global.devices);
    let mut parts = vec![
        part("version of Tessera", env!("CARGO_PKG_VERSION").as_bytes()),
        // The one thing of a machine that results depend on.
        part("instruction for products of bf16", setup.machine().bf16.name().as_bytes()),
        part("set of arguments and options", options.as_bytes()),
    ];
    let files = ready.iter().flat_map(|r| &r.sources.files);
    parts.extend(files.map(|f| part(&format!("`{}`", f.path), f.text.as_bytes())));
    let held = setup.held.iter().map(|h| part("list of messages", &h.borrow()));
    parts.extend(held);
    parts
}

/// The lines of the program's spans.
fn places(ready: &Ready) -> Vec<String> {
    let place = |span: &Span| {
        let (file, line, _) = ready.sources.line_col(*span)?;
        Some(format!("{}:{line}", ready.sources.file(file)?.path))
    };
    ready.lowered.host.spans.iter().map(|s| place(s).unwrap_or_default()).collect()
}

/// After the run, with the exit code: lets all come to the end, and tells what there is to tell.
pub fn end(setup: &Setup, code: u8, failed: bool) {
    let Some(world) = world::world() else { return };
    if world.tells().is_none() {
        let held = setup.held.iter().map(|h| h.borrow().clone()).collect::<Vec<_>>();
        let code = [code];
        let said: Vec<&[u8]> = held.iter().map(Vec::as_slice).chain([&code[..]]).collect();
        let differ = match world.agree(What::End, world::hash(&said), failed, 0) {
            Ok(_) => warn_of_axes(setup, world),
            Err(fault) => Some(fault),
        };
        if let Some(fault) = differ.filter(|f| f.code != world::ELSEWHERE) {
            setup.show(&[told(fault)], &SourceMap::default());
        }
    }
    world.closing();
    tell(setup, world.tells().unwrap_or(world.rank() == 0));
}

/// W0402, where more goes along an axis of a mesh that lies across nodes than along one inside of them.
fn warn_of_axes(setup: &Setup, world: &World) -> Option<Fault> {
    if world.nodes().count() == 1 {
        return None;
    }
    let all = match world.moved_in_all() {
        Ok(all) => all,
        Err(fault) => return Some(fault),
    };
    for (mesh, sums) in all {
        let Some((far, near)) = chatty(&mesh, &sums, &world.crossing(&mesh)) else { continue };
        let moved = |i: usize| tessera_base::shard::bytes(sums[i]);
        let name = |i: usize| &mesh.axes[i].0;
        // The more goes along an axis, the further behind it stands.
        let mut order: Vec<usize> = (0..sums.len()).collect();
        order.sort_by_key(|&i| sums[i]);
        let names: Vec<String> = order.iter().map(|&i| format!("\"{}\"", name(i))).collect();
        let sizes: Vec<String> = order.iter().map(|&i| mesh.axes[i].1.to_string()).collect();
        let text = format!(
            "axis `{}` of {mesh} lies across nodes, and `{}`, along which less moves, inside of them",
            name(far),
            name(near)
        );
        let note =
            format!("devices sent {} along `{}` and {} along `{}`", moved(far), name(far), moved(near), name(near));
        let (names, sizes) = (names.join(", "), sizes.join(", "));
        let help =
            format!("the last axes of a mesh lie inside of nodes: `dist.Mesh(axes=[{names}], shape=[{sizes}], …)`");
        setup.show(&[Diagnostic::new(Code::W0402, Span::NONE, text).note(note).help(help)], &SourceMap::default());
    }
    None
}

/// Writes what was kept, or forgets it.
fn tell(setup: &Setup, tells: bool) {
    let Some(held) = &setup.held else { return };
    let text = std::mem::take(&mut *held.borrow_mut());
    if !tells || text.is_empty() {
        return;
    }
    let mut err = std::io::stderr().lock();
    let who = world::world().filter(|w| w.rank() > 0 && !setup.style.json);
    let who = who.map_or_else(String::new, |w| format!("  = note: {} says so\n", w.process(w.rank())));
    let _ = err.write_all(&text).and_then(|()| err.write_all(who.as_bytes())).and_then(|()| err.flush());
}

/// Leaves the others; the exit code.
pub fn close(code: u8) -> u8 {
    world::world().map_or(code, |w| w.close(code))
}

/// What devices sent each other, those of all processes, in the first one.
pub fn traffic(rows: Vec<((Arc<str>, usize), Sent)>) -> Vec<((Arc<str>, usize), Sent)> {
    let Some(world) = world::world() else { return rows };
    let line = |((name, device), sent): &((Arc<str>, usize), Sent)| {
        let [time, waited, hidden] = [sent.time, sent.waited, sent.hidden].map(|t| t.as_nanos());
        format!("{device} {} {} {time} {waited} {hidden} {name}\n", sent.runs, sent.bytes)
    };
    let text: String = rows.iter().map(line).collect();
    let read = |line: &str| {
        let mut words = line.splitn(7, ' ');
        let mut number = || words.next().and_then(|w| w.parse::<u64>().ok());
        let (device, runs, bytes) = (number()? as usize, number()?, number()?);
        let [time, waited, hidden] = [number()?, number()?, number()?].map(Duration::from_nanos);
        Some(((words.next()?.into(), device), Sent { runs, bytes, time, waited, hidden }))
    };
    let all = world.to_first(text.into_bytes()).unwrap_or_default();
    let mut all: Vec<_> =
        all.iter().flat_map(|b| String::from_utf8_lossy(b).lines().filter_map(read).collect::<Vec<_>>()).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// Bytes that went between nodes, where there are several, in words.
pub fn crossed() -> String {
    let Some(world) = world::world().filter(|w| w.nodes().count() > 1) else { return String::new() };
    // Where the others are gone there is nothing to tell.
    let Ok(bytes) = world.crossed() else { return String::new() };
    format!("between {} nodes: {bytes} bytes\n", world.nodes().count())
}

/// Whose kernels a table of times shows.
pub fn whose(world: &World) -> String {
    format!("kernels of process 0 of {}:\n", world.size())
}
