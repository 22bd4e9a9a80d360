//! What modules and types have: members of those that are built in, methods of values.

use crate::known_elsewhere;
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::builtins::{self, CALLS};
use tessera_core::ty::Ty;
use tessera_grammar::ast::{Expr, ExprKind, Name};
use tessera_ops::surface;

/// The operator that a member of `op` or `random` names.
pub fn operator(dotted: &str) -> Option<&'static surface::OpDef> {
    match dotted.strip_prefix("op.") {
        Some(name) => surface::find(name),
        None if dotted.starts_with("random.") => surface::find(dotted),
        None => None,
    }
}

/// Whether a built-in module has a member.
pub fn is_builtin_member(module: &str, member: &str) -> bool {
    let dotted = format!("{module}.{member}");
    operator(&dotted).is_some()
        || builtins::find(&dotted).is_some()
        || builtins::CONSTANTS.iter().any(|(n, _)| *n == dotted)
        || builtins::MEMBERS.iter().any(|(m, names)| *m == module && names.contains(&member))
}

/// Every member of a built-in module, for "did you mean".
pub fn members(module: &str) -> Vec<String> {
    let prefix = format!("{module}.");
    let mut out: Vec<String> = vec![];
    match module {
        "tessera" => out.extend(builtins::MODULES.iter().map(|m| m.to_string())),
        "std" => out.extend(builtins::LIBRARY.iter().map(|m| m.to_string())),
        _ => {}
    }
    out.extend(surface::all().filter_map(|def| match module {
        "op" => (!def.name.contains('.')).then(|| def.name.to_string()),
        _ => def.name.strip_prefix(&prefix).map(str::to_owned),
    }));
    out.extend(builtins::rows().filter_map(|r| r.name().strip_prefix(&prefix).map(str::to_owned)));
    out.extend(builtins::CONSTANTS.iter().filter_map(|(n, _)| n.strip_prefix(&prefix).map(str::to_owned)));
    out.extend(
        builtins::MEMBERS
            .iter()
            .filter(|(m, _)| *m == module)
            .flat_map(|(_, names)| names.iter().map(|n| n.to_string())),
    );
    out
}

/// The methods that change a list or dict.
pub const CHANGE: &[&str] = &["append", "extend", "insert", "pop", "remove", "sort", "reverse", "clear", "update"];

/// The methods of a type.
pub fn methods(ty: &Ty) -> Vec<String> {
    let of = |prefix: &str| CALLS.iter().filter_map(|c| c.name.strip_prefix(prefix)).map(str::to_owned).collect();
    match ty {
        Ty::Str => {
            let of_row = |name: &str| name.strip_prefix("str.").map(str::to_owned);
            let mut all: Vec<String> = builtins::rows().filter_map(|r| of_row(r.name())).collect();
            all.push("format".into());
            all
        }
        Ty::List(_) => of("list."),
        Ty::Dict(..) => of("dict."),
        Ty::Tensor(_) | Ty::AnyTensor => surface::methods().map(str::to_owned).collect(),
        _ => vec![],
    }
}

/// E0103 for a method that a type does not have.
pub fn no_method(ty: &Ty, name: &Name) -> Diagnostic {
    let d = Diagnostic::new(Code::E0103, name.span, format!("`{ty}` has no method `{}`", name.text));
    let all = methods(ty);
    d.did_you_mean(name.span, &name.text, all.iter().map(String::as_str), |d| match (ty, &*name.text) {
        (Ty::List(_), "add" | "push" | "push_back") => d.fix("it is called `append`", name.span, "append"),
        (Ty::Dict(..), "has_key" | "contains") => d.help("write `key in d`"),
        (Ty::Struct(_), method) => {
            let help = known_elsewhere::method(method).map_or_else(|| format!("write `{method}(x, …)`"), str::to_owned);
            d.note("structs have no methods: functions take them as parameters").help(help)
        }
        _ if all.is_empty() => d,
        _ => d.note(format!("it has {}", all.join(", "))),
    })
}

/// `a.b.c` as one name.
pub fn dotted(e: &Expr) -> Option<String> {
    match &e.kind {
        ExprKind::Name(n) => Some(n.to_string()),
        ExprKind::Attr { base, name } => Some(format!("{}.{}", dotted(base)?, name.text)),
        _ => None,
    }
}

/// A number of arguments in words.
pub fn arguments(n: usize) -> String {
    match n {
        0 => "no arguments".into(),
        1 => "1 argument".into(),
        n => format!("{n} arguments"),
    }
}

/// E0501 for a directive that does not exist.
pub fn unknown_directive(name: &str, span: Span) -> Diagnostic {
    let d = Diagnostic::new(Code::E0501, span, format!("there is no schedule directive `{name}`"));
    let all = members("schedule");
    let list = |d: Diagnostic| d.note(format!("directives are {}", all.join(", ")));
    d.did_you_mean(span, name, all.iter().map(String::as_str), list)
}

/// What a name is that the language has without an import.
pub fn built_in(name: &str) -> Option<&'static str> {
    let has = |names: &[&str]| names.contains(&name);
    if has(builtins::MODULES) {
        return Some("module");
    }
    has(builtins::FUNCTIONS).then_some("function")
}
