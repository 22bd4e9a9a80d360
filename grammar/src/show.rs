//! Trees as text: one statement per line, expressions as S-expressions, no places. For
//! `emit --ir ast` and for comparing trees in tests.

use crate::ast::*;
use std::fmt::Write;

/// Statements as text. What it prints is the same exactly if the trees are, places aside.
pub fn show(stmts: &[Stmt]) -> String {
    let mut out = String::new();
    block(stmts, 0, &mut out);
    out
}

fn line(depth: usize, out: &mut String, text: impl AsRef<str>) {
    let _ = writeln!(out, "{:1$}{2}", "", depth * 2, text.as_ref());
}

fn block(stmts: &[Stmt], depth: usize, out: &mut String) {
    for stmt in stmts {
        statement(&stmt.kind, depth, out);
    }
}

fn statement(kind: &StmtKind, depth: usize, out: &mut String) {
    let path = |p: &[Name]| p.iter().map(|n| n.text.to_string()).collect::<Vec<_>>().join(".");
    let renamed = |n: &Option<Name>| n.as_ref().map_or(String::new(), |n| format!(" as {}", n.text));
    match kind {
        StmtKind::Def(def) => definition(def, depth, out),
        StmtKind::Struct(def) => structure(def, depth, out),
        StmtKind::Import { path: p, alias } => line(depth, out, format!("import {}{}", path(p), renamed(alias))),
        StmtKind::FromImport { path: p, names } => {
            let names: Vec<_> = names.iter().map(|(n, alias)| format!("{}{}", n.text, renamed(alias))).collect();
            line(depth, out, format!("from {} import {}", path(p), names.join(", ")));
        }
        StmtKind::Expr(e) => line(depth, out, shown(e)),
        StmtKind::Assign { targets, value } => {
            let targets: String = targets.iter().map(|t| format!("{} = ", shown(t))).collect();
            line(depth, out, targets + &shown(value));
        }
        StmtKind::AnnAssign { target, ty, value } => {
            line(depth, out, format!("{} : {}{}", shown(target), shown(ty), after(" = ", value)));
        }
        StmtKind::AugAssign { op, target, value, .. } => {
            line(depth, out, format!("{} {}= {}", shown(target), op.symbol(), shown(value)))
        }
        StmtKind::If { test, then, otherwise } => {
            line(depth, out, format!("if {}", shown(test)));
            block(then, depth + 1, out);
            if !otherwise.is_empty() {
                line(depth, out, "else");
                block(otherwise, depth + 1, out);
            }
        }
        StmtKind::For { target, iter, body } => {
            line(depth, out, format!("for {} in {}", shown(target), shown(iter)));
            block(body, depth + 1, out);
        }
        StmtKind::While { test, body } => {
            line(depth, out, format!("while {}", shown(test)));
            block(body, depth + 1, out);
        }
        StmtKind::Break => line(depth, out, "break"),
        StmtKind::Continue => line(depth, out, "continue"),
        StmtKind::Pass => line(depth, out, "pass"),
        StmtKind::Return(value) => line(depth, out, format!("return{}", after(" ", value))),
        StmtKind::Assert { test, message } => {
            line(depth, out, format!("assert {}{}", shown(test), after(", ", message)))
        }
        StmtKind::With { items, body } => {
            let items: Vec<_> =
                items.iter().map(|(e, target)| format!("{}{}", shown(e), after(" as ", target))).collect();
            line(depth, out, format!("with {}", items.join(", ")));
            block(body, depth + 1, out);
        }
        StmtKind::Error => line(depth, out, "!"),
    }
}

fn definition(def: &FnDef, depth: usize, out: &mut String) {
    for decorator in &def.decorators {
        line(depth, out, format!("@{}", shown(decorator)));
    }
    line(depth, out, format!("def {}({}){}", def.name.text, parameters(&def.params), after(" -> ", &def.ret)));
    if let Some(doc) = &def.doc {
        line(depth + 1, out, format!("doc {doc:?}"));
    }
    block(&def.body, depth + 1, out);
}

fn structure(def: &StructDef, depth: usize, out: &mut String) {
    for decorator in &def.decorators {
        line(depth, out, format!("@{}", shown(decorator)));
    }
    let generics: Vec<_> = def.generics.iter().map(|n| n.text.to_string()).collect();
    line(depth, out, format!("struct {}[{}]", def.name.text, generics.join(", ")));
    if let Some(doc) = &def.doc {
        line(depth + 1, out, format!("doc {doc:?}"));
    }
    for field in &def.fields {
        line(depth + 1, out, format!("{} : {}{}", field.name.text, shown(&field.ty), after(" = ", &field.default)));
    }
}

fn parameters(params: &[Param]) -> String {
    let one = |p: &Param| {
        let kind = match p.kind {
            ParamKind::Plain => "",
            ParamKind::Rest => "*",
            ParamKind::KeywordOnly => "key ",
        };
        format!("{kind}{}{}{}", p.name.text, after(": ", &p.ty), after(" = ", &p.default))
    };
    params.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn after(sign: &str, e: &Option<Expr>) -> String {
    e.as_ref().map_or(String::new(), |e| format!("{sign}{}", shown(e)))
}

/// An expression as an S-expression.
pub fn shown(e: &Expr) -> String {
    let list = |v: &[Expr]| v.iter().map(shown).collect::<Vec<_>>().join(" ");
    let bound = |e: &Option<Box<Expr>>| e.as_ref().map_or("_".into(), |e| shown(e));
    match &e.kind {
        ExprKind::Name(n) | ExprKind::Int(n) => n.to_string(),
        ExprKind::Float(f) => format!("{:?}", f.value()),
        ExprKind::Str(s) => format!("{s:?}"),
        ExprKind::FStr(parts) => format!("(f {})", parts.iter().map(part).collect::<Vec<_>>().join(" ")),
        ExprKind::Bool(b) => if *b { "True" } else { "False" }.into(),
        ExprKind::None => "None".into(),
        ExprKind::Ellipsis => "...".into(),
        ExprKind::Tuple(v) => format!("(tuple {})", list(v)),
        ExprKind::List(v) => format!("[{}]", list(v)),
        ExprKind::Dict(v) => {
            format!("{{{}}}", v.iter().map(|(k, v)| format!("{}:{}", shown(k), shown(v))).collect::<Vec<_>>().join(" "))
        }
        ExprKind::Unary { op, operand } => format!("({} {})", prefix(*op), shown(operand)),
        ExprKind::Binary { op, left, right, .. } => format!("({} {} {})", op.symbol(), shown(left), shown(right)),
        ExprKind::Logic { and, left, right } => {
            format!("({} {} {})", if *and { "and" } else { "or" }, shown(left), shown(right))
        }
        ExprKind::Compare { first, rest } => {
            format!(
                "(cmp {}{})",
                shown(first),
                rest.iter().map(|(op, e)| format!(" {} {}", op.symbol(), shown(e))).collect::<String>()
            )
        }
        ExprKind::Cond { test, then, otherwise } => {
            format!("(if {} {} {})", shown(test), shown(then), shown(otherwise))
        }
        ExprKind::Lambda { params, body } => format!("(lambda [{}] {})", parameters(params), shown(body)),
        ExprKind::Call { func, args } => format!("(call {}{})", shown(func), arguments(args)),
        ExprKind::Index { base, index } => format!("(index {}{})", shown(base), arguments(index)),
        ExprKind::Slice { low, high, step } => format!("{}:{}:{}", bound(low), bound(high), bound(step)),
        ExprKind::Attr { base, name } => format!("(. {} {})", shown(base), name.text),
        ExprKind::ListComp { element, clauses } => {
            format!("(comp {}{})", shown(element), clauses.iter().map(clause).collect::<String>())
        }
        ExprKind::FnType { params, ret } => format!("(fn [{}] {})", list(params), shown(ret)),
        ExprKind::Error => "!".into(),
    }
}

fn prefix(op: UnOp) -> &'static str {
    match op {
        UnOp::Neg => "-",
        UnOp::Pos => "+",
        UnOp::Not => "not",
        UnOp::Invert => "~",
    }
}

fn clause(c: &CompClause) -> String {
    let tests: String = c.tests.iter().map(|t| format!(" if {}", shown(t))).collect();
    format!(" for {} in {}{tests}", shown(&c.target), shown(&c.iter))
}

fn part(p: &FPart) -> String {
    match p {
        FPart::Text(t) => format!("{t:?}"),
        FPart::Value { value, repr, spec } => {
            let spec: String = spec.iter().map(|p| format!(" {}", part(p))).collect();
            format!("<{}{}{spec}>", shown(value), if *repr { " !r" } else { "" })
        }
    }
}

fn arguments(args: &[Arg]) -> String {
    let name = |a: &Arg| a.name.as_ref().map_or(String::new(), |n| format!("{}=", n.text));
    args.iter().map(|a| format!(" {}{}{}", name(a), if a.star { "*" } else { "" }, shown(&a.value))).collect()
}
