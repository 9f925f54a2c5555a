//! Training steps of neural networks.

use super::collectives::allreduce_ring;
use super::exchanges::linear;
use super::{Program, part};

/// Computes forward through all layers, and then backward. In the backward pass, the gradients of a layer are summed over all
/// ranks while the next layer computes.
pub(super) fn data_parallel(program: &mut Program<'_>) {
    let (layers, compute) = (program.shape.layers, program.shape.compute_ns);
    let mut done = Vec::new();
    program.cpu = 1;
    for _ in 0..layers {
        done = program.calc(compute, &done);
    }
    for layer in (0..layers).rev() {
        // The backward pass takes twice the time, because it computes the gradients of weights and of inputs.
        done = program.calc(compute.saturating_mul(2), &done);
        let size = part(program.shape.size, layers, layer);
        allreduce_ring(program, size, 0, layer, done.first().copied());
    }
}

/// Computes each layer forward, and then backward. A layer consists of attention, tokens to the ranks of their experts, the
/// experts, and tokens back. An allreduce of the gradients follows.
pub(super) fn mixture_of_experts(program: &mut Program<'_>) {
    let (layers, compute, size) = (program.shape.layers, program.shape.compute_ns, program.shape.size);
    let each = size / u64::from(program.shape.ranks);
    program.cpu = 1;
    for (pass, work) in [compute, compute.saturating_mul(2)].into_iter().enumerate() {
        for layer in 0..layers {
            for exchange in 0..2 {
                program.calc(work, &[]);
                program.join();
                linear(program, &|_| (each, each), (pass as u32 * layers + layer) * 2 + exchange);
                program.join();
            }
        }
    }
    allreduce_ring(program, size, 0, 4 * layers, None);
}
