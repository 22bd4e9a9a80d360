//! `tessera advise`: what makes a program slow that an edit would mend. It runs the program once, measures, and looks for
//! what is known to cost; each finding says where, what it costs, what to write instead and what that should bring.

mod same_arguments;
mod many_sizes;
mod growing;
mod by_element;
mod small_calls;
mod unrolled;
mod twice;
mod wide_numbers;
mod compensated;
mod turned;
mod report;

pub use report::{read, report};

use crate::called::{Called, Sized};
use crate::roof::Roof;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;
use tessera_base::{ItemId, Span};
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ir::group::Group;
use tessera_ir::prim::row;
use tessera_runtime::profile::{Kind, Profile, Row};

/// A finding that would bring less than this of the run is not told.
const SHARE_MIN: f64 = 0.02;
/// Nor one of less time.
const GAIN_MIN: Duration = Duration::from_millis(2);

/// What is known of a run.
pub struct Facts<'a> {
    pub calls: &'a [Called],
    pub profile: &'a Profile,
    /// How the graphs of the calls are divided, in their order.
    pub groups: &'a [Vec<Vec<Group>>],
    pub roof: Option<&'a Roof>,
    /// The run, without what noting calls took.
    pub whole: Duration,
}

/// Something that an edit would mend.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// The rule, a word for tools.
    pub rule: Rule,
    pub span: Span,
    /// What happens there.
    pub what: String,
    /// What to write instead.
    pub edit: String,
    /// What all of it took, measured.
    pub cost: Duration,
    /// What of that the edit should bring, by the rule's model.
    pub gain: Duration,
}

/// The rules, in the order in which they are looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    SameArguments,
    Growing,
    ManySizes,
    ByElement,
    SmallCalls,
    Unrolled,
    Twice,
    WideNumbers,
    Compensated,
    Turned,
}

impl Rule {
    /// As `--json` has it.
    pub fn name(self) -> String {
        let value = serde_json::to_value(self).expect("a word has a form");
        value.as_str().unwrap_or_default().to_owned()
    }
}

/// What is found, that which brings the most first. Of several findings about the same calls the one that brings more stays.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let rules: [fn(&Facts) -> Vec<Finding>; 10] = [
        same_arguments::find,
        growing::find,
        many_sizes::find,
        by_element::find,
        small_calls::find,
        unrolled::find,
        twice::find,
        wide_numbers::find,
        compensated::find,
        turned::find,
    ];
    let mut all: Vec<Finding> = rules.iter().flat_map(|find| find(facts)).filter(|f| facts.counts(f.gain)).collect();
    all.sort_by(|a, b| b.gain.cmp(&a.gain).then(a.rule.cmp(&b.rule)).then(a.span.cmp(&b.span)));
    let mut out: Vec<Finding> = vec![];
    for f in all {
        if !out.iter().any(|g| g.span == f.span) {
            out.push(f);
        }
    }
    out
}

impl<'a> Facts<'a> {
    /// Whether a gain is worth a word.
    fn counts(&self, gain: Duration) -> bool {
        gain >= GAIN_MIN && gain.as_secs_f64() >= SHARE_MIN * self.whole.as_secs_f64()
    }

    /// The graphs of the calls with their groups.
    fn graphs(&self) -> impl Iterator<Item = (&'a Called, &'a Sized, &'a [Group])> {
        let of_call = |(c, groups): (_, &'a Vec<Vec<Group>>)| zip_sized(c, groups);
        self.calls.iter().zip(self.groups).flat_map(of_call)
    }

    /// The time of the kernels in which a node is that computes and for which `of` holds. Rows are by place, and have what other
    /// calls of the same lines took, too: these took at most their own time.
    fn kernels(&self, sized: &Sized, groups: &[Group], of: &dyn Fn(NodeId) -> bool) -> Duration {
        let graph = &sized.graph;
        let works = |id: &NodeId| row(&graph.node(*id).prim).flags().work;
        let wanted = |g: &&Group| g.members.iter().any(|m| works(m) && of(*m));
        let roots: BTreeSet<Span> = groups.iter().filter(wanted).map(|g| graph.node(g.roots[0]).origin.span).collect();
        let is_of = |r: &&Row| r.kind == Kind::Step && roots.contains(&span_of(r));
        self.profile.rows.iter().filter(is_of).map(Row::time).sum::<Duration>().min(sized.time)
    }

    /// What host code takes around a call of tensor code, where all calls are alike.
    fn host_time(&self) -> Duration {
        let host = self.profile.rows.iter().filter(|r| r.name == "host code" && r.kind == Kind::Stage);
        let calls: u64 = self.calls.iter().map(Called::calls).sum();
        host.map(Row::time).sum::<Duration>().div_f64(calls.max(1) as f64)
    }
}

/// Where a finding about calls is shown: where most of them come from, or what is called.
fn place(called: &Called) -> Span {
    called.site().unwrap_or(called.span)
}

fn zip_sized<'a>(
    c: &'a Called,
    groups: &'a [Vec<Group>],
) -> impl Iterator<Item = (&'a Called, &'a Sized, &'a [Group])> {
    c.sized.iter().zip(groups).map(move |(s, g)| (c, s, &g[..]))
}

fn span_of(row: &Row) -> Span {
    Span::new(ItemId(row.origin.item), row.origin.start as usize, row.origin.end as usize)
}

/// The operations of a graph that compute.
fn working(graph: &Graph) -> impl Iterator<Item = (NodeId, &Node)> {
    graph.ids().map(|id| (id, graph.node(id))).filter(|(_, n)| row(&n.prim).flags().work)
}

/// Such a part of a time.
fn part(time: Duration, of: f64) -> Duration {
    time.mul_f64(of.clamp(0.0, 1.0))
}
