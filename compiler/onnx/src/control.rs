//! Nodes that hold graphs, and calls of functions that a file defines: lines inside lines.

use crate::module::{Pass, constants};
use crate::names::{comment, quoted};
use crate::node::{No, Node};
use crate::standard::{self, Schema};
use crate::value::{Int, Ints, Tensor, Value, bool_or_int};
use std::collections::HashMap;
use tessera_base::DType;
use tessera_runtime::io::onnx::{self, Attribute, Dim, Function, Graph};

/// The lines of a graph, and what it gives.
type Written<'m> = (Vec<String>, Vec<Value<'m>>);

fn held<'m>(node: &'m onnx::Node<'m>, name: &str) -> Result<&'m Graph<'m>, No> {
    match node.attributes.iter().find(|(n, _)| *n == name) {
        Some((_, Attribute::Graph(g))) => Ok(g),
        _ => Err(format!("it lacks `{name}`")),
    }
}

fn indented(lines: &[String]) -> impl Iterator<Item = String> {
    lines.iter().map(|l| format!("    {l}"))
}

/// A tuple of expressions; `()` of none.
fn tuple_of(texts: &[String]) -> String {
    format!("({}{})", texts.join(", "), if texts.len() == 1 { "," } else { "" })
}

/// A tensor of one element as a condition.
fn condition(t: &Tensor) -> String {
    if t.rank == 0 { t.text.clone() } else { format!("{}.reshape(())", t.text) }
}

impl<'m> Pass<'m> {
    pub fn control(&mut self, node: &'m onnx::Node<'m>, schema: &'static Schema) -> Result<(), No> {
        match node.op {
            "If" => self.branch(node, schema),
            "Loop" => self.repeat(node, schema),
            "SequenceMap" => self.mapped(node),
            _ => self.scan(node, schema),
        }
    }

    /// A node whose operator the file defines: its nodes with the arguments of this one.
    pub fn call(&mut self, node: &'m onnx::Node<'m>, body: &'m Function<'m>) -> Result<(), No> {
        let newest = standard::through();
        if body.opset > newest {
            let (name, opset) = (comment(body.name), body.opset);
            return Err(format!("its function `{name}` has version {opset} of the operators; known are 1 to {newest}"));
        }
        let mut scope = HashMap::new();
        for (formal, name) in body.inputs.iter().zip(&node.inputs).filter(|(_, n)| !n.is_empty()) {
            match self.body.value(name) {
                Some(Value::Broken) => return Err(String::new()),
                Some(value) => _ = scope.insert(*formal, value.clone()),
                None => return Err(format!("nothing computes `{}`", comment(name))),
            }
        }
        // A function sees its arguments alone.
        let scopes = std::mem::replace(&mut self.body.scopes, vec![scope]);
        let told = std::mem::take(&mut self.body.told);
        let opset = std::mem::replace(&mut self.body.opset, body.opset.max(1));
        self.nodes(&body.nodes);
        let results: Vec<Option<Value>> = body.outputs.iter().map(|name| self.body.value(name).cloned()).collect();
        (self.body.scopes, self.body.told, self.body.opset) = (scopes, told, opset);
        for (name, value) in node.outputs.iter().zip(results).filter(|(name, _)| !name.is_empty()) {
            match value {
                Some(Value::Broken) => return Err(String::new()),
                Some(value) => self.body.set(name, value),
                None => return Err(format!("its function does not compute `{}`", comment(name))),
            }
        }
        Ok(())
    }

    /// A graph inside another: its results. `known` are its arguments.
    fn inner(&mut self, graph: &'m Graph<'m>, known: HashMap<&'m str, Value<'m>>) -> Result<Vec<Value<'m>>, No> {
        let mut scope = constants(graph);
        scope.extend(known);
        self.body.scopes.push(scope);
        self.body.tell(graph);
        let remark = self.body.remark.clone();
        self.nodes(&graph.nodes);
        self.body.remark = remark;
        let results = graph.outputs.iter().map(|o| match self.body.value(o.name) {
            Some(Value::Broken) => Err(String::new()),
            Some(value) => Ok(value.clone()),
            None => Err(format!("nothing computes `{}`", comment(o.name))),
        });
        let results = results.collect();
        self.body.scopes.pop();
        results
    }

    /// The same with its lines apart.
    fn apart(&mut self, graph: &'m Graph<'m>, known: HashMap<&'m str, Value<'m>>) -> Result<Written<'m>, No> {
        let before = self.body.lines.len();
        let values = self.inner(graph, known);
        let lines = self.body.lines.split_off(before);
        Ok((lines, values?))
    }

    /// The same of a graph that is computed again and again.
    fn repeated(&mut self, graph: &'m Graph<'m>, known: HashMap<&'m str, Value<'m>>) -> Result<Written<'m>, No> {
        self.body.loops += 1;
        let written = self.apart(graph, known);
        self.body.loops -= 1;
        written
    }

    /// `SequenceMap`: a graph for each element of a sequence, whose length is known.
    fn mapped(&mut self, node: &'m onnx::Node<'m>) -> Result<(), No> {
        let graph = held(node, "body")?;
        let mut given = vec![];
        for name in &node.inputs {
            given.push(match self.body.value(name) {
                Some(Value::Broken) => return Err(String::new()),
                Some(value) => value.clone(),
                None => return Err(format!("nothing before it computes `{}`", comment(name))),
            });
        }
        let Some(Value::List(first)) = given.first() else {
            return Err("its argument 0 is no sequence of a known length".into());
        };
        let count = first.len();
        if given.iter().any(|v| matches!(v, Value::List(all) if all.len() != count)) {
            return Err("its sequences have different lengths".into());
        }
        let mut lists: Vec<Vec<Value>> = vec![vec![]; graph.outputs.len()];
        for i in 0..count {
            let own = |v: &Value<'m>| match v {
                Value::List(all) => all[i].clone(),
                value => value.clone(),
            };
            let known = graph.inputs.iter().map(|f| f.name).zip(given.iter().map(own)).collect();
            for (list, value) in lists.iter_mut().zip(self.inner(graph, known)?) {
                list.push(value);
            }
        }
        self.body.hold(count.saturating_mul(lists.len()))?;
        for (name, list) in node.outputs.iter().zip(lists) {
            self.body.set(name, Value::List(list));
        }
        Ok(())
    }

    /// `If`: one branch where the condition is known, else the one that a call decides on.
    fn branch(&mut self, node: &'m onnx::Node<'m>, schema: &'static Schema) -> Result<(), No> {
        let (then, otherwise) = (held(node, "then_branch")?, held(node, "else_branch")?);
        let mut at = Node { body: &mut self.body, node, schema };
        if let Ok(known) = at.known(0) {
            let chosen = if known.first().is_some_and(|c| *c != 0) { then } else { otherwise };
            for (name, value) in node.outputs.iter().zip(self.inner(chosen, HashMap::new())?) {
                self.body.set(name, value);
            }
            return Ok(());
        }
        match at.one(0) {
            Ok(size) => self.chosen(node, &size.text(), [then, otherwise], true),
            Err(_) => {
                let test = condition(&at.tensor(0)?);
                self.chosen(node, &test, [then, otherwise], false)
            }
        }
    }

    /// An `if`: sizes decide it when a call is checked, elements when it runs. Where the branches give different
    /// types the first one is taken, which is then what calls must have.
    fn chosen(
        &mut self,
        node: &'m onnx::Node<'m>,
        test: &str,
        graphs: [&'m Graph<'m>; 2],
        by_size: bool,
    ) -> Result<(), No> {
        // The first branch is computed where the test holds.
        self.body.assumed.extend(by_size.then(|| test.to_owned()));
        let first = self.apart(graphs[0], HashMap::new());
        if by_size {
            self.body.assumed.pop();
        }
        let (mut a, mut b) = (first?, self.apart(graphs[1], HashMap::new())?);
        if a.1.iter().chain(&b.1).any(|v| matches!(v, Value::List(_) | Value::Nothing)) {
            return Err("its branches give sequences or optional values, and its condition is not known".into());
        }
        let ty = |v: &Value| (v.rank(), v.dtype(), v.held());
        let same = a.1.iter().zip(&b.1).all(|(a, b)| ty(a) == ty(b));
        if !same && !by_size {
            return Err("its branches give different types, and its condition depends on data".into());
        }
        if !same {
            let name = if node.name.is_empty() { String::new() } else { format!(" ({})", comment(node.name)) };
            let why = format!("this model is translated for inputs of which {test} holds{name}");
            self.body.lines.push(format!("assert {test}, {}", quoted(&why)));
            self.body.lines.append(&mut a.0);
            for (name, value) in node.outputs.iter().zip(a.1) {
                self.body.set(name, value);
            }
            return Ok(());
        }
        let mut results = vec![];
        for (x, y) in a.1.iter().zip(&b.1) {
            results.push(self.joined([x, y], [&mut a.0, &mut b.0])?);
        }
        for (head, lines) in [(format!("if {test}:"), a.0), ("else:".to_owned(), b.0)] {
            self.body.lines.push(head);
            // A graph without nodes has no line.
            let nothing = lines.is_empty().then(|| "    pass".to_owned());
            self.body.lines.extend(indented(&lines).chain(nothing));
        }
        for (name, value) in node.outputs.iter().zip(results) {
            self.body.set(name, value);
        }
        Ok(())
    }

    /// One of two values, which lines of their branches assign.
    fn joined(&mut self, values: [&Value<'m>; 2], lines: [&mut Vec<String>; 2]) -> Result<Value<'m>, No> {
        let [a, b] = values;
        let [then, otherwise] = lines;
        // Sizes stay sizes, so that shapes may be made of them.
        if let (Some(x), Some(y)) = (a.ints(), b.ints())
            && x.elems.len() == y.elems.len()
        {
            let mut elems = vec![];
            for (x, y) in x.elems.iter().zip(&y.elems) {
                if x == y {
                    elems.push(x.clone());
                    continue;
                }
                let name = self.body.fresh();
                then.push(format!("{name} = {}", bool_or_int(x, a.dtype().unwrap_or(DType::I64))));
                otherwise.push(format!("{name} = {}", bool_or_int(y, b.dtype().unwrap_or(DType::I64))));
                elems.push(if x.natural() && y.natural() { Int::Size(name) } else { Int::Other(name) });
            }
            return Ok(Value::Ints(Ints { elems, ..x }));
        }
        let (x, y) = (self.body.as_tensor(a)?, self.body.as_tensor(b)?);
        let name = self.body.fresh();
        then.push(format!("{name} = {}", x.text));
        otherwise.push(format!("{name} = {}", y.text));
        let known = match (x.known.len(), y.known.len()) {
            (0, _) | (_, 0) => vec![],
            _ => x.known.iter().zip(&y.known).map(|(a, b)| if a == b { *a } else { -1 }).collect(),
        };
        Ok(Value::Tensor(Tensor { known, held: x.held, ..Tensor::new(name, x.rank, x.dtype) }))
    }

    /// `Loop`: a loop of the program, whose turns may depend on sizes and on elements, and whose values may grow.
    fn repeat(&mut self, node: &'m onnx::Node<'m>, schema: &'static Schema) -> Result<(), No> {
        let graph = held(node, "body")?;
        let carried = node.inputs.len().saturating_sub(2);
        let Some(stacked) = graph.outputs.len().checked_sub(1 + carried) else {
            return Err(format!("its graph gives {} values, and it carries {carried}", graph.outputs.len()));
        };
        let mut at = Node { body: &mut self.body, node, schema };
        let turns = match (at.has(0), at.one(0)) {
            (false, _) => None,
            (true, Ok(count)) => Some(count.text()),
            (true, Err(_)) => Some(format!("{}.item()", condition(&at.tensor(0)?))),
        };
        let first = match (at.has(1), at.known(1)) {
            (false, _) => None,
            (true, Ok(known)) if known.first() == Some(&1) => None,
            (true, Ok(_)) => Some("op.array(False)".to_owned()),
            (true, Err(_)) => Some(condition(&at.tensor(1)?)),
        };
        let mut state = vec![];
        for i in 0..carried {
            let start = at.tensor(i + 2)?;
            let name = at.body.fresh();
            at.body.lines.push(format!("{name} = {}", start.text));
            state.push(Tensor { held: start.held, ..Tensor::new(name, start.rank, start.dtype) });
        }
        let (turn, go) = (self.body.fresh(), self.body.fresh());
        let number = Ints { elems: vec![Int::Size(turn.clone())], scalar: true, dtype: DType::I64 };
        let test = Tensor::new(go.clone(), 0, DType::Bool);
        let given =
            [Value::Ints(number), Value::Tensor(test)].into_iter().chain(state.iter().cloned().map(Value::Tensor));
        let known = graph.inputs.iter().map(|i| i.name).zip(given).collect();
        let (lines, values) = self.repeated(graph, known)?;
        let (Some(goes_on), results) = (values.first(), values.get(1..).unwrap_or_default()) else {
            return Err("its graph gives nothing".into());
        };
        // A condition that is the one it was given, or that is true, decides nothing.
        let always = goes_on.whole() == Some(1) || matches!(goes_on, Value::Tensor(t) if t.text == go);
        let tested = !always || first.is_some();
        let mut inside = lines;
        let (mut texts, mut rows) = (vec![], vec![]);
        for (i, value) in results.iter().enumerate() {
            let t = self.body.as_tensor(value)?;
            if i < carried && (t.rank, t.dtype, t.held) != (state[i].rank, state[i].dtype, state[i].held) {
                let s = &state[i];
                return Err(format!(
                    "a value with {} dims of {} becomes one with {} of {}",
                    s.rank, s.dtype, t.rank, t.dtype
                ));
            }
            texts.push(t.text.clone());
            rows.push(t);
        }
        let lists: Vec<String> = (0..stacked).map(|_| self.body.fresh()).collect();
        for (list, row) in lists.iter().zip(&texts[carried..]) {
            self.body.lines.push(format!("{list} = []"));
            inside.push(format!("{list}.append({row})"));
        }
        let mut names: Vec<String> = state.iter().map(|t| t.text.clone()).collect();
        texts.truncate(carried);
        // Before anything: also a graph that tests nothing may read its condition.
        self.body.lines.push(format!("{go} = {}", first.unwrap_or_else(|| "op.array(True)".into())));
        if !always {
            names.push(go.clone());
            texts.push(condition(&self.body.as_tensor(goes_on)?));
        }
        match names.as_slice() {
            [] => {}
            all => inside.push(format!("{} = {}", all.join(", "), texts.join(", "))),
        }
        let mut stop = vec![];
        match turns {
            Some(turns) => {
                self.body.lines.push(format!("for {turn} in range({turns}):"));
                if tested {
                    stop = vec![format!("if not {go}:"), "    break".to_owned()];
                }
            }
            None if tested => {
                self.body.lines.extend([format!("{turn} = 0"), format!("while {go}:")]);
                inside.push(format!("{turn} = {turn} + 1"));
            }
            None => return Err("it has no end".into()),
        }
        if inside.is_empty() {
            inside.push("pass".into());
        }
        self.body.lines.extend(indented(&stop).chain(indented(&inside)).collect::<Vec<_>>());
        for (i, name) in node.outputs.iter().enumerate() {
            let value = match i.checked_sub(carried) {
                None => state[i].clone(),
                Some(k) if k < stacked => {
                    let text = self.stacked(&lists[k], &rows[k + carried], graph.outputs[1 + carried + k].name)?;
                    Tensor { held: rows[i].held, ..Tensor::new(text, rows[i].rank + 1, rows[i].dtype) }
                }
                Some(_) => return Err("it has more results than its graph".into()),
            };
            self.body.set(name, Value::Tensor(value));
        }
        Ok(())
    }

    /// The rows of all turns as one tensor. Where there was no turn it has the sizes that a row is told to have.
    fn stacked(&mut self, list: &str, row: &Tensor, name: &str) -> Result<String, No> {
        let told = self
            .body
            .told
            .get(name)
            .map(|dims| dims.iter().map(|d| if let Dim::Size(n) = d { *n } else { -1 }).collect::<Vec<_>>());
        let sizes = [Some(row.known.clone()), told].into_iter().flatten();
        let sizes = sizes.into_iter().find(|s| s.len() == row.rank && s.iter().all(|n| *n >= 0));
        let Some(sizes) = sizes else {
            let why =
                format!("this Loop took no turn, so that the sizes of its result `{}` are not known", comment(name));
            self.body.lines.push(format!("assert len({list}) > 0, {}", quoted(&why)));
            return self.body.line(&format!("op.stack({list})"));
        };
        let shape: Vec<String> = std::iter::once(0).chain(sizes).map(|n| n.to_string()).collect();
        let none = format!("op.zeros(({},), dtype={})", shape.join(", "), row.dtype);
        self.body.line(&format!("op.stack({list}) if len({list}) > 0 else {none}"))
    }

    /// `Scan`: the operator of this name over the first dim.
    fn scan(&mut self, node: &'m onnx::Node<'m>, schema: &'static Schema) -> Result<(), No> {
        if schema.since < 9 {
            return Err("in version 8 it has a batch and lengths, which is not supported".into());
        }
        let graph = held(node, "body")?;
        let mut at = Node { body: &mut self.body, node, schema };
        let rows = usize::try_from(at.int("num_scan_inputs", 0)).unwrap_or(0);
        let Some(carried) = node.inputs.len().checked_sub(rows) else {
            return at.refuses("num_scan_inputs", "it has fewer arguments");
        };
        let Some(stacked) = graph.outputs.len().checked_sub(carried) else {
            return Err(format!("its graph gives {} values, and it carries {carried}", graph.outputs.len()));
        };
        let lists = |at: &Node, name: &str, count: usize| at.list(name).unwrap_or_else(|| vec![0; count]);
        let (axes, ways) = (lists(&at, "scan_input_axes", rows), lists(&at, "scan_input_directions", rows));
        let (axes_out, ways_out) =
            (lists(&at, "scan_output_axes", stacked), lists(&at, "scan_output_directions", stacked));
        if [axes.len(), ways.len()] != [rows; 2] || [axes_out.len(), ways_out.len()] != [stacked; 2] {
            return Err(format!("its axes and directions are not those of {rows} arguments and {stacked} results"));
        }
        let (mut starts, mut given, mut known) = (vec![], vec![], HashMap::new());
        let (function, state, now) = (at.body.fresh(), at.body.fresh(), at.body.fresh());
        let mut types = vec![];
        for i in 0..node.inputs.len() {
            let t = at.tensor(i)?;
            let Some(formal) = graph.inputs.get(i) else { return Err("its graph has fewer arguments".into()) };
            let inner = match i.checked_sub(carried) {
                None => {
                    starts.push(t.text.clone());
                    types.push((t.rank, t.dtype, t.held));
                    Tensor { held: t.held, ..Tensor::new(format!("{state}[{i}]"), t.rank, t.dtype) }
                }
                Some(k) => {
                    let axis = t.axis(axes[k])?;
                    let text = if axis == 0 { t.text } else { format!("op.moveaxis({}, {axis}, 0)", t.text) };
                    given.push(if ways[k] == 1 { format!("op.flip({text}, axis=0)") } else { text });
                    Tensor { held: t.held, ..Tensor::new(format!("{now}[{k}]"), t.rank - 1, t.dtype) }
                }
            };
            known.insert(formal.name, Value::Tensor(inner));
        }
        let (lines, values) = self.repeated(graph, known)?;
        let mut results = vec![];
        for value in &values {
            results.push(self.body.as_tensor(value)?);
        }
        if results.iter().zip(&types).any(|(t, ty)| (t.rank, t.dtype, t.held) != *ty) {
            return Err("a value that it carries becomes one of another type".into());
        }
        let texts: Vec<String> = results.iter().map(|t| t.text.clone()).collect();
        self.body.lines.push(format!("def {function}({state}, {now}):"));
        self.body.lines.extend(indented(&lines).collect::<Vec<_>>());
        self.body.lines.push(format!("    return {}, {}", tuple_of(&texts[..carried]), tuple_of(&texts[carried..])));
        let all = self.body.line(&format!("op.scan({function}, {}, {})", tuple_of(&starts), tuple_of(&given)))?;
        for (i, (name, t)) in node.outputs.iter().zip(&results).enumerate() {
            let (text, rank) = match i.checked_sub(carried) {
                None => (format!("{all}[0][{i}]"), t.rank),
                Some(k) => {
                    let text = format!("{all}[1][{k}]");
                    let text = if ways_out[k] == 1 { format!("op.flip({text}, axis=0)") } else { text };
                    let axis = crate::node::axis_in(axes_out[k], t.rank + 1)?;
                    (if axis == 0 { text } else { format!("op.moveaxis({text}, 0, {axis})") }, t.rank + 1)
                }
            };
            let text = self.body.line(&text)?;
            self.body.set(name, Value::Tensor(Tensor { held: t.held, ..Tensor::new(text, rank, t.dtype) }));
        }
        Ok(())
    }
}
