//! The session's side of a kernel: what is asked on the shell channel, answered one after the other.

use super::answers;
use super::captured::Captured;
use super::cell::{Cell, Speaker};
use super::rich;
use super::sockets::{self, Asked, To};
use crate::program::Setup;
use crate::repl::complete::Known;
use crate::repl::input::{self, Completeness};
use crate::repl::interrupts::Interrupts;
use crate::repl::look;
use crate::repl::state::{Outcome, State, survived};
use jupyter_protocol::messaging::{
    CompleteReply, CompleteRequest, ErrorOutput, ExecuteInput, ExecuteReply, ExecuteRequest, ExecuteResult,
    HistoryEntry, HistoryReply, HistoryRequest, InspectReply, InspectRequest, IsCompleteReply, JupyterMessage,
    JupyterMessageContent as Content, Payload, ReplyStatus, ShutdownReply, Status, StreamContent,
};
use jupyter_protocol::{ConnectionInfo, ExecutionCount, Media, MediaType, ReplyError};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// After an error, cells that come within this time were sent before anybody knew of it.
const SENT_BEFORE: Duration = Duration::from_millis(20);
/// Cells that the history keeps.
const HISTORY_MAX: usize = 10_000;

/// What stands in the queue: a message, and why it cannot be answered where it is wrong.
struct Request {
    message: JupyterMessage,
    wrong: Option<String>,
}

impl Request {
    /// `None` where nothing more is to be answered.
    fn of(asked: Asked) -> Option<Request> {
        match asked {
            Asked::Message(message) => Some(Request { message: *message, wrong: None }),
            Asked::Wrong(message, why) => Some(Request { message: *message, wrong: Some(why) }),
            Asked::Shutdown => None,
        }
    }
}

/// A kernel that listens.
pub struct Kernel<'a> {
    state: State<'a>,
    cell: Rc<Cell>,
    speaker: Speaker,
    asked: Receiver<Asked>,
    /// What came while something else was waited for.
    waiting: VecDeque<Request>,
    captured: Option<Captured>,
    sockets: std::thread::JoinHandle<()>,
    count: usize,
    history: VecDeque<(usize, String, String)>,
    ended: bool,
    code: u8,
}

impl<'a> Kernel<'a> {
    /// Listens where the connection file says.
    ///
    /// # Errors
    /// In words, where that cannot be done.
    pub fn start(setup: &'a Setup, info: ConnectionInfo) -> Result<Kernel<'a>, String> {
        let (ask, asked) = std::sync::mpsc::channel();
        let (answer, answers) = tokio::sync::mpsc::unbounded_channel();
        let interrupts = Interrupts::watch(false);
        let sockets = sockets::listen(info, ask, answers, answer.clone(), interrupts.clone())?;
        let speaker = Speaker::new(answer);
        let tell = speaker.clone();
        let tell = move |error: bool, text: &str| {
            let said = if error { StreamContent::stderr(text) } else { StreamContent::stdout(text) };
            tell.say(To::All, said);
        };
        // Without pipes it goes where it went before.
        let captured = Captured::start(tell).ok();
        let style = crate::render::Style { color: true, ..setup.style };
        let cell = Rc::new(Cell::new(speaker.clone(), style));
        let state = State::told(setup, interrupts, cell.clone());
        speaker.say(To::All, Status::starting());
        Ok(Kernel {
            state,
            cell,
            speaker,
            asked,
            waiting: VecDeque::new(),
            captured,
            sockets,
            count: 0,
            history: VecDeque::new(),
            ended: false,
            code: 0,
        })
    }

    /// Answers until it is told to end; gives the exit code.
    ///
    /// # Errors
    /// In words, where the sockets are gone.
    pub fn run(mut self) -> Result<u8, String> {
        while !self.ended {
            let Some(Request { message, wrong }) = self.next() else { break };
            self.speaker.answer(&message);
            self.speaker.say(To::All, Status::busy());
            match wrong {
                None => self.answer(message),
                Some(why) => self.speaker.say(To::Shell, sockets::refusal(&message, &why)),
            }
            self.settle();
            self.speaker.say(To::All, Status::idle());
        }
        self.speaker.say(To::Nobody, Status::idle());
        match self.sockets.join() {
            Ok(()) => Ok(self.code),
            Err(_) => Err("the thread of the sockets went down".into()),
        }
    }

    fn next(&mut self) -> Option<Request> {
        match self.waiting.pop_front() {
            Some(request) => Some(request),
            None => self.asked.recv().ok().and_then(Request::of),
        }
    }

    fn settle(&mut self) {
        if let Some(captured) = &mut self.captured {
            captured.settle();
        }
    }

    fn answer(&mut self, message: JupyterMessage) {
        let reply: Content = match message.content {
            Content::ExecuteRequest(request) => return self.execute(&request),
            Content::KernelInfoRequest(_) => Content::KernelInfoReply(Box::new(answers::kernel_info())),
            Content::CompleteRequest(request) => self.complete(&request).into(),
            Content::InspectRequest(request) => self.inspection(&request).into(),
            Content::IsCompleteRequest(request) => is_complete(&request.code).into(),
            Content::HistoryRequest(request) => HistoryReply::new(self.remembered(&request)).into(),
            Content::CommInfoRequest(_) => answers::comm_info().into(),
            Content::ShutdownRequest(request) => {
                self.ended = true;
                ShutdownReply { restart: request.restart, ..Default::default() }.into()
            }
            // Nobody waits for an answer, or there is none that is known.
            _ => return,
        };
        self.speaker.say(To::Shell, reply);
    }

    fn execute(&mut self, request: &ExecuteRequest) {
        let stored = request.store_history && !request.silent;
        if stored {
            self.count += 1;
        }
        if !request.silent {
            let (code, execution_count) = (request.code.clone(), ExecutionCount::new(self.count));
            self.speaker.say(To::All, ExecuteInput { code, execution_count });
        }
        self.state.place = stored.then(|| format!("In [{}]", self.count));
        let outcome = self.inputs(&request.code);
        self.settle();
        let came = self.cell.take();
        let text = came.value.as_ref().map_or_else(String::new, |v| v.text.trim_end().to_owned());
        if stored {
            self.history.push_back((self.count, request.code.clone(), text));
            if self.history.len() > HISTORY_MAX {
                self.history.pop_front();
            }
        }
        let execution_count = ExecutionCount::new(self.count);
        if outcome == Outcome::Failed {
            let error = came.error.unwrap_or_else(bug);
            return self.failed(request, error);
        }
        if let (Some(value), false) = (&came.value, request.silent) {
            // A drawing that goes down must not take the session with it.
            let drawn = survived(|| rich::media(value));
            let data = Media::new(drawn.unwrap_or_else(|| vec![MediaType::Plain(value.text.trim_end().to_owned())]));
            let transient = Some(Default::default());
            self.speaker.say(To::All, ExecuteResult { transient, ..ExecuteResult::new(execution_count, data) });
        }
        let mut payload = vec![];
        if let Outcome::Exit(code) = outcome {
            (self.ended, self.code) = (true, code);
            payload.push(Payload::AskExit { keepkernel: false });
        }
        let user_expressions = Some(Default::default());
        let reply = ExecuteReply { execution_count, payload, user_expressions, ..Default::default() };
        self.speaker.say(To::Shell, reply);
    }

    /// The inputs of a cell, until one fails.
    fn inputs(&mut self, code: &str) -> Outcome {
        for input in input::of_cell(code) {
            match self.state.take(&input) {
                Outcome::Done => {}
                other => return other,
            }
        }
        Outcome::Done
    }

    /// Tells an error; cells that were sent already are not run.
    fn failed(&mut self, request: &ExecuteRequest, error: ReplyError) {
        let mut aborted = VecDeque::new();
        if request.stop_on_error && !request.silent {
            while let Ok(asked) = self.asked.recv_timeout(SENT_BEFORE) {
                match Request::of(asked) {
                    Some(request) => self.waiting.push_back(request),
                    None => {
                        self.ended = true;
                        break;
                    }
                }
            }
            let is_cell = |r: &Request| matches!(r.message.content, Content::ExecuteRequest(_));
            let (cells, others) = std::mem::take(&mut self.waiting).into_iter().partition(is_cell);
            (aborted, self.waiting) = (cells, others);
        }
        if !request.silent {
            let ReplyError { ename, evalue, traceback } = error.clone();
            self.speaker.say(To::All, ErrorOutput { ename, evalue, traceback });
        }
        self.reply_failed(ReplyStatus::Error, error);
        for cell in aborted {
            self.speaker.say(To::All, Status::idle());
            self.speaker.answer(&cell.message);
            self.speaker.say(To::All, Status::busy());
            let why =
                ReplyError { ename: "aborted".into(), evalue: "an earlier cell failed".into(), traceback: vec![] };
            self.reply_failed(ReplyStatus::Aborted, why);
        }
    }

    fn reply_failed(&self, status: ReplyStatus, error: ReplyError) {
        let execution_count = ExecutionCount::new(self.count);
        let error = Some(Box::new(error));
        self.speaker.say(To::Shell, ExecuteReply { status, execution_count, error, ..Default::default() });
    }

    fn complete(&self, request: &CompleteRequest) -> CompleteReply {
        let cursor = answers::byte_of(&request.code, request.cursor_pos);
        let before = request.code.get(..cursor).unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let (lines, line) = before.split_at(line_start);
        let (at, matches) = Known::of(&self.state).complete(lines, line);
        CompleteReply {
            matches,
            cursor_start: answers::characters(&request.code, line_start + at),
            cursor_end: answers::characters(&request.code, cursor),
            ..Default::default()
        }
    }

    fn inspection(&mut self, request: &InspectRequest) -> InspectReply {
        let byte = answers::byte_of(&request.code, request.cursor_pos);
        let source = request.detail_level.is_some_and(|level| level > 0);
        let path = input::path_at(&request.code, byte).map(str::to_owned);
        let found = path.and_then(|path| look::found(&mut self.state, &path, source));
        let data = found.iter().map(|text| MediaType::Plain(text.trim_end().to_owned())).collect();
        InspectReply { found: found.is_some(), data: Media::new(data), ..Default::default() }
    }

    fn remembered(&self, request: &HistoryRequest) -> Vec<HistoryEntry> {
        let entry = |(count, code, text): &(usize, String, String), output: bool| match output {
            true => HistoryEntry::InputOutput(0, *count, (code.clone(), text.clone())),
            false => HistoryEntry::Input(0, *count, code.clone()),
        };
        let last = |all: Vec<&(usize, String, String)>, n: i32, output: bool| -> Vec<HistoryEntry> {
            let n = usize::try_from(n).unwrap_or(0);
            all.iter().skip(all.len().saturating_sub(n)).map(|e| entry(e, output)).collect()
        };
        match request {
            HistoryRequest::Tail { n, output, .. } => last(self.history.iter().collect(), *n, *output),
            HistoryRequest::Range { session: None | Some(0), start, stop, output, .. } => {
                let within = |n: usize| n as i64 >= i64::from(*start) && (n as i64) < i64::from(*stop);
                self.history.iter().filter(|(n, ..)| within(*n)).map(|e| entry(e, *output)).collect()
            }
            HistoryRequest::Range { .. } => vec![],
            HistoryRequest::Search { pattern, unique, output, n, .. } => {
                let mut found: Vec<&(usize, String, String)> = vec![];
                for cell in self.history.iter().filter(|(_, code, _)| fits(pattern, code)) {
                    if *unique {
                        found.retain(|(_, code, _)| *code != cell.1);
                    }
                    found.push(cell);
                }
                last(found, *n, *output)
            }
        }
    }
}

/// What is told of a panic, whose message is among the output.
fn bug() -> ReplyError {
    let evalue = "this is a bug in tessera, not in the program".to_owned();
    ReplyError { ename: "E0999".into(), traceback: vec![format!("error[E0999]: {evalue}")], evalue }
}

fn is_complete(code: &str) -> IsCompleteReply {
    match input::completeness(code) {
        Completeness::Complete => IsCompleteReply::complete(),
        Completeness::Wrong => IsCompleteReply::invalid(),
        Completeness::More => IsCompleteReply::incomplete(input::indent_after(code)),
    }
}

/// Whether a text is as a pattern says, in which `*` stands for any text and `?` for one character.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    // The star that was met last, and where its text ends so far.
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((after, until)) => {
                    star = Some((after, until + 1));
                    (p, t) = (after, until + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_the_history() {
        assert!(fits("*", "") && fits("a*c", "abbc") && fits("a?c*", "abc\nd") && fits("*b*b", "abab"));
        assert!(!fits("a", "ab") && !fits("?", "") && !fits("*b", "abc"));
    }

    #[test]
    fn texts_are_complete_or_not() {
        assert_eq!(is_complete("def f(x):").indent, "    ");
        assert_eq!(is_complete("x = 1").indent, "");
    }
}
