"""The rows of kernels.tsr in PyTorch, on random data: name, unit, figure. Products are of f32, not of TF32."""

import statistics
import sys
import time

import torch

torch.backends.cuda.matmul.allow_tf32 = False
device = "cuda" if torch.cuda.is_available() else "cpu"
wait = torch.cuda.synchronize if device == "cuda" else lambda: None


def seconds(step):
    """The median of seven samples, each of so many calls that it takes a twentieth of a second."""
    step()
    wait()
    start = time.perf_counter()
    step()
    wait()
    inner = max(1, min(1000, int(0.05 / max(time.perf_counter() - start, 1e-7))))
    times = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(inner):
            step()
        wait()
        times.append((time.perf_counter() - start) / inner)
    return statistics.median(times)


def row(name, unit, amount, step):
    print(name, unit, amount / seconds(step) / 1e9, flush=True)


small = sys.argv[1:2] == ["small"]
elems = 5000 if small else 67108864
rows, columns = (8, 100) if small else (16384, 4096)
side = 48 if small else 4096
table, width = (64, 32) if small else (262144, 256)

torch.manual_seed(0)
with torch.no_grad():
    x, y = (torch.randn(elems, device=device) for _ in range(2))
    row(f"add_{elems}", "GB/s", 12 * elems, lambda: x + y)
    m = torch.randn(rows, columns, device=device)
    w, b = (torch.randn(columns, device=device) for _ in range(2))
    row(f"softmax_{rows}x{columns}", "GB/s", 8 * rows * columns, lambda: torch.softmax(m, -1))
    norm = torch.nn.functional.layer_norm
    row(f"layer_norm_{rows}x{columns}", "GB/s", 8 * rows * columns, lambda: norm(m, (columns,), w, b, 1e-5))
    p, q = (torch.randn(side, side, device=device) for _ in range(2))
    row(f"matmul_f32_{side}", "GFLOP/s", 2 * side**3, lambda: p @ q)
    t = torch.randn(table, width, device=device)
    i = torch.randint(table, (table,), device=device)
    row(f"gather_{table}x{width}", "GB/s", (8 * width + 8) * table, lambda: t[i])
