//! One constructor per node that is more than its parts.

use super::Tree;
use crate::{ast::*, literal};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic};

/// Statements of one line: mostly one.
pub enum Run {
    One(Box<Stmt>),
    More(Vec<Stmt>),
}

impl Run {
    pub fn append_to(self, stmts: &mut Vec<Stmt>) {
        match self {
            Run::One(stmt) => stmts.push(*stmt),
            Run::More(more) => stmts.extend(more),
        }
    }

    pub fn into_vec(self) -> Vec<Stmt> {
        match self {
            Run::One(stmt) => vec![*stmt],
            Run::More(more) => more,
        }
    }
}

/// What stands between two commas of a parameter list.
pub enum ParamPart {
    Param(Box<Param>),
    Star,
    Broken,
}

/// The signature of a `def`; its body is still empty.
pub struct DefHead(Box<FnDef>);

/// A line of a struct.
pub enum StructPart {
    Field(Box<FieldDef>),
    Doc(Text),
    Nothing,
}

/// Parentheses, before it is known whether they list parameter types.
pub enum Paren {
    Group(Expr),
    Tuple(Vec<Expr>),
}

/// A string, with interpolation or without.
pub enum Text {
    Plain(Arc<str>),
    Parts(Vec<FPart>),
}

impl Text {
    pub fn join(self, other: Text) -> Text {
        match (self, other) {
            (Text::Plain(a), Text::Plain(b)) => Text::Plain(format!("{a}{b}").into()),
            (a, b) => {
                let mut parts = a.into_parts();
                for part in b.into_parts() {
                    match (parts.last_mut(), part) {
                        (Some(FPart::Text(last)), FPart::Text(more)) => *last = format!("{last}{more}").into(),
                        (_, part) => parts.push(part),
                    }
                }
                Text::Parts(parts)
            }
        }
    }

    fn into_parts(self) -> Vec<FPart> {
        match self {
            Text::Plain(text) => vec![FPart::Text(text)],
            Text::Parts(parts) => parts,
        }
    }
}

impl Tree<'_> {
    // Boxed in the grammar to keep the parser's stack entries small.
    #[allow(clippy::boxed_local)]
    pub fn one(&self, first: u32, end: u32, kind: Box<StmtKind>) -> Run {
        Run::One(Box::new(Stmt { kind: *kind, span: self.span(first, end) }))
    }

    /// `import a, b.c as d`: one statement per module.
    pub fn imports(&self, first: u32, end: u32, modules: Vec<(Vec<Name>, Option<Name>)>) -> Run {
        let whole = self.span(first, end);
        let single = modules.len() == 1;
        let stmt = |(path, alias): (Vec<Name>, Option<Name>)| {
            let own =
                path.first().map_or(whole, |n| n.span).to(alias.as_ref().or(path.last()).map_or(whole, |n| n.span));
            Stmt { kind: StmtKind::Import { path, alias }, span: if single { whole } else { own } }
        };
        Run::More(modules.into_iter().map(stmt).collect())
    }

    pub fn assign(&self, targets: Vec<Expr>, value: Expr) -> Box<StmtKind> {
        Box::new(StmtKind::Assign { targets: targets.into_iter().map(|t| self.target(t)).collect(), value })
    }

    pub fn ann_assign(&self, target: Expr, ty: Expr, value: Option<Expr>) -> Box<StmtKind> {
        Box::new(StmtKind::AnnAssign { target: self.annotated(target), ty, value })
    }

    pub fn aug_assign(&self, target: Expr, op: BinOp, at: u32, value: Expr) -> Box<StmtKind> {
        Box::new(StmtKind::AugAssign { op, op_span: self.token_span(at), target: self.updated(target, op), value })
    }

    // ---- Definitions -------------------------------------------------------------------------

    pub fn param(&self, name: Name, ty: Option<Expr>, default: Option<Expr>) -> ParamPart {
        ParamPart::Param(Box::new(Param { name, ty, default, kind: ParamKind::Plain }))
    }

    pub fn rest(&self, name: Name, ty: Option<Expr>) -> ParamPart {
        ParamPart::Param(Box::new(Param { name, ty, default: None, kind: ParamKind::Rest }))
    }

    fn params(&self, at: u32, parts: Vec<ParamPart>) -> Vec<Param> {
        let mut params: Vec<Param> = Vec::with_capacity(parts.len());
        let mut starred = false;
        for part in parts {
            match part {
                ParamPart::Param(mut param) => {
                    match param.kind {
                        ParamKind::Rest if starred => self.second_star(at, &param.name),
                        ParamKind::Rest => starred = true,
                        _ if starred => param.kind = ParamKind::KeywordOnly,
                        _ => self.default_order(at, params.last(), &param),
                    }
                    params.push(*param);
                }
                ParamPart::Star => starred = true,
                ParamPart::Broken => {}
            }
        }
        params
    }

    fn second_star(&self, at: u32, name: &Name) {
        let diagnostic = Diagnostic::new(Code::E0002, name.span, format!("`*{}` comes after another `*`", name.text))
            .help("a parameter list has one `*`");
        self.say(at, diagnostic);
    }

    fn default_order(&self, at: u32, before: Option<&Param>, param: &Param) {
        if let Some(Param { default: Some(default), name, .. }) = before
            && param.default.is_none()
        {
            let message =
                format!("the parameter `{}` without a default follows `{}`, which has one", param.name.text, name.text);
            let diagnostic = Diagnostic::new(Code::E0002, param.name.span, message)
                .with_label(default.span, "this default")
                .help("give it a default too, move it to the front, or put `*` before it to make it a keyword");
            self.say(at, diagnostic);
        }
    }

    pub fn def_head(&self, first: u32, end: u32, name: Name, parts: Vec<ParamPart>, ret: Option<Expr>) -> DefHead {
        let params = self.params(first, parts);
        let head = self.span(first, end);
        DefHead(Box::new(FnDef { name, decorators: vec![], params, ret, body: vec![], doc: None, head }))
    }

    pub fn def(&self, first: u32, end: u32, head: DefHead, mut body: Vec<Stmt>) -> Box<Stmt> {
        let doc = match body.first() {
            Some(Stmt { kind: StmtKind::Expr(Expr { kind: ExprKind::Str(text), .. }), .. }) => {
                Some(literal::clean_doc(text).into())
            }
            _ => None,
        };
        if doc.is_some() {
            body.remove(0);
        }
        self.stmt(first, end, StmtKind::Def(Arc::new(FnDef { body, doc, ..*head.0 })))
    }

    pub fn structure(
        &self,
        first: u32,
        head: u32,
        end: u32,
        name: Name,
        generics: Vec<Name>,
        parts: Vec<StructPart>,
    ) -> Box<Stmt> {
        let mut doc = None;
        let mut fields = vec![];
        for part in parts {
            match part {
                StructPart::Field(field) => fields.push(*field),
                StructPart::Doc(Text::Plain(text)) if doc.is_none() && fields.is_empty() => {
                    doc = Some(literal::clean_doc(&text).into())
                }
                StructPart::Doc(_) | StructPart::Nothing => {}
            }
        }
        let def = StructDef { name, decorators: vec![], generics, fields, doc, head: self.span(first, head) };
        self.stmt(first, end, StmtKind::Struct(Arc::new(def)))
    }

    pub fn field(&self, name: Name, ty: Expr, default: Option<Expr>) -> StructPart {
        StructPart::Field(Box::new(FieldDef { name, ty, default }))
    }

    pub fn decorate(&self, decorators: Vec<Expr>, mut stmt: Box<Stmt>) -> Box<Stmt> {
        if let Some(first) = decorators.first() {
            // From the `@`, which stands right before the first decorator or some spaces ahead.
            let at = self.text[..first.span.start as usize].rfind('@').unwrap_or(first.span.start as usize);
            stmt.span.start = at as u32;
        }
        match &mut stmt.kind {
            StmtKind::Def(def) => Arc::make_mut(def).decorators = decorators,
            StmtKind::Struct(def) => Arc::make_mut(def).decorators = decorators,
            _ => {}
        }
        stmt
    }

    // ---- Expressions -------------------------------------------------------------------------

    pub fn cond(&self, first: u32, end: u32, then: Expr, test: Expr, otherwise: Expr) -> Expr {
        let kind = ExprKind::Cond { test: Box::new(test), then: Box::new(then), otherwise: Box::new(otherwise) };
        self.expr(first, end, kind)
    }

    pub fn lambda(&self, first: u32, end: u32, parts: Vec<ParamPart>, body: Expr) -> Expr {
        let params = self.params(first, parts);
        self.expr(first, end, ExprKind::Lambda { params, body: Box::new(body) })
    }

    pub fn fn_type(&self, first: u32, end: u32, params: Paren, ret: Expr) -> Expr {
        let params = match params {
            Paren::Group(one) => vec![one],
            Paren::Tuple(all) => all,
        };
        self.expr(first, end, ExprKind::FnType { params, ret: Box::new(ret) })
    }

    /// Parentheses around one expression leave only their place.
    pub fn paren(&self, first: u32, end: u32, paren: Paren) -> Expr {
        match paren {
            Paren::Group(inner) => Expr { span: self.span(first, end), ..inner },
            Paren::Tuple(elements) => self.expr(first, end, ExprKind::Tuple(elements)),
        }
    }

    pub fn attr(&self, base: Expr, name: Name) -> Expr {
        let span = base.span.to(name.span);
        Expr { kind: ExprKind::Attr { base: Box::new(base), name }, span }
    }

    pub fn call(&self, func: Expr, args: Vec<Arg>, end: u32) -> Expr {
        let span = self.through(func.span, end);
        Expr { kind: ExprKind::Call { func: Box::new(func), args }, span }
    }

    pub fn index(&self, base: Expr, index: Vec<Arg>, end: u32) -> Expr {
        let span = self.through(base.span, end);
        Expr { kind: ExprKind::Index { base: Box::new(base), index }, span }
    }

    pub fn arg(&self, name: Option<Name>, value: Expr, star: bool) -> Arg {
        Arg { name, value, star }
    }

    pub fn slice(&self, first: u32, end: u32, low: Option<Expr>, high: Option<Expr>, step: Option<Expr>) -> Arg {
        let boxed = |e: Option<Expr>| e.map(Box::new);
        let kind = ExprKind::Slice { low: boxed(low), high: boxed(high), step: boxed(step) };
        self.arg(None, self.expr(first, end, kind), false)
    }

    pub fn comprehension(&self, first: u32, end: u32, element: Expr, clauses: Vec<CompClause>) -> Expr {
        self.expr(first, end, ExprKind::ListComp { element: Box::new(element), clauses })
    }

    pub fn dict(&self, first: u32, end: u32, entries: Vec<Option<(Expr, Expr)>>) -> Expr {
        self.expr(first, end, ExprKind::Dict(entries.into_iter().flatten().collect()))
    }

    /// `{value!r:spec}`; `{value=}` is its own text before its value.
    pub fn f_value(
        &self,
        mut parts: Vec<FPart>,
        open: u32,
        value: Expr,
        debug: Option<u32>,
        conv: Option<u32>,
        spec: Vec<FPart>,
    ) -> Vec<FPart> {
        let mut repr = debug.is_some() && spec.is_empty();
        if let Some(at) = conv {
            let letter = self.token_text(at);
            repr = letter == "!r";
            if !matches!(letter, "!r" | "!s") {
                let diagnostic =
                    Diagnostic::new(Code::E0002, self.token_span(at), format!("`{letter}` is not a conversion"))
                        .help("`!r` shows a value as `repr` does, `!s` as `str` does");
                self.say(at, diagnostic);
            }
        }
        if let Some(at) = debug {
            let tokens = &self.layout.tokens;
            let next = tokens.get(at as usize + 1).map_or(tokens[at as usize].end, |t| t.start);
            let shown = &self.text[tokens[open as usize].end as usize..next as usize];
            parts.push(FPart::Text(shown.into()));
        }
        parts.push(FPart::Value { value, repr, spec });
        parts
    }
}
