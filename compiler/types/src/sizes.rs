//! Size variables, facts about sizes, and the equalities that only a run can decide.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Facts, Size, SizeVar, Span, TensorType, Verdict};
use tessera_core::sizes::subst_ty;
use tessera_core::ty::{FnRefTy, StructTy, Ty};
use tessera_ops::surface::{InferCx, Precision};

/// How notes about comparisons that a program keeps begin.
const CHECKED: &str = "checked at run time: ";

/// An equality of sizes that is checked once at run time.
#[derive(Clone, PartialEq, Debug)]
pub struct SizeCheck {
    pub left: Size,
    pub right: Size,
    /// The expression that needs it.
    pub span: Span,
}

/// The size variables of one function body (or of a module body) and what is known of them.
#[derive(Clone, Debug)]
pub struct SizeCx {
    pub facts: Facts,
    pub checks: Vec<SizeCheck>,
    /// Notes for hovering and `explain`.
    pub notes: Vec<(Span, String)>,
    /// The name that is being bound: fresh sizes take it.
    pub binding: Option<Arc<str>>,
    /// A value was accepted for a type that it has only if sizes turn out to be equal.
    pub unproved: bool,
    /// The mode of `numerics.precision` in force.
    pub precision: Precision,
    next: u32,
    used: BTreeMap<Arc<str>, u32>,
    /// The names that were numbered because theirs was taken, with the name that was.
    numbered: BTreeMap<Arc<str>, Arc<str>>,
}

impl Default for SizeCx {
    fn default() -> Self {
        SizeCx::new(0)
    }
}

impl SizeCx {
    /// `first` is the id of the first variable that this context makes.
    pub fn new(first: u32) -> SizeCx {
        SizeCx {
            facts: Facts::default(),
            checks: vec![],
            notes: vec![],
            binding: None,
            unproved: false,
            precision: Precision::Own,
            next: first,
            used: BTreeMap::new(),
            numbered: BTreeMap::new(),
        }
    }

    /// The id that the next variable will get.
    pub fn next_id(&self) -> u32 {
        self.next
    }

    /// The names that are taken, with how often.
    pub fn names(&self) -> &BTreeMap<Arc<str>, u32> {
        &self.used
    }

    /// Goes on after inputs that took these names: their sizes may be in a message beside new ones.
    pub fn after(&mut self, names: &BTreeMap<Arc<str>, u32>) {
        self.used = names.clone();
    }

    /// Takes the names that are taken, and leaves these: what is only declared stands in no message beside what comes after.
    pub fn replace_names(&mut self, names: BTreeMap<Arc<str>, u32>) -> BTreeMap<Arc<str>, u32> {
        std::mem::replace(&mut self.used, names)
    }

    /// What a size was to be called whose name was numbered because another one has that.
    pub fn plain_name(&self, name: &str) -> Option<&Arc<str>> {
        self.numbered.get(name)
    }

    /// A new variable of a signature: stands for all sizes.
    pub fn rigid(&mut self, name: &str) -> Size {
        Size::var(self.rigid_var(name))
    }

    /// As [`SizeCx::rigid`], as a variable.
    pub fn rigid_var(&mut self, name: &str) -> SizeVar {
        let name: Arc<str> = name.into();
        self.used.entry(name.clone()).or_insert(1);
        let id = self.next;
        self.next += 1;
        SizeVar { id, name, rigid: true, natural: true, each: false }
    }

    /// A new variable of a signature for an `int` parameter: any int, negative ones too.
    pub fn rigid_int(&mut self, name: &str) -> SizeVar {
        SizeVar { natural: false, ..self.rigid_var(name) }
    }

    /// The value of an int that only data knows: negative, perhaps.
    pub fn fresh_int(&mut self, hint: &str) -> Size {
        Size::var(self.fresh_int_var(hint))
    }

    /// As [`SizeCx::fresh_int`], as a variable.
    pub fn fresh_int_var(&mut self, hint: &str) -> SizeVar {
        SizeVar { natural: false, ..self.fresh_var(hint) }
    }

    /// A size that only data knows in the place of another variable.
    pub fn fresh_like(&mut self, var: &SizeVar) -> Size {
        let name = var.name.clone();
        self.fresh_as(var, &name)
    }

    /// As [`SizeCx::fresh_like`], with a name of its own.
    pub fn fresh_as(&mut self, var: &SizeVar, hint: &str) -> Size {
        Size::var(SizeVar { natural: var.natural, each: var.each, ..self.fresh_var(hint) })
    }

    /// A new size that only data knows. It is called after the name that is being bound, or
    /// `hint`, with a number where that name is taken.
    pub fn fresh(&mut self, hint: &str) -> Size {
        Size::var(self.fresh_var(hint))
    }

    /// As [`SizeCx::fresh`], for one of several sizes of what is being bound: `table_rows`.
    pub fn fresh_side(&mut self, side: &str) -> Size {
        let name = self.binding.take();
        let full = name.as_ref().map_or(side.to_owned(), |name| format!("{name}_{side}"));
        let size = self.fresh(&full);
        self.binding = name;
        size
    }

    /// As [`SizeCx::fresh`], as a variable.
    pub fn fresh_var(&mut self, hint: &str) -> SizeVar {
        make_fresh((&mut self.next, &mut self.used, &mut self.numbered), self.binding.as_deref(), hint)
    }

    /// A size of a variable that another body reads: it takes no name here.
    pub fn elsewhere(&mut self, hint: &str) -> SizeVar {
        let id = self.next;
        self.next += 1;
        SizeVar { id, name: hint.into(), rigid: false, natural: true, each: false }
    }

    /// Accepts sizes that are equal, records a run-time check where only data decides, and
    /// returns the verdict where they differ, or may differ for a rigid variable.
    pub fn require_equal(&mut self, a: &Size, b: &Size, span: Span) -> Result<(), Verdict> {
        match a.compare_stated(b, &self.facts) {
            Verdict::Equal => Ok(()),
            Verdict::Depends(w) => {
                if is_data(a) || is_data(b) {
                    self.check_at_run_time(a.clone(), b.clone(), span);
                    Ok(())
                } else {
                    Err(if self.facts.differ_unless_empty(a, b) { Verdict::Differ(w) } else { Verdict::Depends(w) })
                }
            }
            differ => Err(differ),
        }
    }

    /// Whether the two sizes are known to be equal.
    pub fn equal(&self, a: &Size, b: &Size) -> bool {
        a.compare(b, &self.facts) == Verdict::Equal
    }

    /// Records a check; from here on the sizes are equal. Of a size that is another one in each element that says
    /// nothing: the list may get other elements.
    fn check_at_run_time(&mut self, left: Size, right: Size, span: Span) {
        self.note_checked(format!("{left} == {right}"), span);
        if !left.vars().iter().chain(&right.vars()).any(|v| v.each) {
            self.facts.compared_equal(&left, &right);
        }
        self.checks.push(SizeCheck { left, right, span });
    }

    /// As [`SizeCx::require_equal`] does: records that a size has to be at least 0.
    pub fn at_least_zero_at_run_time(&mut self, size: &Size, span: Span) {
        self.note_order(size, &Size::constant(0), span);
        self.facts.compared_at_least(size, &Size::constant(0));
    }

    fn note_order(&mut self, whole: &Size, part: &Size, span: Span) {
        self.note_checked(format!("{whole} >= {part}"), span);
    }

    /// Records that a value of which nothing is known is compared with its whole declared type. `what`: "`x`".
    pub fn note_type(&mut self, declared: &Ty, what: &str, span: Span) {
        self.note_checked(format!("the type {declared} of {what}"), span);
    }

    fn note_checked(&mut self, what: String, span: Span) {
        let note = (span, format!("{CHECKED}{what}"));
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// What is compared at run time in words, each once.
    pub fn kept(&self) -> Vec<(Span, Arc<str>)> {
        self.notes.iter().filter_map(|(span, text)| Some((*span, text.strip_prefix(CHECKED)?.into()))).collect()
    }

    /// The checks that were recorded since there were `before`.
    pub fn checks_since(&self, before: usize) -> Vec<(Size, Size)> {
        self.checks[before.min(self.checks.len())..].iter().map(|c| (c.left.clone(), c.right.clone())).collect()
    }

    /// Runs an operator's typing rule. What it records is kept only if it succeeds.
    pub fn infer<T, E>(&mut self, span: Span, rule: impl FnOnce(&mut InferCx) -> Result<T, E>) -> Result<T, E> {
        let SizeCx { facts, next, used, numbered, binding, .. } = self;
        let mut fresh = |hint: &str| Size::var(make_fresh((next, used, numbered), binding.as_deref(), hint));
        let mut cx = InferCx { facts, fresh: &mut fresh, checks: vec![], reaches: vec![], notes: vec![] };
        let result = rule(&mut cx)?;
        let InferCx { checks, reaches, notes, .. } = cx;
        // The operator itself compares them when it runs.
        for (whole, part) in reaches {
            self.note_order(&whole, &part, span);
            self.facts.compared_at_least(&whole, &part);
        }
        for (left, right) in checks {
            self.check_at_run_time(left, right, span);
        }
        self.notes.extend(notes.into_iter().map(|n| (span, n)));
        Ok(result)
    }

    /// New variables of a declared type are what the value says where they first stand alone: there is
    /// nothing to compare yet. What is told is taken out of `open`.
    pub fn told_by(&mut self, declared: &Ty, found: &Ty, open: &mut BTreeSet<SizeVar>) {
        match (declared, found) {
            (Ty::Tensor(d), Ty::Tensor(f)) if d.rank() == f.rank() => {
                for (d, f) in d.shape.iter().zip(&f.shape) {
                    if d.as_var().is_some_and(|v| open.remove(v)) {
                        self.facts.assume_equal(d, f);
                    }
                }
            }
            (Ty::Tuple(ds), Ty::Tuple(fs)) => ds.iter().zip(fs).for_each(|(d, f)| self.told_by(d, f, open)),
            (Ty::Struct(d), Ty::Struct(f)) => {
                d.fields.iter().zip(&f.fields).for_each(|((_, d), (_, f))| self.told_by(d, f, open))
            }
            _ => {}
        }
    }

    /// From here on the dims of a value of this type are known to be at least 0: a value has it.
    pub fn assume_dims(&mut self, t: &TensorType) {
        let zero = Size::constant(0);
        t.shape.iter().for_each(|d| self.facts.assume_at_least(d, &zero));
    }

    /// As [`SizeCx::assume_dims`], of every tensor in a value of this type; a list may have none.
    pub fn assume_dims_of(&mut self, ty: &Ty) {
        match ty {
            Ty::Tensor(t) => self.assume_dims(t),
            Ty::Tuple(ts) => ts.iter().for_each(|t| self.assume_dims_of(t)),
            Ty::Struct(s) => s.fields.iter().for_each(|(_, t)| self.assume_dims_of(t)),
            _ => {}
        }
    }

    /// The type of one element of a list: a size that is another one in each element becomes
    /// that of this element. In a list inside of the element it stays another one in each.
    pub fn element(&mut self, ty: &Ty) -> Ty {
        let mut made = BTreeMap::new();
        map_outside(ty, &mut |ty| self.opened(ty, &mut made))
    }

    /// The type with a size of its own, one for all that `made` has seen, for each that is another one in each element.
    pub fn opened(&mut self, ty: &Ty, made: &mut BTreeMap<SizeVar, Size>) -> Ty {
        subst_ty(ty, &mut |v| v.each.then(|| made.entry(v.clone()).or_insert_with(|| self.fresh(&v.name)).clone()))
    }

    /// The size of a dim that is `a` on one path and `b` on another: kept where equal, unknown
    /// otherwise.
    pub fn widen(&mut self, a: &Size, b: &Size, hint: &str) -> Size {
        if self.equal(a, b) {
            return a.clone();
        }
        let var = self.fresh_var(hint);
        // Elements that differ among themselves stay so.
        let each = a.vars().iter().chain(&b.vars()).any(|v| v.each);
        Size::var(if each { var.in_each() } else { var })
    }
}

/// The next number of a variable, the names that are taken, and those that were numbered.
type Names<'a> = (&'a mut u32, &'a mut BTreeMap<Arc<str>, u32>, &'a mut BTreeMap<Arc<str>, Arc<str>>);

fn make_fresh((next, used, numbered): Names, binding: Option<&str>, hint: &str) -> SizeVar {
    let base = binding.unwrap_or(if hint.is_empty() { "n" } else { hint });
    // Another `rows_2` is `rows_3`, unless somebody wrote it that way.
    let base = match base.rsplit_once('_') {
        Some((first, number)) if used.contains_key(first) && number.parse::<u32>().is_ok() => first,
        _ => base,
    };
    let mut name: Arc<str> = base.into();
    while let Some(count) = used.get_mut(&name) {
        *count += 1;
        name = format!("{base}_{count}").into();
        if used.contains_key(&name) {
            name = base.into();
        }
    }
    used.insert(name.clone(), 1);
    if *name != *base {
        numbered.insert(name.clone(), base.into());
    }
    let id = *next;
    *next += 1;
    SizeVar { id, name, rigid: false, natural: true, each: false }
}

/// Whether the size has a part that only data knows.
pub fn is_data(size: &Size) -> bool {
    size.vars().iter().any(|v| !v.rigid)
}

/// The type with what it is made of changed, outside of lists and dicts.
fn map_outside(ty: &Ty, f: &mut dyn FnMut(&Ty) -> Ty) -> Ty {
    let mut fields = |fields: &[(Arc<str>, Ty)]| -> Vec<(Arc<str>, Ty)> {
        fields.iter().map(|(name, ty)| (name.clone(), map_outside(ty, f))).collect()
    };
    match ty {
        Ty::List(_) | Ty::Dict(..) => ty.clone(),
        Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| map_outside(t, f)).collect()),
        Ty::Struct(s) => Ty::Struct(Arc::new(StructTy { fields: fields(&s.fields), ..StructTy::clone(s) })),
        Ty::FnRef(r) => Ty::FnRef(Arc::new(FnRefTy { captures: fields(&r.captures), ..FnRefTy::clone(r) })),
        other => f(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_base::DType;
    use tessera_core::sizes::vars_of;

    #[test]
    fn data_sizes_are_checked_at_run_time_and_rigid_ones_are_not() {
        let mut cx = SizeCx::new(0);
        let (n, m, k) = (cx.rigid("N"), cx.rigid("M"), cx.fresh("rows"));
        assert!(matches!(cx.require_equal(&n, &m, Span::NONE), Err(Verdict::Depends(_))));
        assert_eq!(cx.require_equal(&n, &k, Span::NONE), Ok(()));
        assert_eq!(cx.checks.len(), 1);
        assert_eq!(cx.notes[0].1, "checked at run time: N == rows");
        cx.facts.assume_equal(&n, &m);
        assert_eq!(cx.require_equal(&n, &m, Span::NONE), Ok(()));
    }

    #[test]
    fn fresh_names_do_not_repeat() {
        let mut cx = SizeCx::new(0);
        cx.binding = Some("x".into());
        let names: Vec<String> = (0..3).map(|_| cx.fresh("").to_string()).collect();
        assert_eq!(names, ["x", "x_2", "x_3"]);
    }

    #[test]
    fn substitution_reaches_into_containers() {
        let mut cx = SizeCx::new(0);
        let n = cx.rigid_var("N");
        let t = Ty::Tensor(TensorType::new(vec![Size::var(n.clone()).scale(2)], DType::F32));
        let ty = Ty::List(Box::new(Ty::Tuple(vec![t, Ty::Int(Some(Size::var(n.clone())))])));
        assert_eq!(vars_of(&ty).len(), 1);
        let at3 = subst_ty(&ty, &mut |v| (*v == n).then(|| Size::constant(3)));
        assert_eq!(at3.to_string(), "list[tuple[Tensor[6, f32], int]]");
    }
}
