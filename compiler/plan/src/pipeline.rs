//! Schedules of pipelines: their time in closed form for stages that are alike, and event by event
//! for any.
//!
//! Times are whole numbers (of nanoseconds, say), so that the two can be compared exactly.

/// When a stage does what.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Schedule {
    /// All forward parts, then all backward parts.
    AllForward,
    /// One forward, one backward part in turns.
    OneEach,
    /// The same with several chunks of layers on every stage.
    Interleaved,
    /// The gradients of weights fill the gaps ("ZB-1P": no more memory than one in turns).
    ZeroBubble,
}

/// What one stage takes for one microbatch of one chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Parts {
    pub forward: u64,
    /// All of the backward part.
    pub backward: u64,
    /// The share of it that makes gradients of weights.
    pub weights: u64,
}

/// A pipeline: what each stage takes, in the order of stages, by chunk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pipeline {
    pub schedule: Schedule,
    pub microbatches: u64,
    /// By stage and chunk.
    pub parts: Vec<Vec<Parts>>,
    /// From one stage to the next.
    pub hop: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Forward,
    Backward,
    Weights,
}

/// A part of a microbatch of a chunk.
type Op = (Kind, usize, usize);

/// What a simulation shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ran {
    pub time: u64,
    /// By stage: time without work.
    pub idle: Vec<u64>,
    /// By stage: most chunks of microbatches that are kept for their backward part.
    pub kept: Vec<u64>,
}

impl Pipeline {
    /// Stages that are alike.
    pub fn uniform(schedule: Schedule, stages: usize, chunks: usize, microbatches: u64, parts: Parts) -> Pipeline {
        Pipeline { schedule, microbatches, parts: vec![vec![parts; chunks]; stages], hop: 0 }
    }

    fn chunks(&self) -> usize {
        self.parts.first().map_or(1, Vec::len)
    }

    /// The time of stages that are alike, without hops: `microbatches` rounds and the bubble.
    pub fn closed_form(schedule: Schedule, stages: u64, chunks: u64, microbatches: u64, parts: Parts) -> u64 {
        let Parts { forward, backward, weights } = parts;
        let work = microbatches * chunks * (forward + backward);
        work + stages.saturating_sub(1)
            * match schedule {
                Schedule::ZeroBubble => (forward + backward).saturating_sub(2 * weights),
                _ => forward + backward,
            }
    }

    /// The order of a stage's parts.
    fn order(&self, stage: usize) -> Vec<Op> {
        let (p, m, v) = (self.parts.len(), self.microbatches as usize, self.chunks());
        let ahead = match self.schedule {
            Schedule::AllForward => m * v,
            Schedule::OneEach | Schedule::ZeroBubble => p - stage - 1,
            Schedule::Interleaved if v == 1 => p - stage - 1,
            Schedule::Interleaved => (p - stage - 1) * 2 + (v - 1) * p,
        };
        // Groups of `p` microbatches go through all chunks.
        let place = |k: usize| {
            let size = p.min(m) * v;
            let (group, within) = (k / size, k % size);
            let wide = p.min(m - (group * p).min(m)).max(1);
            (within / wide, group * p.min(m) + within % wide)
        };
        let forward = |k| {
            let (c, mb) = place(k);
            (Kind::Forward, c, mb)
        };
        let backward = |k| {
            let (c, mb) = place(k);
            (Kind::Backward, v - 1 - c, mb)
        };
        let (total, ahead) = (m * v, ahead.min(m * v));
        let mut out: Vec<Op> = (0..ahead).map(forward).collect();
        let (mut done, mut weights) = (0, 0);
        for k in ahead..total {
            out.push(forward(k));
            out.push(backward(done));
            done += 1;
            self.fill(stage, done, &mut weights, &mut out);
        }
        for k in done..total {
            out.push(backward(k));
            self.fill(stage, k + 1, &mut weights, &mut out);
        }
        if self.schedule == Schedule::ZeroBubble {
            out.extend((weights..total).map(|mb| (Kind::Weights, 0, mb)));
        }
        out
    }

    /// Later stages put off more gradients of weights: the work for the end.
    fn fill(&self, stage: usize, done: usize, weights: &mut usize, out: &mut Vec<Op>) {
        if self.schedule == Schedule::ZeroBubble && done > stage + *weights {
            out.push((Kind::Weights, 0, *weights));
            *weights += 1;
        }
    }

    /// Plays the schedule. `None` where stages would wait for each other.
    pub fn run(&self) -> Option<Ran> {
        let (p, v, m) = (self.parts.len(), self.chunks(), self.microbatches as usize);
        let orders: Vec<Vec<Op>> = (0..p).map(|s| self.order(s)).collect();
        let mut next = vec![0; p];
        let mut free = vec![0u64; p];
        let mut busy = vec![0u64; p];
        // The end of each part, by kind, stage, chunk and microbatch.
        let at = |kind: Kind, stage: usize, chunk: usize, mb: usize| ((kind as usize * p + stage) * v + chunk) * m + mb;
        let mut ends: Vec<Option<u64>> = vec![None; 3 * p * v * m];
        let mut left: usize = orders.iter().map(Vec::len).sum();
        while left > 0 {
            let before = left;
            for stage in 0..p {
                while let Some(&(kind, chunk, mb)) = orders[stage].get(next[stage]) {
                    let Some(ready) = self.ready(kind, stage, chunk, |k, s, c| ends[at(k, s, c, mb)]) else { break };
                    let time = self.duration(stage, chunk, kind);
                    free[stage] = free[stage].max(ready) + time;
                    busy[stage] += time;
                    ends[at(kind, stage, chunk, mb)] = Some(free[stage]);
                    next[stage] += 1;
                    left -= 1;
                }
            }
            if left == before {
                return None;
            }
        }
        let time = free.iter().copied().max().unwrap_or(0);
        let kept = |order: &Vec<Op>| {
            let counts = order.iter().scan(0u64, |n, op| {
                match op.0 {
                    Kind::Forward => *n += 1,
                    Kind::Backward => *n = n.saturating_sub(1),
                    Kind::Weights => {}
                }
                Some(*n)
            });
            counts.max().unwrap_or(0)
        };
        Some(Ran { time, idle: busy.iter().map(|b| time - b).collect(), kept: orders.iter().map(kept).collect() })
    }

    fn duration(&self, stage: usize, chunk: usize, kind: Kind) -> u64 {
        let parts = self.parts[stage][chunk];
        match (kind, self.schedule) {
            (Kind::Forward, _) => parts.forward,
            (Kind::Backward, Schedule::ZeroBubble) => parts.backward.saturating_sub(parts.weights),
            (Kind::Backward, _) => parts.backward,
            (Kind::Weights, _) => parts.weights,
        }
    }

    /// When what a part needs is there; `None` where that is not known yet.
    fn ready(
        &self,
        kind: Kind,
        stage: usize,
        chunk: usize,
        end: impl Fn(Kind, usize, usize) -> Option<u64>,
    ) -> Option<u64> {
        let (last, chunks) = (self.parts.len() - 1, self.chunks());
        let hop = if last > 0 { self.hop } else { 0 };
        match kind {
            Kind::Forward if stage > 0 => Some(end(Kind::Forward, stage - 1, chunk)? + hop),
            Kind::Forward if chunk > 0 => Some(end(Kind::Forward, last, chunk - 1)? + hop),
            Kind::Forward => Some(0),
            Kind::Backward if stage < last => Some(end(Kind::Backward, stage + 1, chunk)? + hop),
            Kind::Backward if chunk + 1 < chunks => Some(end(Kind::Backward, 0, chunk + 1)? + hop),
            Kind::Backward => end(Kind::Forward, stage, chunk),
            Kind::Weights => end(Kind::Backward, stage, chunk),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schedule: Schedule, p: u64, v: u64, m: u64, parts: Parts) {
        let pipeline = Pipeline::uniform(schedule, p as usize, v as usize, m, parts);
        let ran = pipeline.run().map(|r| r.time);
        let closed = Pipeline::closed_form(schedule, p, v, m, parts);
        assert_eq!(ran, Some(closed), "{schedule:?} p={p} v={v} m={m} {parts:?}");
    }

    #[test]
    fn events_equal_the_closed_forms() {
        let parts = [(1, 2, 1), (3, 6, 3), (5, 9, 4), (7, 14, 7)];
        for (forward, backward, weights) in parts {
            let parts = Parts { forward, backward, weights };
            for p in 1..=9 {
                for m in p..=4 * p {
                    check(Schedule::AllForward, p, 1, m, parts);
                    check(Schedule::OneEach, p, 1, m, parts);
                }
                for v in 1..=4 {
                    for rounds in 1..=4 {
                        check(Schedule::Interleaved, p, v, rounds * p, parts);
                    }
                }
            }
        }
    }

    #[test]
    fn gradients_of_weights_fill_the_gaps() {
        for parts in [(1, 2, 1), (4, 8, 4), (10, 20, 10)] {
            let parts = Parts { forward: parts.0, backward: parts.1, weights: parts.2 };
            for p in 1..=8 {
                for m in 2 * p..=5 * p {
                    check(Schedule::ZeroBubble, p, 1, m, parts);
                }
            }
        }
    }

    #[test]
    fn stages_keep_what_the_formulas_say() {
        let parts = Parts { forward: 1, backward: 2, weights: 1 };
        for p in 1..=8u64 {
            let kept =
                |s, v, m| Pipeline::uniform(s, p as usize, v, m, parts).run().map(|r| r.kept).unwrap_or_default();
            assert_eq!(kept(Schedule::OneEach, 1, 4 * p), (1..=p).rev().collect::<Vec<_>>());
            assert_eq!(kept(Schedule::ZeroBubble, 1, 4 * p), (1..=p).rev().collect::<Vec<_>>());
            // The first stage: as much as without chunks, times 1 + (p - 1)/(p·v).
            for v in 2..=4u64 {
                assert_eq!(kept(Schedule::Interleaved, v as usize, 4 * p)[0], p * v + p - 1);
            }
        }
    }

    #[test]
    fn the_slowest_stage_sets_the_pace() {
        let parts = Parts { forward: 10, backward: 20, weights: 10 };
        let mut pipeline = Pipeline::uniform(Schedule::OneEach, 4, 1, 32, parts);
        pipeline.parts[3][0].forward = 15;
        let Some(ran) = pipeline.run() else { panic!("stuck") };
        assert!(ran.time >= 32 * 35 && ran.time <= 32 * 35 + 3 * 35, "{ran:?}");
    }
}
