//! What the standard says about operators, version by version: facts in `standard.txt`.

use std::sync::LazyLock;
use tessera_base::DType;

/// An operator as one version of the standard has it.
#[derive(Clone, Debug)]
pub struct Schema {
    pub op: &'static str,
    /// The version that brought it in this form.
    pub since: i64,
    pub attributes: Vec<Fact>,
    pub inputs: Vec<FormalParameter>,
    pub outputs: Vec<FormalParameter>,
    /// Names of types with the dtypes that they may be, of those that have a counterpart here.
    pub types: Vec<(&'static str, Vec<DType>)>,
}

/// An attribute.
#[derive(Clone, Debug)]
pub struct Fact {
    pub name: &'static str,
    /// `int`, `ints`, `float`, `floats`, `text`, `texts`, `tensor`, `graph` or another.
    pub kind: &'static str,
    pub required: bool,
    /// As text.
    pub default: Option<&'static str>,
    /// What a text may be; empty where it may be anything.
    pub values: Vec<&'static str>,
}

/// An argument or a result.
#[derive(Clone, Copy, Debug)]
pub struct FormalParameter {
    /// A name in [`Schema::types`], or a dtype.
    pub ty: &'static str,
    pub optional: bool,
    /// It stands for any number of them.
    pub many: bool,
}

struct Standard {
    through: i64,
    schemas: Vec<Schema>,
}

static STANDARD: LazyLock<Standard> = LazyLock::new(|| read(include_str!("standard.txt")));

/// The newest version that is known.
pub fn through() -> i64 {
    STANDARD.through
}

/// Every operator in every form, sorted by name and version.
pub fn schemas() -> &'static [Schema] {
    &STANDARD.schemas
}

/// The operator as the version of a file has it.
pub fn schema(op: &str, version: i64) -> Option<&'static Schema> {
    schemas().iter().rfind(|s| s.op == op && s.since <= version)
}

fn read(text: &'static str) -> Standard {
    let (mut through, mut sets, mut schemas) = (0, vec![], vec![]);
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let (head, rest) = line.split_once(' ').unwrap_or((line, ""));
        if head == "through" {
            through = rest.parse().unwrap_or(0);
        } else if let Some((since, rest)) = rest.split_once(" |") {
            schemas.push(operator(head, since, rest, &sets));
        } else {
            sets.push((head, rest.split(',').filter_map(DType::parse).collect::<Vec<_>>()));
        }
    }
    Standard { through, schemas }
}

fn operator(op: &'static str, since: &str, rest: &'static str, sets: &[(&str, Vec<DType>)]) -> Schema {
    let mut parts = rest.split('|').map(str::split_whitespace);
    let mut part = || parts.next().into_iter().flatten();
    let attributes = part().filter_map(fact).collect();
    let [inputs, outputs] = [part().map(parse_formal).collect(), part().map(parse_formal).collect()];
    let set = |name: &str| sets.iter().find(|(n, _)| *n == name).map(|(_, all)| all.clone()).unwrap_or_default();
    let types = part().filter_map(|t| t.split_once('=')).map(|(name, of)| (name, set(of))).collect();
    Schema { op, since: since.parse().unwrap_or(0), attributes, inputs, outputs, types }
}

/// `name:kind!=default{values}`.
fn fact(text: &'static str) -> Option<Fact> {
    let (text, values) = match text.split_once('{') {
        Some((text, values)) => (text, values.trim_end_matches('}').split(',').collect()),
        None => (text, vec![]),
    };
    let (text, default) = match text.split_once('=') {
        Some((text, default)) => (text, Some(default)),
        None => (text, None),
    };
    let (name, kind) = text.split_once(':')?;
    Some(Fact { name, kind: kind.trim_end_matches('!'), required: kind.ends_with('!'), default, values })
}

fn parse_formal(text: &'static str) -> FormalParameter {
    FormalParameter { ty: text.trim_end_matches(['?', '*']), optional: text.ends_with('?'), many: text.ends_with('*') }
}

impl Schema {
    pub fn attribute(&self, name: &str) -> Option<&Fact> {
        self.attributes.iter().find(|a| a.name == name)
    }

    /// The argument or result at a position: the last one may stand for several.
    pub fn at(places: &[FormalParameter], i: usize) -> Option<FormalParameter> {
        places.get(i).or(places.last().filter(|p| p.many)).copied()
    }

    /// The dtypes that a type may be.
    pub fn dtypes(&self, ty: &str) -> Vec<DType> {
        let own = self.types.iter().find(|(name, _)| *name == ty).map(|(_, all)| all.clone());
        own.unwrap_or_else(|| DType::parse(ty).into_iter().collect())
    }
}
