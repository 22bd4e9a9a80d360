//! Which modules of a crate use which: by every form of `use`, by paths in code, and by methods of types whose `impl`s lie in several files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// One source file of a crate.
pub struct Module {
    /// From the root of the crate, which is empty: `["check", "names"]`.
    pub path: Vec<String>,
    pub file: PathBuf,
    pub lines: usize,
    /// Its child modules, in the order in which it declares them; those of tests are left out.
    pub children: Vec<String>,
    /// The modules that it uses, as paths, with what is used there.
    pub uses: BTreeMap<Vec<String>, String>,
}

/// The modules of a crate, from its `src` folder; test modules are left out.
///
/// # Panics
/// On a file that does not parse.
pub fn of_crate(src: &Path) -> Vec<Module> {
    let mut found = vec![];
    read(src, &src.join("lib.rs"), vec![], &mut found);
    let known: BTreeSet<Vec<String>> = found.iter().map(|f| f.module.path.clone()).collect();
    let methods = shared_methods(&found);
    let uses = |f: &Found| -> BTreeMap<Vec<String>, String> {
        let named = f.names.iter().filter_map(|name| Some((target(name, f, &known)?, name.join("::"))));
        let called = f.calls.iter().filter_map(|m| Some((methods.get(m)?.clone(), format!(".{m}()"))));
        named.chain(called).filter(|(to, _)| *to != f.module.path).collect()
    };
    let all: Vec<_> = found.iter().map(uses).collect();
    found.into_iter().zip(all).map(|(f, uses)| Module { uses, ..f.module }).collect()
}

struct Found {
    module: Module,
    /// Every path in it.
    names: BTreeSet<Vec<String>>,
    /// Methods that it calls.
    calls: BTreeSet<String>,
    /// Methods that it defines, by their type.
    methods: Vec<(String, String)>,
}

fn is_test(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|a| a.path().is_ident("cfg") && quote_of(a).contains("test"))
}

fn quote_of(a: &syn::Attribute) -> String {
    match &a.meta {
        syn::Meta::List(list) => list.tokens.to_string(),
        _ => String::new(),
    }
}

fn read(src: &Path, file: &Path, path: Vec<String>, out: &mut Vec<Found>) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut children = vec![];
    let mut names = Names::default();
    for item in &parsed.items {
        match item {
            syn::Item::Mod(m) if m.content.is_none() && !is_test(&m.attrs) => children.push(m.ident.to_string()),
            item if !is_test(attrs_of(item)) => names.visit_item(item),
            _ => {}
        }
    }
    let folder = path.iter().fold(src.to_owned(), |p, part| p.join(part));
    let module = Module {
        path: path.clone(),
        file: file.to_owned(),
        lines: text.lines().count(),
        children: children.clone(),
        uses: BTreeMap::new(),
    };
    out.push(Found { module, names: names.paths, calls: names.calls, methods: names.methods });
    for child in children {
        let file = folder.join(format!("{child}.rs"));
        // Modules that a macro declares elsewhere have no file here.
        if file.exists() {
            read(src, &file, [path.clone(), vec![child]].concat(), out);
        }
    }
}

fn attrs_of(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Mod(m) => &m.attrs,
        syn::Item::Fn(f) => &f.attrs,
        syn::Item::Impl(i) => &i.attrs,
        syn::Item::Use(u) => &u.attrs,
        _ => &[],
    }
}

#[derive(Default)]
struct Names {
    paths: BTreeSet<Vec<String>>,
    calls: BTreeSet<String>,
    methods: Vec<(String, String)>,
}

impl Names {
    fn tree(&mut self, tree: &syn::UseTree, before: &[String]) {
        let with = |name: String| [before, &[name]].concat();
        match tree {
            syn::UseTree::Path(p) => self.tree(&p.tree, &with(p.ident.to_string())),
            syn::UseTree::Name(n) => drop(self.paths.insert(with(n.ident.to_string()))),
            syn::UseTree::Rename(r) => drop(self.paths.insert(with(r.ident.to_string()))),
            syn::UseTree::Glob(_) => drop(self.paths.insert(before.to_vec())),
            syn::UseTree::Group(g) => g.items.iter().for_each(|t| self.tree(t, before)),
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_use(&mut self, u: &'ast syn::ItemUse) {
        self.tree(&u.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.paths.insert(path.segments.iter().map(|s| s.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_item_impl(&mut self, i: &'ast syn::ItemImpl) {
        if let (None, syn::Type::Path(ty)) = (&i.trait_, &*i.self_ty)
            && let Some(name) = ty.path.segments.last()
        {
            let functions = i.items.iter().filter_map(|item| match item {
                syn::ImplItem::Fn(f) => Some(f.sig.ident.to_string()),
                _ => None,
            });
            self.methods.extend(functions.map(|f| (name.ident.to_string(), f)));
        }
        visit::visit_item_impl(self, i);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.calls.insert(call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }
}

/// The module that a path names or that holds what it names; `None` for other crates and for what stands in the file itself.
fn target(name: &[String], f: &Found, known: &BTreeSet<Vec<String>>) -> Option<Vec<String>> {
    let own = &f.module.path;
    let (mut at, rest): (Vec<String>, &[String]) = match name[0].as_str() {
        "crate" => (vec![], &name[1..]),
        "self" => (own.clone(), &name[1..]),
        "super" => {
            let up = name.iter().take_while(|n| *n == "super").count();
            (own[..own.len().checked_sub(up)?].to_vec(), &name[up..])
        }
        first if f.module.children.iter().any(|c| c == first) => (own.clone(), name),
        _ => return None,
    };
    for part in rest {
        let next = [at.clone(), vec![part.clone()]].concat();
        if !known.contains(&next) {
            break;
        }
        at = next;
    }
    Some(at)
}

/// Methods that values of the standard library have, too.
const COMMON: &[&str] = &[
    "add", "all", "any", "as_slice", "chars", "clear", "cmp", "compare", "contains", "entry", "extend", "fill", "find",
    "first", "get", "insert", "is_empty", "iter", "join", "keys", "last", "len", "lines", "map", "max", "min", "mul",
    "neg", "next", "node", "parse", "pop", "position", "push", "read", "remove", "replace", "reverse", "set", "sort",
    "split", "sub", "sum", "take", "update", "values", "write",
];

/// The file of each method of a type whose methods lie in several files, where the name tells it: no other type of the crate, and no
/// common one, has a method of that name.
fn shared_methods(found: &[Found]) -> BTreeMap<String, Vec<String>> {
    let mut files: BTreeMap<&str, BTreeSet<&Vec<String>>> = BTreeMap::new();
    let mut homes: BTreeMap<&str, Vec<(&str, &Vec<String>)>> = BTreeMap::new();
    for f in found {
        for (ty, method) in &f.methods {
            files.entry(ty).or_default().insert(&f.module.path);
            homes.entry(method).or_default().push((ty, &f.module.path));
        }
    }
    let told = homes.into_iter().filter_map(|(method, homes)| match homes.as_slice() {
        [(ty, home)] if files[ty].len() > 1 && !COMMON.contains(&method) => Some((method.to_owned(), (*home).clone())),
        _ => None,
    });
    told.collect()
}

/// The largest sets of modules each of which leads to each other one, with more than one module: largest first, by lines.
pub fn cycles(modules: &[Module]) -> Vec<(usize, Vec<String>)> {
    let index: BTreeMap<&Vec<String>, usize> = modules.iter().enumerate().map(|(i, m)| (&m.path, i)).collect();
    let next: Vec<Vec<usize>> =
        modules.iter().map(|m| m.uses.keys().filter_map(|to| index.get(to).copied()).collect()).collect();
    let reach = |from: usize| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(at) = todo.pop() {
            todo.extend(next[at].iter().copied().filter(|to| seen.insert(*to)));
        }
        seen
    };
    let reached: Vec<BTreeSet<usize>> = (0..modules.len()).map(reach).collect();
    let mut out: Vec<(usize, Vec<String>)> = vec![];
    let mut done = BTreeSet::new();
    for i in 0..modules.len() {
        let cycle: Vec<usize> = reached[i].iter().copied().filter(|j| reached[*j].contains(&i)).collect();
        if cycle.len() > 1 && done.insert(cycle.clone()) {
            let lines: usize = cycle.iter().map(|j| modules[*j].lines).sum();
            out.push((lines, cycle.iter().map(|j| modules[*j].path.join("::")).collect()));
        }
    }
    out.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    out
}

/// Uses of a module that is declared below the one that uses it, among children of one parent: who, whom, and by what. Modules of one cycle
/// have no order.
pub fn out_of_order(modules: &[Module]) -> Vec<String> {
    let mut out = vec![];
    let all = cycles(modules);
    let together = |a: &[String], b: &[String]| {
        let has = |c: &Vec<String>, p: &[String]| {
            let name = p.join("::");
            c.iter().any(|m| *m == name || m.starts_with(&format!("{name}::")))
        };
        all.iter().any(|(_, c)| has(c, a) && has(c, b))
    };
    for m in modules {
        for (to, by) in &m.uses {
            let common = m.path.iter().zip(to).take_while(|(a, b)| a == b).count();
            let (Some(from), Some(used)) = (m.path.get(common), to.get(common)) else { continue };
            let Some(parent) = modules.iter().find(|p| p.path == m.path[..common]) else { continue };
            let place = |name: &String| parent.children.iter().position(|c| c == name);
            if place(used) > place(from) && !together(&m.path[..=common], &to[..=common]) {
                out.push(format!("{}: `{from}` uses `{used}`, declared below it, by `{by}`", m.file.display()));
            }
        }
    }
    out
}
