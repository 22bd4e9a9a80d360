//! The time of one layer for one microbatch, operator by operator.

use crate::attention::Attention;
use crate::collective::{Collective, Group};
use crate::model::{Gpt, Job, Recompute};
use crate::roofline::Work;
use crate::stack::Overlap;
use crate::topology::{Topology, at};

/// Seconds of one layer.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LayerTime {
    pub forward: f64,
    /// With what of attention is computed again.
    pub backward: f64,
    /// What computing the layer again as a whole adds to that.
    pub again: f64,
    /// The share of the backward part that makes gradients of weights.
    pub weights: f64,
    /// Of both: exchanges that no work hides.
    pub exposed: f64,
    /// Bytes that one device's links carry for exchanges between parts of matrices.
    pub carried: f64,
}

/// Sizes of a layer on one device.
struct Sizes {
    tokens: f64,
    /// Rows of what lies between the products.
    between: f64,
    hidden: f64,
    /// Columns of queries, keys and values together.
    qkv: f64,
    /// Columns of queries.
    queries: f64,
    ffn: f64,
    gated: bool,
    heads: f64,
    seq: f64,
    head: f64,
    batch: f64,
}

impl Sizes {
    fn of(model: &Gpt, job: &Job) -> Sizes {
        let (t, h) = (job.tensor as f64, model.hidden as f64);
        let tokens = (model.seq * job.micro) as f64 / job.context as f64;
        Sizes {
            tokens,
            between: if job.sequence_parallel { tokens / t } else { tokens },
            hidden: h,
            qkv: h * (1.0 + model.kv_share()) / t,
            queries: h / t,
            ffn: model.ffn() / t,
            gated: model.gated,
            heads: model.heads as f64 / t,
            seq: model.seq as f64,
            head: h / model.heads as f64,
            batch: job.micro as f64,
        }
    }

    /// The four products, as rows, columns, depth: queries, keys and values; projection; up; down.
    fn products(&self) -> [[f64; 3]; 4] {
        let up = if self.gated { 2.0 * self.ffn } else { self.ffn };
        [
            [self.tokens, self.qkv, self.hidden],
            [self.tokens, self.hidden, self.queries],
            [self.tokens, up, self.hidden],
            [self.tokens, self.hidden, self.ffn],
        ]
    }

    /// Elements of the scores.
    fn scores(&self) -> f64 {
        self.batch * self.heads * self.tokens / self.batch * self.seq
    }
}

/// Times on one machine.
struct Cost<'a> {
    topology: &'a Topology,
    job: &'a Job,
    model: &'a Gpt,
    sizes: Sizes,
}

impl Cost<'_> {
    fn map(&self, elems: f64, flops: f64, bytes: f64) -> f64 {
        self.topology.device.time(&Work::map(elems, flops, bytes), "bf16")
    }

    fn is_narrow(&self) -> bool {
        self.job.dtype == "fp8"
    }

    fn product(&self, m: f64, n: f64, k: f64, output: f64) -> f64 {
        let input = if self.is_narrow() { 1.0 } else { 2.0 };
        self.topology.device.product_time([m, n, k], input, output, &self.job.dtype)
    }

    /// Turning an operand into the narrow type: read for its largest number, read again, written in both orders.
    fn narrowed(&self, elems: f64) -> f64 {
        if self.is_narrow() { self.map(elems, 2.0, 6.0) } else { 0.0 }
    }

    fn scores_product(&self, count: f64) -> f64 {
        let s = &self.sizes;
        let rows = s.tokens / s.batch;
        count * self.topology.device.time(&Work::product(s.batch * s.heads, rows, s.seq, s.head, 2.0, 2.0), "bf16")
    }

    /// Attention between its products: forward, backward.
    fn attention(&self) -> (f64, f64) {
        let s = &self.sizes;
        let kernel = self.job.stack.attention(self.topology);
        if kernel != Attention::Unfused {
            // Keys after a query are left out.
            let flops = 4.0 * s.scores() * s.head / 2.0;
            let time = |flops, backward| self.topology.device.attention_time(kernel, flops, s.seq, backward);
            return (time(flops, false), time(2.5 * flops, true));
        }
        let e = s.scores();
        let drop = |bytes| if self.model.dropout { self.map(e, 1.0, bytes) } else { 0.0 };
        // The mask is a kernel of its own where nothing is fused; nothing of it goes back.
        let mask = if self.job.stack.fused { 0.0 } else { self.map(e, 1.0, 4.0) };
        let forward = self.scores_product(2.0) + mask + self.map(e, 5.0, 4.0) + drop(5.0);
        (forward, self.scores_product(4.0) + self.map(e, 5.0, 6.0) + drop(5.0))
    }

    /// What an operator beside another reads and writes where they are not one kernel.
    fn alone(&self) -> f64 {
        if self.job.stack.fused { 0.0 } else { 4.0 }
    }

    /// Bytes of dropout beside a sum: its mask.
    fn drop_bytes(&self) -> f64 {
        if self.model.dropout { 1.0 + self.alone() } else { 0.0 }
    }

    /// One sum of both ways around.
    fn sum(&self) -> f64 {
        self.map(self.sizes.between * self.sizes.hidden, 3.0, 6.0 + self.drop_bytes())
    }

    /// Norms, sums and the nonlinearity: forward, backward.
    fn around(&self) -> (f64, f64) {
        let s = &self.sizes;
        let (rows, inner) = (s.between * s.hidden, s.tokens * s.ffn);
        let gate = if s.gated { [6.0 + self.alone(), 10.0 + self.alone()] } else { [4.0, 6.0] };
        let forward = 2.0 * self.map(rows, 5.0, 4.0) + 2.0 * self.sum() + self.map(inner, 8.0, gate[0]);
        let backward = 2.0 * self.map(rows, 10.0, 6.0)
            // Gradients of both ways around are added.
            + 2.0 * self.map(rows, 1.0, 6.0 + self.drop_bytes())
            + self.map(inner, 10.0, gate[1]);
        (forward, backward)
    }

    /// Seconds and bytes of one exchange between parts of matrices: gathered and scattered, or summed.
    fn exchange(&self) -> (f64, f64) {
        let (job, s) = (self.job, &self.sizes);
        let group = Group::new(job.tensor, 1, self.topology.node());
        let bytes = job.activation_bytes() * s.tokens * s.hidden;
        let all = |what: Collective| (self.topology.collective(what, group, bytes), what.carried(bytes, job.tensor));
        match job.sequence_parallel {
            true => {
                let (a, b) = (all(Collective::AllGather), all(Collective::ReduceScatter));
                ((a.0 + b.0) / 2.0, (a.1 + b.1) / 2.0)
            }
            false => all(Collective::AllReduce),
        }
    }

    /// What an exchange leaves of itself where its rows come or go in parts along with a product that needs or makes them.
    fn along(&self, exchange: f64, product: f64) -> f64 {
        let left = at(&self.topology.device.left, self.job.tensor as f64);
        (exchange - product).max(0.0) + left * exchange.min(product)
    }

    /// What an exchange leaves of itself beside work that does not need it; the work is slowed.
    fn beside(&self, exchange: f64, work: f64) -> f64 {
        (exchange - work).max(0.0) + self.topology.device.busy * exchange.min(work)
    }

    /// Seconds of a layer's exchanges between parts of matrices that no product hides, forward and backward. `times` are
    /// those of each product: forward, the gradient of its input, of its weights.
    fn exposed(&self, exchange: f64, times: &[[f64; 3]; 4]) -> (f64, f64) {
        let each = times.iter().enumerate().map(|(i, t)| self.exposed_of(exchange, i, *t));
        each.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// The same beside the product of one of the four places.
    fn exposed_of(&self, exchange: f64, place: usize, [out, input, weights]: [f64; 3]) -> (f64, f64) {
        let splits_columns = place.is_multiple_of(2);
        match (self.job.stack.overlap, self.job.sequence_parallel, splits_columns) {
            // The input is gathered once more for the gradient of the weights.
            (Overlap::All, true, true) => {
                (self.along(exchange, out), self.beside(exchange, input) + self.beside(exchange, weights))
            }
            (Overlap::All, true, false) => (self.along(exchange, out), self.along(exchange, input)),
            (Overlap::All, false, false) => (self.along(exchange, out), 0.0),
            (Overlap::Backward, true, true) => {
                (exchange, self.beside(exchange, input) + self.beside(exchange, weights))
            }
            (Overlap::All | Overlap::Backward, false, true) => (0.0, self.beside(exchange, weights)),
            (Overlap::None, true, true) => (exchange, exchange + self.beside(exchange, input)),
            (Overlap::None | Overlap::Backward, true, false) => (exchange, exchange),
            (Overlap::None, false, true) => (0.0, exchange),
            (Overlap::None | Overlap::Backward, false, false) => (exchange, 0.0),
        }
    }

    /// The exchange of keys and values between the devices of a sequence: seconds, bytes.
    fn context(&self, passes: f64) -> (f64, f64) {
        let (job, s) = (self.job, &self.sizes);
        if job.context < 2 {
            return (0.0, 0.0);
        }
        let bytes = job.activation_bytes() * s.tokens * job.context as f64 * (s.qkv - s.queries) * passes;
        let group = Group::new(job.context, job.tensor, self.topology.node());
        let what = Collective::AllGather;
        (self.topology.collective(what, group, bytes), what.carried(bytes, job.context))
    }
}

/// One layer of a job on a machine.
pub fn layer(topology: &Topology, model: &Gpt, job: &Job) -> LayerTime {
    let cost = Cost { topology, job, model, sizes: Sizes::of(model, job) };
    let products = cost.sizes.products();
    let (core, core_back) = cost.attention();
    let (around, around_back) = cost.around();
    // Gradients of weights are added to ones of four bytes.
    let times =
        products.map(|[m, n, k]| [cost.product(m, n, k, 2.0), cost.product(m, k, n, 2.0), cost.product(k, n, m, 8.0)]);
    let sum = |i: usize| times.iter().map(|t| t[i]).sum::<f64>();
    let narrowed: [f64; 2] = [0, 1].map(|i| products.iter().map(|p| cost.narrowed(p[0] * p[2 - i])).sum());
    let (forward, inputs, weights) = (sum(0) + narrowed[0], sum(1) + narrowed[1], sum(2));
    // The last product, its exchange and the sum after it.
    let mut last = times[3][0] + cost.sum();
    let mut out = LayerTime { forward: forward + core + around, weights, ..LayerTime::default() };
    out.backward = inputs + weights + core_back + around_back;
    if job.tensor > 1 {
        let (exchange, bytes) = cost.exchange();
        // With the sequence divided there is one before and one after each half, and backward inputs are gathered again.
        out.carried = if job.sequence_parallel { 10.0 * bytes } else { 4.0 * bytes };
        let (exposed, exposed_back) = cost.exposed(exchange, &times);
        last += cost.exposed_of(exchange, 3, times[3]).0;
        out.forward += exposed;
        out.backward += exposed_back;
        out.exposed = exposed + exposed_back;
    }
    let (ring, ring_bytes) = cost.context(1.0);
    if ring > 0.0 {
        let share = |exchange: f64, work: f64| {
            (exchange - work).max(0.0) + topology.device.busy * exchange.min(work) + exchange / job.context as f64
        };
        let (exposed, exposed_back) = (share(ring, core), share(2.0 * ring, core_back));
        out.forward += exposed;
        out.backward += exposed_back;
        out.exposed += exposed + exposed_back;
        out.carried += 3.0 * ring_bytes;
    }
    match job.recompute {
        Recompute::None => {}
        Recompute::Selective if job.is_attention_fused() => {}
        Recompute::Selective => out.backward += core,
        Recompute::Full => out.again = out.forward,
        Recompute::Needed => out.again = out.forward - last,
    }
    out
}

/// Bytes that the loss moves for each score. In one kernel: read twice forward, read and written backward, in four bytes.
/// Step by step, as Megatron-Core does it unless told otherwise: made four bytes wide (6), the largest (4), minus that (8),
/// the exponential (8), the sum (4), divided by that (8), times the gradient (8), made narrow again (6).
const LOSS_BYTES: [f64; 2] = [16.0, 52.0];

/// Bytes of each number of the embedding for its gradient in a microbatch: zeros, then added to the one of four bytes.
const EMBEDDING_BYTES: f64 = 12.0;

/// Seconds of both ends for one microbatch: the embedding on the first stage; scores and loss on
/// the last.
pub fn ends(topology: &Topology, model: &Gpt, job: &Job) -> (f64, f64) {
    let cost = Cost { topology, job, model, sizes: Sizes::of(model, job) };
    let s = &cost.sizes;
    let words = model.vocab as f64 / job.tensor as f64;
    let scores = |m, n, k, out| topology.device.product_time([m, n, k], 2.0, out, "bf16");
    let exchange = if job.tensor > 1 { cost.exchange().0 } else { 0.0 };
    let loss = LOSS_BYTES[usize::from(!job.stack.fused_loss)];
    let (input, weights) = (scores(s.tokens, s.hidden, words, 2.0), scores(s.hidden, words, s.tokens, 8.0));
    // Rows are gathered before the scores; their gradients are exchanged beside products.
    let head = scores(s.tokens, words, s.hidden, 2.0)
        + exchange
        + input
        + weights
        + cost.beside(exchange, input)
        + cost.beside(exchange, weights)
        + cost.map(s.tokens * words, 10.0, loss);
    let embedding = cost.map(s.between * s.hidden, 1.0, 12.0) + cost.map(words * s.hidden, 1.0, EMBEDDING_BYTES);
    (embedding + 2.0 * exchange, head)
}
