//! One function of a program, asked for on the command line: what it becomes, without running anything.
//!
//! Its parameters come from its annotations ([`values`]); sizes are small numbers at which the signature and what the body
//! asserts hold ([`sizes`]); module variables are what the text says ([`globals`]). The function is then traced as a call of
//! it would be.

mod sizes;
mod values;
mod globals;

use crate::cli::OfFunction;
use crate::files::Disk;
use crate::program::Setup;
use globals::{Globals, param_local, region};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{CmpOp, Code, Diagnostic, FileId, Mesh, Sharding, Size, SizeVar, Span, TensorType, nearest};
use tessera_core::ir::{Effect, FnInst, InstId, LocalCall, Program, Step, TExpr, TFunction, TKind};
use tessera_core::layouts::with_tensors;
use tessera_core::region::RegionParam;
use tessera_core::sizes::each_size;
use tessera_core::ty::Ty;
use tessera_core::walk::{called, each_expr_in};
use tessera_infer::asked::{self, Function, Literal, Parameter};
use tessera_infer::db::Database;
use tessera_ir::graph::{Calls, Graph, Node, Policy};
use tessera_lower::facts::Facts;
use tessera_resolve::source::{Loaded, SourceMap};
use tessera_trace::scalar::ScalarExpr;
use tessera_trace::{RegionArg, Traced, trace, trace_checked};
use values::{Chosen, Maker, wrong};

/// Sizes that are tried one after the other where a function stops at the first ones.
const TRIES: usize = 24;
/// Bytes of one tensor: larger ones have positions that no kernel counts.
const BYTES_MAX: u64 = 1 << 48;

/// A function with the program around it.
pub struct Asked {
    pub program: Arc<Program>,
    pub sources: SourceMap,
    pub function: Function,
}

/// The graph of a function at some sizes.
pub struct Called {
    /// As traced.
    pub graph: Graph,
    /// What was chosen, a line each.
    pub notes: Vec<String>,
    /// The sizes that nobody gave: `N=8 D=16`.
    pub chosen: String,
}

/// What is known of a call before it runs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct KnownCall {
    pub sizes: BTreeMap<SizeVar, i64>,
    /// Bools, texts and lengths of lists, by parameter.
    pub with: Vec<(String, String)>,
    /// In place of one of which only axes are known.
    pub mesh: Option<Arc<Mesh>>,
}

/// Checks a file and finds a function of it. Shows what is to be told; `None` if there was an error.
pub fn find(setup: &Setup, loaded: &Loaded, name: &str) -> Option<Asked> {
    if tessera_core::text::is_core(&loaded.text) {
        return in_core(setup, loaded, name);
    }
    let (program, sources, function) = look(setup, loaded, name)?;
    match function {
        Ok(function) => Some(Asked { program, sources, function }),
        Err(why) => {
            setup.show(&[*why], &sources);
            None
        }
    }
}

/// A text with all that it imports, not checked yet.
pub fn open(setup: &Setup, loaded: &Loaded) -> (Database, FileId) {
    let policy = Policy::parse(&setup.global.policy).unwrap_or_default();
    let mut db = Database::with(setup.limits(), policy, setup.global.mesh.clone());
    let id = db.add_file(&loaded.path);
    db.set_text(id, &loaded.text);
    db.load_imports(id, &Disk);
    (db, id)
}

/// A checked file with a function of it, or why there is none to look at.
type Looked = (Arc<Program>, SourceMap, Result<Function, Box<Diagnostic>>);

/// Checks a file and looks for a function. Shows what is wrong with the file; `None` if something was.
pub fn look(setup: &Setup, loaded: &Loaded, name: &str) -> Option<Looked> {
    let (db, id) = open(setup, loaded);
    let asked::Asked { checked, function } = asked::ask(&db, id, name);
    setup.show(&checked.diagnostics, &checked.sources);
    if checked.diagnostics.iter().any(Diagnostic::is_error) {
        return None;
    }
    match checked.program {
        Some(program) => Some((Arc::new(program), checked.sources, function)),
        None => tessera_base::bug!("a program without errors is not put together"),
    }
}

/// A function of Core that is given as text.
fn in_core(setup: &Setup, loaded: &Loaded, name: &str) -> Option<Asked> {
    let checked = crate::program::checked(setup, loaded);
    setup.show(&checked.diagnostics, &checked.sources);
    let program = checked.program?;
    let named = |f: &FnInst| *f.name == *name && f.captures.is_empty();
    let Some(at) = program.insts.iter().position(named) else {
        let names = program.insts.iter().filter(|f| f.captures.is_empty()).map(|f| &*f.name);
        let near = nearest(name, names).map(|n| format!("did you mean `{n}`?"));
        let d = Diagnostic::new(Code::E0101, Span::NONE, format!("there is no function `{name}` in this text"));
        setup.show(&[near.into_iter().fold(d, Diagnostic::help)], &checked.sources);
        return None;
    };
    let f = &program.insts[at];
    let variable = |l: &tessera_core::ir::LocalId| f.locals.get(l.0 as usize).map(|v| v.name.clone());
    let parameter = |l| Some(Parameter { name: variable(l)?, span: Span::NONE, default: None });
    let params = f.params.iter().filter_map(parameter).collect();
    let function = Function { name: f.name.clone(), inst: InstId(at as u32), params, chosen: vec![], head: f.span };
    Some(Asked { program: Arc::new(program), sources: checked.sources, function })
}

/// Sizes with their values: `N=8 D=16`.
fn listed<'a>(values: impl Iterator<Item = (&'a SizeVar, &'a i64)>) -> String {
    values.map(|(v, n)| format!("{}={n}", v.name)).collect::<Vec<_>>().join(" ")
}

/// What the sizes of a signature are to be.
struct Sizes {
    /// In the order of the signature.
    vars: Vec<SizeVar>,
    given: sizes::Values,
    conditions: Vec<sizes::Condition>,
    /// That dims that are computed have positions: where sizes are chosen, they are chosen so if that can be.
    full: Vec<sizes::Condition>,
    mesh: Option<Arc<Mesh>>,
    /// What is said of the mesh.
    mesh_note: Option<String>,
}

impl Asked {
    /// A function as a call of the program makes it.
    pub fn instance(program: Arc<Program>, sources: SourceMap, inst: InstId, head: Span) -> Asked {
        let f = &program.insts[inst.0 as usize];
        let name = |l: &tessera_core::ir::LocalId| f.locals[l.0 as usize].name.clone();
        let params = f.params.iter().map(|l| Parameter { name: name(l), span: head, default: None }).collect();
        let function = Function { name: f.name.clone(), inst, params, chosen: vec![], head };
        Asked { program, sources, function }
    }

    /// The instance.
    pub fn inst(&self) -> &FnInst {
        &self.program.insts[self.function.inst.0 as usize]
    }

    /// Parameters with their types.
    pub fn params(&self) -> impl Iterator<Item = (&Parameter, &Ty)> {
        let inst = self.inst();
        self.function.params.iter().zip(inst.params.iter().map(|l| &inst.locals[l.0 as usize].ty))
    }

    /// `f(x: Tensor[N, D, f32], n: int) -> Tensor[N, f32]`.
    pub fn signature(&self) -> String {
        let params: Vec<String> = self.params().map(|(p, ty)| format!("{}: {ty}", p.name)).collect();
        format!("{}({}) -> {}", self.function.name, params.join(", "), self.inst().ret)
    }

    /// Why it is no graph function, if it is none.
    pub fn host(&self) -> Option<Diagnostic> {
        let Effect::Host { why, span, .. } = &self.inst().effect else { return None };
        let message = format!("`{}` is not a graph function: it {why}", self.function.name);
        let d = Diagnostic::new(Code::E0301, *span, message).with_label(self.function.head, "this function");
        Some(
            d.note("host code runs statement by statement; only its tensor code becomes graphs, when it runs")
                .help("move the tensor code into a function of its own, or leave `--function` out to run the program"),
        )
    }

    /// Why it has no graph where it calls per-device code over a mesh of which only the axes are known: blocks have no sizes there.
    fn devices_unknown(&self) -> Option<Diagnostic> {
        let (mut todo, mut seen) = (vec![self.function.inst], BTreeSet::new());
        let mut found: Option<(Span, Arc<LocalCall>)> = None;
        while let Some(inst) = todo.pop().filter(|_| found.is_none()) {
            if seen.insert(inst) {
                each_expr_in(&self.program.insts[inst.0 as usize].body, &mut |e| {
                    todo.extend(called(e));
                    let call = if let TKind::Derive { f, .. } = &e.kind { local_call(f) } else { None };
                    if let Some(call) = call.filter(|call| call.mesh.is_unknown()) {
                        found.get_or_insert((e.span, call.clone()));
                    }
                });
            }
        }
        let (span, call) = found?;
        let text = format!("`{}` runs on each device of a mesh, and nothing says how many there are", call.name);
        let d = Diagnostic::new(Code::E0213, span, text).with_label(self.function.head, "in a call of this function");
        Some(d.help("only a call with tensors on a mesh says it: `tessera emit --ir kernels` and `tessera profile` run the program"))
    }

    /// Traces the function at the sizes and values that are given, and at small ones where none are.
    ///
    /// # Errors
    /// Why it has no graph there.
    pub fn call(&self, setup: &Setup, of: &OfFunction) -> Result<Called, Vec<Diagnostic>> {
        if let Some(d) = self.host() {
            return Err(vec![d]);
        }
        if let Some(d) = self.devices_unknown() {
            return Err(vec![d]);
        }
        let with = of.values.as_ref().map_or(&[][..], |v| &v.0);
        let facts = Facts::new(&self.program);
        let globals = self.globals(&facts, self.function.params.len()).map_err(|d| vec![*d])?;
        let wanted = self.sizes(setup, of, with).map_err(|d| vec![*d])?;
        let open: Vec<sizes::Open> =
            wanted.vars.iter().filter(|v| !wanted.given.contains_key(v)).map(|v| self.open(v)).collect();
        let tries = if open.is_empty() { 1 } else { TRIES };
        let choose = |conditions: &[sizes::Condition]| sizes::choose(&open, &wanted.given, conditions, tries);
        let mut ways = choose(&[&wanted.conditions[..], &wanted.full].concat());
        if ways.is_empty() {
            ways = choose(&wanted.conditions);
        }
        if ways.is_empty() {
            return Err(vec![self.none_fit(&wanted)]);
        }
        let mut first = None;
        for values in &ways {
            let mut maker = Maker::new(values, with, wanted.mesh.clone());
            let args = self.arguments(&mut maker).map_err(|d| vec![*d])?;
            if let Some((name, _)) = with.iter().find(|(name, _)| !maker.used.contains(name)) {
                return Err(vec![self.no_such_value(name)]);
            }
            let types = self.params().map(|(p, ty)| (p.name.clone(), ty.clone())).collect();
            let inst = self.function.inst;
            let call = |args| TKind::Call { inst, callee: None, args };
            match self.traced(setup, &call, types, &self.inst().ret, &args, &globals, wanted.mesh.as_ref()) {
                Ok(traced) => {
                    let chosen = listed(self.named(&wanted, values).filter(|(v, _)| !wanted.given.contains_key(v)));
                    let notes = self.notes(&wanted, values, &maker.chosen, &traced);
                    return Ok(Called { graph: traced.graph, notes, chosen });
                }
                Err(found) => {
                    let by_sizes = found.iter().any(|d| d.code.name().starts_with("E07"));
                    let found: Vec<Diagnostic> = found.into_iter().map(|d| self.at(d, &wanted, values)).collect();
                    first.get_or_insert(found);
                    if !by_sizes {
                        break;
                    }
                }
            }
        }
        Err(first.unwrap_or_default())
    }

    /// Traces the function as a call has it of which all sizes are known, and says what else decides the graph and is not known.
    ///
    /// # Errors
    /// Why it has no graph there.
    pub fn call_known(&self, setup: &Setup, known: &KnownCall) -> Result<(Graph, Vec<String>), Vec<Diagnostic>> {
        let types = self.params().map(|(p, ty)| (p.name.clone(), ty.clone())).collect();
        let inst = self.function.inst;
        self.applied_known(setup, &|args| TKind::Call { inst, callee: None, args }, types, &self.inst().ret, known)
    }

    /// The same of what is made of the function, its derivative say, at arguments of these types.
    ///
    /// # Errors
    /// Why it has no graph there.
    pub fn applied_known(
        &self,
        setup: &Setup,
        apply: &dyn Fn(Vec<TExpr>) -> TKind,
        types: Vec<(Arc<str>, Ty)>,
        ret: &Ty,
        known: &KnownCall,
    ) -> Result<(Graph, Vec<String>), Vec<Diagnostic>> {
        let facts = Facts::new(&self.program);
        let globals = self.globals(&facts, types.len()).map_err(|d| vec![*d])?;
        let mut maker = Maker::new(&known.sizes, &known.with, known.mesh.clone());
        maker.span = self.function.head;
        let value = |(name, ty): &(Arc<str>, Ty)| maker.value(name, ty, None);
        let args: Vec<RegionArg> = types.iter().map(value).collect::<Result<_, _>>().map_err(|d| vec![*d])?;
        let traced = self.traced(setup, apply, types, ret, &args, &globals, known.mesh.as_ref())?;
        let decides = |leaf: u32| traced.guards.iter().any(|g| mentions(&g.expr, leaf));
        let unknown = |c: &&Chosen| !c.given && !c.known && c.leaf.is_none_or(decides);
        let name = |c: &Chosen| match c.path.strip_prefix("len(").and_then(|p| p.strip_suffix(')')) {
            Some(list) => format!("the length of `{list}`"),
            None => format!("the value of `{}`", c.path),
        };
        let open = maker.chosen.iter().filter(unknown).map(name).collect();
        Ok((traced.graph, open))
    }

    /// Shows why there is no graph; returns the exit code.
    pub fn refused(&self, setup: &Setup, found: &[Diagnostic]) -> u8 {
        setup.show(found, &self.sources);
        if found.iter().any(|d| d.code == Code::E0602) { 2 } else { 1 }
    }

    /// What module variables that it reads hold, behind so many arguments.
    fn globals(&self, facts: &Facts, behind: usize) -> Result<Vec<(RegionParam, RegionArg)>, Box<Diagnostic>> {
        let reads = facts.globals_read(self.function.inst);
        Globals::new(&self.program, facts).passed(&reads, behind).map_err(|g| {
            let var = &self.program.globals[g.0 as usize];
            let (mut read, name) = (Span::NONE, &self.function.name);
            each_expr_in(&self.inst().body, &mut |e| {
                if read.is_none() && matches!(e.kind, TKind::Global(id) if id == g) {
                    read = e.span;
                }
            });
            let text = format!("`{name}` reads `{}`, a variable of the file that only running gives a value", var.name);
            let d = Diagnostic::new(Code::E0718, if read.is_none() { self.function.head } else { read }, text);
            let d = if var.span.is_none() { d } else { d.with_label(var.span, "assigned here") };
            Box::new(d.help(format!("make it a parameter of `{name}`, or leave `--function` out to run the program")))
        })
    }

    fn sizes(&self, setup: &Setup, of: &OfFunction, with: &[(String, String)]) -> Result<Sizes, Box<Diagnostic>> {
        let mut out = Sizes {
            vars: vec![],
            given: BTreeMap::new(),
            conditions: sizes::asserted(self.inst()),
            full: vec![],
            mesh: None,
            mesh_note: None,
        };
        let mut axes = BTreeMap::new();
        for (_, ty) in self.params() {
            each_size(ty, &mut |size| {
                for v in size.vars() {
                    if !out.vars.contains(&v) {
                        out.vars.push(v);
                    }
                }
            });
            tessera_core::sizes::each_dim(ty, &mut |dim| {
                if dim.as_var().is_none() && dim.as_const().is_none() {
                    let at_least = |n: i64| {
                        let (left, right) = (dim.clone(), Size::constant(n));
                        sizes::Condition { op: CmpOp::Ge, left, right, span: Span::NONE }
                    };
                    out.conditions.push(at_least(0));
                    out.full.push(at_least(1));
                }
            });
            values::open_axes(ty, &mut axes);
        }
        let mut given_axes = BTreeMap::new();
        for (name, n) in of.sizes.iter().flat_map(|s| &s.0) {
            if let Some(v) = out.vars.iter().find(|v| *v.name == **name) {
                if self.parameter(name).is_some() {
                    let d = wrong(format!("`{name}` is a parameter of `{}` and no size", self.function.name));
                    return Err(Box::new(d.help(format!("give it with `--with {name}={n}`"))));
                }
                out.given.insert(v.clone(), *n);
            } else if axes.contains_key(name) && *n >= 1 {
                given_axes.insert(name.clone(), *n as u64);
            } else {
                return Err(self.no_such_size(name, &out.vars, &axes));
            }
        }
        self.given_ints(with, &mut out)?;
        out.set_mesh(axes, &given_axes, setup, &self.program);
        Ok(out)
    }

    /// Ints among the parameters are sizes too.
    fn given_ints(&self, with: &[(String, String)], out: &mut Sizes) -> Result<(), Box<Diagnostic>> {
        for (p, ty) in self.params() {
            let (Some((_, text)), Ty::Int(Some(size))) = (with.iter().find(|(name, _)| *name == *p.name), ty) else {
                continue;
            };
            if let (Some(v), Ok(n)) = (size.as_var(), text.parse()) {
                out.given.insert(v.clone(), n);
            }
        }
        Ok(())
    }

    fn parameter(&self, name: &str) -> Option<&Ty> {
        self.params().find(|(p, _)| *p.name == *name).map(|(_, ty)| ty)
    }

    fn open(&self, v: &SizeVar) -> sizes::Open {
        let own = |ty: &Ty| matches!(ty, Ty::Int(Some(size)) if size.as_var() == Some(v));
        let first = self.params().find(|(_, ty)| own(ty)).map(|(p, _)| match p.default {
            Some(Literal::Int(n)) => n,
            // Counts of steps and positions rather than extents.
            _ => 4,
        });
        sizes::Open { var: v.clone(), first }
    }

    fn arguments(&self, maker: &mut Maker) -> Result<Vec<RegionArg>, Box<Diagnostic>> {
        let mut out = vec![];
        for (p, ty) in self.params() {
            maker.span = p.span;
            out.push(maker.value(&p.name, ty, p.default.as_ref())?);
        }
        Ok(out)
    }

    /// The function, or what `apply` makes of it, with these arguments, as a region that is traced.
    #[expect(clippy::too_many_arguments, reason = "all that a call consists of")]
    fn traced(
        &self,
        setup: &Setup,
        apply: &dyn Fn(Vec<TExpr>) -> TKind,
        types: Vec<(Arc<str>, Ty)>,
        ret: &Ty,
        args: &[RegionArg],
        globals: &[(RegionParam, RegionArg)],
        mesh: Option<&Arc<Mesh>>,
    ) -> Result<Traced, Vec<Diagnostic>> {
        let head = self.function.head;
        let param = |(i, (name, ty)): (usize, (Arc<str>, Ty))| RegionParam {
            local: param_local(i),
            name,
            ty: on_mesh(&ty, mesh),
            global: None,
        };
        let params: Vec<RegionParam> = types.into_iter().enumerate().map(param).collect();
        let read = |p: &RegionParam| {
            let kind = if matches!(p.ty, Ty::Mesh(_) | Ty::ShardSpec(_)) { TKind::None } else { TKind::Local(p.local) };
            TExpr { kind, ty: p.ty.clone(), span: head }
        };
        let kind = apply(params.iter().map(read).collect());
        let call = TExpr { kind, ty: on_mesh(ret, mesh), span: head };
        let params = params.into_iter().chain(globals.iter().map(|g| g.0.clone())).collect();
        let args: Vec<RegionArg> = args.iter().cloned().chain(globals.iter().map(|g| g.1.clone())).collect();
        let region = region(&self.function.name, params, vec![call], head);
        let mut traced = match setup.global.checked {
            true => trace_checked(&self.program, &region, &args),
            false => trace(&self.program, &region, &args),
        }?;
        forget_call(&mut traced.graph, head);
        if let Some(mesh) = mesh {
            put_mesh(&mut traced.graph, mesh);
        }
        if let Some(node) = largest(&traced.graph).filter(|n| n.ty.bytes().is_none_or(|b| b > BYTES_MAX)) {
            let text = format!("{} is more than any machine holds", node.ty);
            return Err(vec![Diagnostic::new(Code::E0602, node.origin.span, text).help("give smaller sizes")]);
        }
        tessera_graph::verified(&traced.graph, "tracing");
        Ok(traced)
    }

    /// The sizes that are no parameters, with their values.
    fn named<'a>(
        &'a self,
        wanted: &'a Sizes,
        values: &'a sizes::Values,
    ) -> impl Iterator<Item = (&'a SizeVar, &'a i64)> {
        let is_int = |ty: &Ty, v: &SizeVar| matches!(ty, Ty::Int(Some(size)) if size.as_var() == Some(v));
        let own = move |v: &&SizeVar| !self.params().any(|(_, ty)| is_int(ty, v));
        wanted.vars.iter().filter(own).filter_map(|v| Some((v, values.get(v)?)))
    }

    /// What was chosen and given, a line each.
    fn notes(&self, wanted: &Sizes, values: &sizes::Values, made: &[Chosen], traced: &Traced) -> Vec<String> {
        let mut out = vec![self.signature()];
        out.extend(self.function.chosen.iter().map(|c| format!("{c}: chosen; an annotation says another")));
        let all = || self.named(wanted, values);
        let chosen = listed(all().filter(|(v, _)| !wanted.given.contains_key(v)));
        let given = listed(all().filter(|(v, _)| wanted.given.contains_key(v)));
        if !given.is_empty() {
            out.push(format!("{given}: given"));
        }
        if !chosen.is_empty() {
            out.push(format!("{chosen}: chosen; --sizes says others"));
        }
        out.extend(wanted.mesh_note.clone());
        for c in made {
            let whose = if c.given { "given" } else { "chosen" };
            let other = if c.given { "" } else { "; --with says another" };
            let Some(leaf) = c.leaf else {
                out.push(format!(
                    "{}={}: {whose}{}",
                    c.path,
                    c.text,
                    if c.given {
                        String::new()
                    } else {
                        format!("; --with {}=N says another", c.path.trim_start_matches("len(").trim_end_matches(')'))
                    }
                ));
                continue;
            };
            let fixed = traced.guards.iter().any(|g| mentions(&g.expr, leaf));
            out.push(match fixed {
                true => format!("{}={}: {whose}, and the graph is for no other value{other}", c.path, c.text),
                false => format!("{} stays open: the graph takes any value", c.path),
            });
        }
        out
    }

    /// An error at some sizes.
    fn at(&self, mut d: Diagnostic, wanted: &Sizes, values: &sizes::Values) -> Diagnostic {
        d.labels.retain(|l| l.span != self.function.head);
        let sizes = listed(wanted.vars.iter().filter_map(|v| Some((v, values.get(v)?))));
        match sizes.is_empty() {
            true => d,
            false => d.note(format!("at {sizes}; `--sizes` and `--with` say others")),
        }
    }

    fn none_fit(&self, wanted: &Sizes) -> Diagnostic {
        let given = listed(wanted.vars.iter().filter_map(|v| Some((v, wanted.given.get(v)?))));
        let alone = wanted.conditions.iter().find(|c| c.holds(&wanted.given) == Some(false));
        let name = &self.function.name;
        let Some(c) = alone else {
            let text = format!("no small sizes were found at which all that `{name}` asserts holds");
            let d = Diagnostic::new(Code::E0602, self.function.head, text);
            let names: Vec<&str> = wanted.vars.iter().map(|v| &*v.name).collect();
            return d.help(format!("give them: `--sizes {}=…`", names.join("=…,")));
        };
        let text = format!("`{} {} {}` does not hold at {given}", c.left, c.op.symbol(), c.right);
        let at = if c.span.is_none() { self.function.head } else { c.span };
        Diagnostic::new(Code::E0602, at, text).help(format!("`{name}` needs it: give other sizes"))
    }

    fn no_such_size(&self, name: &str, vars: &[SizeVar], axes: &BTreeMap<String, u64>) -> Box<Diagnostic> {
        let names: Vec<&str> = vars.iter().map(|v| &*v.name).filter(|n| self.parameter(n).is_none()).collect();
        let names: Vec<&str> = names.into_iter().chain(axes.keys().map(String::as_str)).collect();
        let d = match self.parameter(name) {
            Some(_) => {
                let d = wrong(format!("`{name}` is a parameter of `{}` and no size", self.function.name));
                return Box::new(d.help(format!("give it with `--with {name}=…`")));
            }
            None => wrong(format!("`{}` has no size `{name}`", self.function.name)),
        };
        Box::new(d.help(match (nearest(name, names.iter().copied()), names.is_empty()) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, true) => "its signature names no size".into(),
            (None, false) => format!("it has {}", names.join(", ")),
        }))
    }

    fn no_such_value(&self, name: &str) -> Diagnostic {
        let names: Vec<&str> = self.function.params.iter().map(|p| &*p.name).collect();
        let d = match self.parameter(name) {
            Some(ty) => wrong(format!("`{name}` is a {ty}: `--with` gives numbers, bools, strings and dtypes")),
            None => wrong(format!("`{}` has no parameter `{name}`", self.function.name)),
        };
        match nearest(name, names.iter().copied()).filter(|n| *n != name) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.help("parts are named by their way: `model.rate`; of a list, `--with layers=3` is its length"),
        }
    }
}

impl Sizes {
    /// The mesh of the signature's axes: as given, as the file has one of these axes, or with two devices along each.
    fn set_mesh(
        &mut self,
        axes: BTreeMap<String, u64>,
        given: &BTreeMap<String, u64>,
        setup: &Setup,
        program: &Program,
    ) {
        if axes.is_empty() {
            return;
        }
        let of_file = program.globals.iter().find_map(|v| match &v.ty {
            Ty::Mesh(Some(mesh)) if axes.keys().all(|a| mesh.size(a).is_some_and(|n| n > 0)) => Some(mesh.clone()),
            _ => None,
        });
        let (mut mesh, whose) = match (&setup.global.mesh, of_file) {
            (Some(mesh), _) if axes.keys().all(|a| mesh.size(a).is_some()) => (mesh.clone(), "given"),
            (_, Some(mesh)) => (Mesh::clone(&mesh), "that of the file; --sizes says others"),
            _ => (Mesh { axes: axes.into_keys().map(|a| (a, 2)).collect() }, "chosen; --sizes says others"),
        };
        for axis in &mut mesh.axes {
            axis.1 = given.get(&axis.0).copied().unwrap_or(axis.1);
        }
        let whose = if mesh.axes.iter().all(|a| given.contains_key(&a.0)) { "given" } else { whose };
        self.mesh_note = Some(format!("{mesh}: {whose}"));
        self.mesh = Some(Arc::new(mesh));
    }
}

/// The type as a call on a mesh has it: this one in place of those of which only axes are known.
fn on_mesh(ty: &Ty, mesh: Option<&Arc<Mesh>>) -> Ty {
    let Some(mesh) = mesh else { return ty.clone() };
    with_tensors(ty, &mut |t| match &t.sharding.mesh {
        Some(own) if own.is_unknown() => {
            TensorType { sharding: Sharding { mesh: Some(mesh.clone()), ..t.sharding.clone() }, ..t.clone() }
        }
        _ => t.clone(),
    })
}

/// Puts a mesh in place of those of which only axes are known: the body of a function that is not called was checked with such.
fn put_mesh(graph: &mut Graph, mesh: &Arc<Mesh>) {
    let has_axes = |own: &Mesh| own.axes.iter().all(|(axis, _)| mesh.size(axis).is_some());
    for own in graph.nodes.iter_mut().filter_map(|n| n.ty.sharding.mesh.as_mut()) {
        if own.is_unknown() && has_axes(own) {
            *own = mesh.clone();
        }
    }
    graph.bodies.iter_mut().for_each(|body| put_mesh(body, mesh));
}

/// Takes the call that stands for the function away from where nodes come from: no text has it.
fn forget_call(graph: &mut Graph, call: Span) {
    let mut last: Option<(Calls, Calls)> = None;
    for calls in graph.nodes.iter_mut().map(|n| &mut n.origin.calls).filter(|c| c.first() == Some(&call)) {
        let known = last.as_ref().filter(|(whole, _)| Arc::ptr_eq(whole, calls)).map(|(_, rest)| rest.clone());
        let rest = known.unwrap_or_else(|| calls[1..].into());
        last = Some((std::mem::replace(calls, rest.clone()), rest));
    }
    graph.bodies.iter_mut().for_each(|body| forget_call(body, call));
}

/// The per-device code that a function is made of, if it is.
fn local_call(f: &TFunction) -> Option<&Arc<LocalCall>> {
    match f {
        TFunction::Derived { step: Step::Local(call), .. } => Some(call),
        TFunction::Derived { of, .. } => local_call(of),
        TFunction::Direct { .. } => None,
    }
}

/// The node with the largest value, in loops too.
fn largest(g: &Graph) -> Option<&Node> {
    let nodes = g.nodes.iter().chain(g.bodies.iter().filter_map(largest));
    nodes.max_by_key(|n| n.ty.bytes().unwrap_or(u64::MAX))
}

/// Whether the value of an argument decides an expression.
fn mentions(e: &ScalarExpr, leaf: u32) -> bool {
    match e {
        ScalarExpr::Const(_) => false,
        ScalarExpr::Leaf(n, _) => *n == leaf,
        ScalarExpr::Apply { operands, .. } => operands.iter().any(|e| mentions(e, leaf)),
    }
}
