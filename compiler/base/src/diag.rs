//! Diagnostics as data. The terminal, JSON and editors render this one value.

use crate::near::nearest_few;
use crate::{Code, Span, quote};

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Severity {
    Error,
    Warning,
    Note,
}

/// A span with what is to be said about it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Label {
    pub span: Span,
    pub text: String,
}

/// A replacement of source text. An empty span inserts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Edit {
    pub span: Span,
    pub text: String,
}

/// What the user can do about it, with the edits that do it where they are known.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Fix {
    pub title: String,
    pub edits: Vec<Edit>,
}

/// One thing to tell the user.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Diagnostic {
    pub code: Code,
    /// One sentence without a full stop, lower case.
    pub message: String,
    /// What the caret points at.
    pub span: Span,
    /// Text at the primary span; may be empty.
    pub label: String,
    /// Other places that matter: full types, where they came from, the inner line of a template.
    pub labels: Vec<Label>,
    /// Smallest counterexample, e.g. `H=1 gives 4 and 3`.
    pub witness: Option<String>,
    pub notes: Vec<String>,
    pub fixes: Vec<Fix>,
}

impl Diagnostic {
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            message: message.into(),
            span,
            label: String::new(),
            labels: vec![],
            witness: None,
            notes: vec![],
            fixes: vec![],
        }
    }

    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    pub fn is_error(&self) -> bool {
        self.severity() == Severity::Error
    }

    /// Text at the primary span.
    pub fn here(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    pub fn with_label(mut self, span: Span, text: impl Into<String>) -> Self {
        if !span.is_none() {
            self.labels.push(Label { span, text: text.into() });
        }
        self
    }

    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    pub fn witness(mut self, text: impl Into<String>) -> Self {
        self.witness = Some(text.into());
        self
    }

    /// A fix in words only.
    pub fn help(mut self, title: impl Into<String>) -> Self {
        self.fixes.push(Fix { title: title.into(), edits: vec![] });
        self
    }

    /// A fix in words in which `{NAME}` stands for the expression at a span.
    pub fn help_about(self, title: &str, names: &[(&str, Span)]) -> Self {
        self.help(quote::about(title, names))
    }

    /// A fix that writes text around each of the spans.
    pub fn around(mut self, title: impl Into<String>, spans: &[Span], before: &str, after: &str) -> Self {
        let around = |span: &Span| {
            let (start, end) = (Span { end: span.start, ..*span }, Span { start: span.end, ..*span });
            [Edit { span: start, text: before.into() }, Edit { span: end, text: after.into() }]
        };
        self.fixes.push(Fix { title: title.into(), edits: spans.iter().flat_map(around).collect() });
        self
    }

    /// Fixes that write the names that may be meant by a misspelt one, which stands at `span`; where none is near, what
    /// `otherwise` adds.
    pub fn did_you_mean<'a>(
        self,
        span: Span,
        name: &str,
        candidates: impl IntoIterator<Item = &'a str>,
        otherwise: impl FnOnce(Self) -> Self,
    ) -> Self {
        match nearest_few(name, candidates).as_slice() {
            [] => otherwise(self),
            few => few.iter().fold(self, |d, near| d.fix(format!("did you mean `{near}`?"), span, *near)),
        }
    }

    /// A fix that replaces `span` by `text`.
    pub fn fix(mut self, title: impl Into<String>, span: Span, text: impl Into<String>) -> Self {
        self.fixes.push(Fix { title: title.into(), edits: vec![Edit { span, text: text.into() }] });
        self
    }
}
