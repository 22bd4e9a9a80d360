//! `tessera help TOPIC`: a command, an operator, a code, a function of the standard library.

use crate::cli::Cli;
use crate::program::{Setup, topic_shown};
use crate::repl::output::Buffer;
use crate::repl::state::{Outcome, State};
use clap::CommandFactory;
use tessera_base::{Code, Diagnostic, Span};
use tessera_ide::library;
use tessera_ops::surface;
use tessera_resolve::source::SourceMap;

/// Shows what there is to say of a topic; returns the exit code.
pub fn help(setup: &Setup, topic: Option<&str>) -> u8 {
    let mut tool = Cli::command();
    tool.build();
    let Some(topic) = topic else {
        topic_shown(setup, None, &format!("{}\n", tool.render_help()));
        return 0;
    };
    if let Some(command) = tool.find_subcommand_mut(topic) {
        let text = format!("{}\n", command.render_long_help());
        topic_shown(setup, Some(topic), &text);
        return 0;
    }
    if let Ok(text) = crate::explain::explain(Some(topic)) {
        topic_shown(setup, Some(topic), &text);
        return 0;
    }
    if let Some(text) = in_a_session(setup, topic) {
        topic_shown(setup, Some(topic), &text);
        return 0;
    }
    let commands = tool.get_subcommands().map(|c| c.get_name().to_owned());
    let others = surface::all().map(|d| d.name).chain(library::modules()).map(str::to_owned);
    let names: Vec<String> = commands.chain(others).collect();
    let codes = Code::ALL.iter().map(|c| c.name());
    let near = tessera_base::nearest(topic, names.iter().map(String::as_str));
    let near = near.or_else(|| tessera_base::nearest(&topic.to_uppercase(), codes));
    let hint = near.map_or_else(|| "`tessera help` lists the commands".to_owned(), |n| format!("did you mean `{n}`?"));
    let why = format!("there is no command, operator, code or function `{topic}`; {hint}");
    match setup.global.json {
        true => setup.show(&[Diagnostic::new(Code::E0602, Span::NONE, why)], &SourceMap::default()),
        false => eprintln!("error[E0602]: {why}"),
    }
    2
}

/// What a session says of a name: `?nn.linear`.
fn in_a_session(setup: &Setup, topic: &str) -> Option<String> {
    let topic = topic.strip_prefix("std.").unwrap_or(topic);
    let shown = [Buffer::default(), Buffer::default()];
    // What a session would say of an unknown name is said here.
    let quiet = Setup {
        global: setup.global.clone(),
        held: Some(Default::default()),
        style: setup.style,
        stack_bytes: setup.stack_bytes,
        profile: None,
        gate: None,
    };
    let mut state = State::held(&quiet, shown.clone());
    let outcome = state.take(&format!("?{topic}"));
    let text = shown[0].take();
    (outcome == Outcome::Done && !text.is_empty()).then_some(text)
}
