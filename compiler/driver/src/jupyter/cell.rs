//! What a cell has to say, on its way to the clients.

use super::rich;
use super::sockets::To;
use crate::files::Texts;
use crate::render::{Style, render};
use crate::repl::output::{Listener, Shown};
use jupyter_protocol::messaging::{
    DisplayData, JupyterMessage, JupyterMessageContent as Content, StreamContent, Transient, UpdateDisplayData,
};
use jupyter_protocol::{Media, MediaType, ReplyError};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tessera_base::{Diagnostic, quote};
use tessera_resolve::source::SourceMap;
use tessera_runtime::progress::Progress;
use tokio::sync::mpsc::UnboundedSender;

/// Sends messages that belong to what is being answered.
#[derive(Clone)]
pub struct Speaker {
    out: UnboundedSender<(To, JupyterMessage)>,
    parent: Arc<Mutex<Option<JupyterMessage>>>,
}

impl Speaker {
    /// One that sends there.
    pub fn new(out: UnboundedSender<(To, JupyterMessage)>) -> Speaker {
        Speaker { out, parent: Arc::default() }
    }

    /// From here on this message is answered.
    pub fn answer(&self, message: &JupyterMessage) {
        *self.parent.lock().unwrap_or_else(|e| e.into_inner()) = Some(message.clone());
    }

    /// The name of the message that is answered.
    fn parent(&self) -> Option<String> {
        self.parent.lock().unwrap_or_else(|e| e.into_inner()).as_ref().map(|m| m.header.msg_id.clone())
    }

    /// Sends a message.
    pub fn say(&self, to: To, content: impl Into<Content>) {
        let parent = self.parent.lock().unwrap_or_else(|e| e.into_inner());
        // Without its thread the kernel ends.
        let _ = self.out.send((to, JupyterMessage::new(content, parent.as_ref())));
    }
}

/// Listens to a session while a cell runs.
pub struct Cell {
    speaker: Speaker,
    color: bool,
    quiet: bool,
    came: RefCell<Came>,
}

/// What came of a cell so far.
#[derive(Default)]
pub struct Came {
    /// The value of its last statement.
    pub value: Option<Shown>,
    /// Its first error, with all that were shown.
    pub error: Option<ReplyError>,
    /// The loops whose progress it shows, by number.
    pub bars: BTreeSet<u64>,
}

impl Cell {
    /// One whose messages the speaker sends.
    pub fn new(speaker: Speaker, style: Style) -> Cell {
        Cell { speaker, color: style.color, quiet: style.quiet, came: RefCell::default() }
    }

    /// What came of the cell; the next one begins.
    pub fn take(&self) -> Came {
        self.came.take()
    }
}

impl Listener for Cell {
    fn out(&self, text: &str) {
        if !text.is_empty() {
            self.speaker.say(To::All, StreamContent::stdout(text));
        }
    }

    fn remark(&self, text: &str) {
        if !text.is_empty() {
            self.speaker.say(To::All, StreamContent::stderr(text));
        }
    }

    fn told(&self, diagnostics: &[Diagnostic], sources: &SourceMap) {
        let mut text = vec![];
        let style = Style { color: self.color, json: false, quiet: self.quiet };
        render(&mut text, diagnostics, &Texts(sources), style);
        let text = String::from_utf8_lossy(&text).into_owned();
        let Some(first) = diagnostics.iter().find(|d| d.is_error()) else { return self.remark(&text) };
        let mut came = self.came.borrow_mut();
        let error = came.error.get_or_insert_with(|| {
            let sources = Texts(sources);
            let spelled = quote::spelled(&first.message, |span| {
                crate::render::Sources::locate(&sources, span).and_then(|p| p.text.get(p.start..p.end))
            });
            ReplyError { ename: first.code.name().into(), evalue: spelled.into_owned(), traceback: vec![] }
        });
        error.traceback.extend(text.lines().map(thinned));
    }

    fn picture(&self, svg: String) {
        self.speaker.say(To::All, DisplayData::from(vec![MediaType::Svg(svg)]));
    }

    fn progress(&self, progress: &Progress) {
        let data = rich::progress(progress);
        // Names are of the whole notebook, and a cell that runs again has displays of its own.
        let cell = self.speaker.parent().unwrap_or_default();
        let name = format!("{cell}-{}", progress.number);
        // A loop may have begun in a cell before, where it was interrupted.
        let begins = self.came.borrow_mut().bars.insert(progress.number);
        match begins {
            true => {
                let transient = Some(Transient { display_id: Some(name) });
                self.speaker.say(To::All, DisplayData { transient, ..DisplayData::from(data) });
            }
            false => self.speaker.say(To::All, UpdateDisplayData::new(Media::new(data), &name)),
        }
    }

    fn value(&self, shown: Option<Shown>) {
        let before = std::mem::replace(&mut self.came.borrow_mut().value, shown);
        // A figure in the middle of a cell is meant to be seen.
        if let Some(figure) = before.as_ref().and_then(rich::figure) {
            self.speaker.say(To::All, DisplayData::from(figure));
        }
    }
}

/// A coloured line in which a colour is not ended and begun again between characters of the same colour.
fn thinned(line: &str) -> String {
    const END: &str = "\x1b[0m";
    let (mut out, mut rest, mut color) = (String::new(), line, "");
    while let Some(at) = rest.find('\x1b') {
        let (text, code) = rest.split_at(at);
        out.push_str(text);
        rest = code;
        let Some(long) = code.find('m').map(|i| i + 1) else { break };
        let again = code.strip_prefix(END).filter(|_| !color.is_empty()).and_then(|then| then.strip_prefix(color));
        if let Some(then) = again {
            rest = then;
            continue;
        }
        let (code, then) = code.split_at(long);
        out.push_str(code);
        color = if code == END { "" } else { code };
        rest = then;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_is_said_once() {
        let line = "\x1b[31ma\x1b[0m\x1b[31mb\x1b[0m \x1b[31mc\x1b[0m\x1b[34md\x1b[0m";
        assert_eq!(thinned(line), "\x1b[31mab\x1b[0m \x1b[31mc\x1b[0m\x1b[34md\x1b[0m");
        assert_eq!([thinned("plain"), thinned("a\x1b[3")], ["plain", "a\x1b[3"]);
    }
}
