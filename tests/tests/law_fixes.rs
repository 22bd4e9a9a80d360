//! What a message about a layout says to write: pasted, the program checks and prints what it
//! prints without a mesh.

use std::time::Instant;
use tessera::testing::{Advice, Outcome, Runner, advice};
use tessera_base::Code;

/// The stack of a thread that checks and runs programs.
const STACK: usize = 256 << 20;
/// Programs that are refused, and fixes of all of them, at least.
const REFUSED: usize = 100;
const FIXES: usize = 300;
/// Fixes one after the other, where operands are to be laid out one by one. Every first fix is
/// followed, and behind it the last of each message, which splits less.
const DEPTH: usize = 6;

/// Expressions of a matrix `x`, a matrix `y` of the same sizes, and a tensor `z` of rank 3.
const EXPRESSIONS: &[&str] = &[
    "op.cumsum(x, axis=0)",
    "x.cumsum(axis=1)",
    "op.sort(x, axis=0)",
    "op.sort(x, axis=1)",
    "op.argmax(x, axis=1)",
    "x[1]",
    "x[:, 2]",
    "x[1:5]",
    "x[:, ::2]",
    "x[-1, 3]",
    "z[:, 1:4]",
    "z[..., 0]",
    "op.flip(x, axis=0)",
    "op.concat([x, y], axis=0)",
    "op.concat([x, y], axis=1)",
    "op.pad(x, ((1, 1), (0, 0)))",
    "op.stack([x, y], axis=1)",
    "op.tril(x)",
    "op.roll(x, 1, axis=0)",
    "op.topk(x, 3)[0]",
    "op.abs(op.fft(z, axis=0))",
    "op.abs(op.fft(z, axis=1))",
    "op.abs(op.rfft(x))",
    "op.abs(op.fft2(z))",
    "z.reshape(8, 96)",
    "x.reshape(4, 2, 12)",
    "x.reshape(96)",
    "op.conv1d(z, op.ones((2, 8, 3)))",
    "op.max_pool(z[None], 2, stride=2)",
    "x + y",
    "x @ y.T",
    "x.T @ y",
    "op.where(x > y, x, y)",
    "op.scan(lambda c, r: (c + r, r), op.zeros((12,)), x)[1]",
    "op.take(x, op.array([1, 3]), axis=1)",
    "op.repeat(x, 2, axis=0)",
    "op.attention(z, z, z, causal=True)",
];

const SPECS: &[(&str, &str)] = &[
    ("(0,)", "(\"a\",)"),
    ("(1,)", "(\"a\",)"),
    ("(0, 1)", "(\"a\", \"b\")"),
    ("(1, 0)", "(\"a\", \"b\")"),
    ("(1,)", "((\"a\", \"b\"),)"),
    ("(0,)", "((\"b\", \"a\"),)"),
];

fn program(expression: &str, x: usize, y: usize, on_a_mesh: bool) -> String {
    let lay = |tensor: &str, spec: usize| {
        let (partition, axes) = SPECS[spec];
        match on_a_mesh {
            true => format!("dist.shard({tensor}, dist.ShardSpec(partition={partition}, mesh_axes={axes}), mesh=mesh)"),
            false => tensor.to_owned(),
        }
    };
    let tensor = |key: u64, shape: &str| format!("random.normal(random.key({key}), {shape})");
    let (x, y, z) = (lay(&tensor(1, "(8, 12)"), x), lay(&tensor(2, "(8, 12)"), y), lay(&tensor(3, "(8, 8, 12)"), x));
    format!(
        "mesh = dist.Mesh(axes=[\"a\", \"b\"], devices=range(4), shape=[2, 2])\n\
         x = {x}\ny = {y}\nz = {z}\nout = {expression}\nprint(dist.gather(dist.complete(out)))\n"
    )
}

/// What is wrong with following the advice of a refused program.
fn followed(runner: &Runner, text: &str, expected: &str, depth: usize, fixes: &mut usize) -> Vec<String> {
    let Outcome::Refused(codes) = runner.run(text) else { return vec![] };
    let about_layouts = |code: &Code| matches!(code, Code::E0404 | Code::E0405 | Code::E0406);
    if !codes.first().is_some_and(about_layouts) {
        return vec![format!("{codes:?} instead of a layout that is refused, of\n{text}")];
    }
    let all = advice(text);
    if all.is_empty() {
        return vec![format!("no fix comes with edits, of\n{text}")];
    }
    let mut wrong = vec![];
    let skipped = if depth == DEPTH { 0 } else { all.len() - 1 };
    for Advice { title, text: fixed, .. } in all.into_iter().skip(skipped) {
        *fixes += 1;
        match runner.run(&fixed) {
            Outcome::Printed(got) if got == expected => {}
            // Another operand is to be laid out, too.
            Outcome::Refused(_) if depth > 1 => wrong.extend(followed(runner, &fixed, expected, depth - 1, fixes)),
            other => wrong.push(format!("{title}: {other:?}, of\n{fixed}")),
        }
    }
    wrong
}

#[test]
fn what_a_message_says_to_write_is_accepted_and_means_the_same() {
    let start = Instant::now();
    let run = || {
        let runner = Runner::new(STACK / 2);
        let (mut refused, mut fixes, mut wrong) = (0, 0, vec![]);
        for expression in EXPRESSIONS {
            let Outcome::Printed(expected) = runner.run(&program(expression, 0, 0, false)) else {
                wrong.push(format!("`{expression}` does not run on one device"));
                continue;
            };
            for x in 0..SPECS.len() {
                // The tensors of a list lie alike.
                let alike = !expression.contains('y') || expression.contains('[');
                let others = if alike { x..x + 1 } else { 0..SPECS.len() };
                for y in others {
                    let text = program(expression, x, y, true);
                    if let Outcome::Refused(_) = runner.run(&text) {
                        refused += 1;
                        wrong.extend(followed(&runner, &text, &expected, DEPTH, &mut fixes));
                    }
                }
            }
        }
        (refused, fixes, wrong)
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run);
    let joined = thread.expect("a thread starts").join();
    let (refused, fixes, mut wrong) = joined.unwrap_or_else(|_| panic!("the thread stopped"));
    println!("{refused} programs refused, {fixes} fixes in {:.1} s", start.elapsed().as_secs_f64());
    let count = wrong.len();
    wrong.truncate(30);
    assert!(count == 0, "{count} fixes\n{}", wrong.join("\n"));
    assert!(refused >= REFUSED && fixes >= FIXES, "only {refused} programs and {fixes} fixes");
}
