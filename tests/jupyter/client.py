"""What a client of Jupyter may ask of the kernel: every message, hostile ones, and a notebook.

    python client.py TESSERA NOTEBOOK…

It needs jupyter_client and nbclient (`./x fetch jupyter`), and no other kernel.
"""

import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import tempfile
import time

import nbclient
import nbformat
import zmq
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

TIMEOUT = 60
tool = os.path.abspath(sys.argv[1])
notebooks = sys.argv[2:]


class Kernel:
    """A kernel and its client."""

    def __init__(self, specs):
        self.manager = KernelManager(kernel_name="tessera", kernel_spec_manager=specs)
        self.manager.start_kernel()
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=TIMEOUT)

    def reply(self, id, channel="shell"):
        """The reply to a message."""
        get = getattr(self.client, f"get_{channel}_msg")
        while True:
            message = get(timeout=TIMEOUT)
            if message["parent_header"].get("msg_id") == id:
                return message["content"]

    def outputs(self, id, until=None):
        """What comes on the channel of outputs, until the message is done or `until` has come."""
        found = []
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            if message["parent_header"].get("msg_id") != id:
                continue
            kind, content = message["header"]["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                return found
            found.append((kind, content))
            if until and until(kind, content):
                return found

    def run(self, code, **how):
        """A cell: its reply and its outputs."""
        id = self.client.execute(code, **how)
        outputs = self.outputs(id)
        return self.reply(id), [o for o in outputs if o[0] != "status"]

    def value(self, code):
        """The text of the value that a cell ends with."""
        reply, outputs = self.run(code)
        assert reply["status"] == "ok", reply
        return [c["data"]["text/plain"] for k, c in outputs if k == "execute_result"][-1]

    def ask(self, name, *args, **how):
        return self.reply(getattr(self.client, name)(*args, **how))

    def control(self, kind, content=None):
        message = self.client.session.msg(kind, content or {})
        self.client.control_channel.send(message)
        return self.reply(message["header"]["msg_id"], "control")

    def stop(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def text_of(outputs, name="stdout"):
    return "".join(c["text"] for k, c in outputs if k == "stream" and c["name"] == name)


def what_the_kernel_is(k):
    info = k.ask("kernel_info")
    assert info["language_info"]["file_extension"] == ".tsr" and info["status"] == "ok", info
    assert k.control("kernel_info_request")["implementation"] == "tessera"
    assert k.ask("comm_info") == {"status": "ok", "comms": {}}


def cells_count(k):
    reply, outputs = k.run("x = 41\nx + 1")
    kinds = [kind for kind, _ in outputs]
    assert kinds == ["execute_input", "execute_result"], kinds
    count = reply["execution_count"]
    assert outputs[1][1]["execution_count"] == count and outputs[1][1]["data"] == {"text/plain": "int 42"}
    assert k.run("x;")[1][1:] == []
    reply, outputs = k.run("print(x)\nx", silent=True)
    assert text_of(outputs) == "41\n" and [k for k, _ in outputs] == ["stream"], outputs
    assert k.run("x", store_history=False)[0]["execution_count"] == count + 1
    assert k.run("x")[0]["execution_count"] == count + 2


def output_streams(k):
    """What is printed comes while the cell runs."""
    id = k.client.execute(
        'n = 0\nprint("first")\nwhile n < 3000000000:\n    n = n + 1\nprint("never")'
    )
    k.outputs(id, until=lambda kind, c: kind == "stream" and c["text"].startswith("first"))
    assert k.client.shell_channel.is_alive()
    try:
        k.client.get_shell_msg(timeout=0.1)
        raise AssertionError("the cell ended before its output was read")
    except queue.Empty:
        pass
    k.control("interrupt_request")
    outputs = k.outputs(id)
    assert k.reply(id)["status"] == "error" and "never" not in text_of(outputs)


def commands_and_questions(k):
    assert text_of(k.run("y = op.ones((2, 3))\n:type y\ny?")[1]) == "Tensor[2, 3, f32]\ny: Tensor[2, 3, f32]\n"
    assert "to check" in text_of(k.run(":time y.sum()")[1], "stderr")
    assert ":load" in text_of(k.run(":help")[1])


def values_are_rich(k):
    def data(code):
        return [c["data"] for kind, c in k.run(code)[1] if kind in ("execute_result", "display_data")]

    [tensor] = data("op.arange(400).reshape(20, 20)")
    assert "400 elements" in tensor["text/html"] and "…" in tensor["text/html"]
    assert tensor["text/plain"].startswith("Tensor[20, 20, i64]")
    [mesh] = data('mesh = dist.Mesh(axes=["dp", "tp"], devices=range(4), shape=[2, 2])\nmesh')
    assert "dp=1" in mesh["text/html"]
    spec = 'dist.ShardSpec(partition=("row", "col"), mesh_axes=("dp", "tp"))'
    [laid] = data(f"dist.shard(op.ones((4, 6)), {spec}, mesh=mesh)")
    assert "dim 0 over dp, dim 1 over tp" in laid["text/html"] and "0:2" in laid["text/html"]
    [record] = data("struct P:\n    w: Tensor[2, 2, f32]\n    names: list[str]\n\nP(op.eye(2), [\"<a>\"])")
    assert "<details>" in record["text/html"] and "&lt;a&gt;" in record["text/html"]
    first, last = data("import std.plot as plot\nplot.lines([1.0, 3.0, 2.0])\nplot.heat(op.eye(3))")
    assert first["image/svg+xml"].startswith("<svg") and last["image/svg+xml"] != first["image/svg+xml"]
    [shown] = data("plot.show(plot.bar([1.0, 3.0]))")
    assert shown["image/svg+xml"].startswith("<svg"), shown
    [own] = data("struct Figure:\n    axes: int\n\nFigure(3)")
    assert "image/svg+xml" not in own, own


def progress_is_one_display(k):
    """A loop shows one bar, which is updated, and not one for each turn; another loop has another."""
    loop = "for i in range(20000):\n    sys.progress(i + 1, 20000, f\"turn {i}\")"
    reply, outputs = k.run(f"{loop}\n{loop}")
    shown = [(kind, c) for kind, c in outputs if kind in ("display_data", "update_display_data")]
    names = [c["transient"]["display_id"] for kind, c in shown if kind == "display_data"]
    assert reply["status"] == "ok" and len(names) == len(set(names)) == 2, shown
    assert {c["transient"]["display_id"] for _, c in shown} == set(names) and len(shown) < 200, len(shown)
    last = [c for _, c in shown if c["transient"]["display_id"] == names[0]][-1]["data"]
    assert "<progress" in last["text/html"] and "20000/20000" in last["text/plain"], last


def wrong_requests_are_answered(k):
    """A request that is signed and wrongly typed has an error as its answer, on either channel, in its turn."""
    session = k.client.session
    for channel in (k.client.shell_channel, k.client.control_channel):
        for kind, content in (
            ("execute_request", {"code": 5}),
            ("complete_request", {"code": "x", "cursor_pos": "end"}),
            ("history_request", {"hist_access_type": "guess"}),
            ("no_such_request", {"a": 1}),
        ):
            message = session.msg(kind, content)
            channel.send(message)
            name = "shell" if channel is k.client.shell_channel else "control"
            reply = k.reply(message["header"]["msg_id"], name)
            assert reply["status"] == "error" and kind in reply["evalue"], reply
    assert k.value("2 + 40") == "int 42"


def values_survive_an_error(k):
    k.run("kept = 7")
    reply, outputs = k.run("kept = 8\nxs = [1]\nprint(xs[kept])")
    error = [c for kind, c in outputs if kind == "error"][0]
    assert reply["status"] == "error" and reply["ename"] == error["ename"], reply
    text = "\n".join(error["traceback"])
    assert f"In [{reply['execution_count']}]" in text and ":3:" in text and "\x1b[" in text, text
    assert k.value("kept") == "int 8"
    reply, _ = k.run("kept = op.ones((2, 3)) @ op.ones((4, 5))")
    assert reply["ename"] == "E0201" and "contracted sizes" in reply["evalue"], reply
    assert k.value("kept") == "int 8"


def values_survive_an_interrupt(k):
    """By the control channel, by a signal; a loop of host code and one of kernels."""
    host = "before = 5\nn = 0\nwhile n < 100000000000:\n    n = n + 1"
    kernels = "z = op.ones((64, 64))\nwhile z.sum() > 0.0:\n    z = (z @ op.ones((64, 64))) / 64.0"
    for code in (host, kernels):
        for by_signal in (False, True):
            id = k.client.execute(code)
            k.outputs(id, until=lambda kind, _: kind == "execute_input")
            time.sleep(0.5)
            started = time.monotonic()
            if by_signal:
                os.kill(k.manager.provisioner.pid, signal.SIGINT)
            else:
                assert k.control("interrupt_request") == {"status": "ok"}
            reply = k.reply(id)
            assert reply["status"] == "error" and "interrupted" in reply["evalue"], reply
            assert time.monotonic() - started < 10
            assert k.value("before") == "int 5"


def an_error_stops_the_queue(k):
    ids = [k.client.execute(code) for code in ("before", "no_such_name", "after = 1", "print(after)")]
    states = [k.reply(id)["status"] for id in ids]
    assert states == ["ok", "error", "aborted", "aborted"], states
    ids = [k.client.execute(code, stop_on_error=False) for code in ("no_such_name", "after = 2")]
    assert [k.reply(id)["status"] for id in ids] == ["error", "ok"]
    assert k.value("after") == "int 2"


def editing_is_helped(k):
    k.run("weights = op.ones((2, 2))")
    found = k.ask("complete", "é = 1\ny = weights.resh", 22)
    assert found["matches"] == ["reshape"] and (found["cursor_start"], found["cursor_end"]) == (18, 22), found
    found = k.ask("inspect", "op.softmax(weights)", 5)
    assert found["found"] and "softmax" in found["data"]["text/plain"], found
    k.run("def twice(x):\n    return x * 2")
    assert "return x * 2" in k.ask("inspect", "twice(1)", 3, detail_level=1)["data"]["text/plain"]
    assert k.ask("inspect", "nothing_of_that_name", 3)["found"] is False
    assert k.ask("is_complete", "x = 1")["status"] == "complete"
    more = k.ask("is_complete", "def f(x):")
    assert (more["status"], more["indent"]) == ("incomplete", "    "), more
    assert k.ask("is_complete", "x = )")["status"] == "invalid"


def cells_are_remembered(k):
    k.run("remembered = 1\nremembered")
    last = k.ask("history", raw=True, output=True, hist_access_type="tail", n=1)["history"]
    assert last[0][2] == ["remembered = 1\nremembered", "int 1"], last
    found = k.ask("history", raw=True, output=False, hist_access_type="search", pattern="remem*", n=5)["history"]
    assert found[-1][2].startswith("remembered"), found


def wrong_messages_do_not_end_it(k):
    """No JSON, no signature, a wrong one, parts that are missing, fields that are missing, raw bytes."""
    info = k.manager.get_connection_info()
    session = k.client.session
    for port in ("shell_port", "control_port"):
        socket = zmq.Context.instance().socket(zmq.DEALER)
        socket.connect(f"tcp://127.0.0.1:{info[port]}")
        good = session.serialize(session.msg("execute_request", {"code": "1", "silent": False, "store_history": True}))
        delimiter, signature, parts = good[0], good[1], good[2:]
        unsigned = [b"not json"] * 4
        for frames in (
            [b""],
            [b"hello"],
            [delimiter],
            [delimiter, signature],
            [delimiter, signature, parts[0]],
            [delimiter, b"", *parts],
            [delimiter, b"0" * 64, *parts],
            [delimiter, b"\xff\xfe", *parts],
            [delimiter, session.sign(unsigned), *unsigned],
            [delimiter, signature, *parts[:3], b'{"code": "2"}'],
            session.serialize(session.msg("execute_request", {})),
            session.serialize(session.msg("complete_request", {"code": "x", "cursor_pos": -5})),
            session.serialize(session.msg("complete_request", {"code": "é", "cursor_pos": 10**9})),
            session.serialize(session.msg("no_such_request", {"a": 1})),
            session.serialize(session.msg("status", {"execution_state": "idle"})),
        ):
            socket.send_multipart(frames)
        socket.close(linger=500)
    import socket as raw

    for noise in (b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 100, b""):
        with raw.create_connection(("127.0.0.1", info["shell_port"])) as plain:
            plain.sendall(noise)
    assert k.value("40 + 2") == "int 42"
    assert k.manager.is_alive()


def it_restarts_and_ends(k):
    k.run("gone = 1")
    k.manager.restart_kernel()
    k.client.wait_for_ready(timeout=TIMEOUT)
    assert k.run("gone")[0]["status"] == "error" and k.value("1 + 1") == "int 2"
    process = k.manager.provisioner.process
    assert k.control("shutdown_request", {"restart": False}) == {"status": "ok", "restart": False}
    assert process.wait(timeout=10) == 0


ORPHAN = """
import sys, time
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
manager = KernelManager(kernel_name="tessera", kernel_spec_manager=KernelSpecManager(kernel_dirs=[sys.argv[1]]))
manager.start_kernel()
client = manager.blocking_client()
client.start_channels()
client.wait_for_ready(timeout=60)
client.execute(sys.argv[2])
time.sleep(0.5)
print(manager.provisioner.pid, flush=True)
time.sleep(600)
"""


def an_orphan_ends(specs):
    """A kernel whose client is killed ends, idle or in the middle of a cell."""
    for code in ("1", "n = 0\nwhile n < 100000000000:\n    n = n + 1"):
        client = subprocess.Popen([sys.executable, "-c", ORPHAN, specs, code], stdout=subprocess.PIPE, text=True)
        pid = int(client.stdout.readline())
        os.kill(pid, 0)
        client.kill()
        client.wait()
        ends = time.monotonic() + 10
        while lives(pid):
            assert time.monotonic() < ends, f"the kernel lives on without a client, at {code!r}"
            time.sleep(0.1)


def lives(pid):
    """Whether a process runs; one that has ended may wait for whoever asks how it ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def a_notebook(path, specs):
    """Its outputs are those that it is kept with."""
    kept = nbformat.read(path, as_version=4)
    run = nbformat.read(path, as_version=4)
    manager = KernelManager(kernel_name="tessera", kernel_spec_manager=specs)
    nbclient.NotebookClient(run, km=manager, timeout=TIMEOUT, coalesce_streams=True).execute()
    if os.environ.get("TESSERA_BLESS"):
        for cell in run.cells:
            cell.metadata.pop("execution", None)
        nbformat.write(run, path)
        return
    for i, (cell, ran) in enumerate(zip(kept.cells, run.cells)):
        if cell.cell_type == "code":
            assert cell.outputs == ran.outputs, f"{path}: cell {i + 1} gives\n{ran.outputs}\nand not\n{cell.outputs}"


def where_it_is_installed(dir):
    def run(*args):
        ran = subprocess.run([tool, "jupyter", *args], capture_output=True, text=True)
        return ran.returncode, ran.stdout, ran.stderr

    code, out, _ = run("install", "--prefix", dir)
    assert code == 0 and f"{dir}/share/jupyter/kernels/tessera" in out, out
    spec = json.loads(pathlib.Path(dir, "share/jupyter/kernels/tessera/kernel.json").read_text())
    assert spec["interrupt_mode"] == "message" and spec["argv"][1:] == ["jupyter", "run", "{connection_file}"], spec
    assert run("uninstall", "--prefix", dir)[0] == 0
    assert run("uninstall", "--prefix", dir)[0] == 1
    assert run("run", f"{dir}/nothing.json")[0] == 1
    pathlib.Path(dir, "far.json").write_text(json.dumps({
        "ip": "0.0.0.0", "transport": "tcp", "shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4,
        "hb_port": 5, "key": "k", "signature_scheme": "hmac-sha256"}))
    code, _, err = run("run", f"{dir}/far.json")
    assert code == 1 and "0.0.0.0" in err, err
    assert run("install", "--prefix", dir)[0] == 0
    what_the_doctor_finds(dir)


def what_the_doctor_finds(dir):
    """Whether Jupyter would find the kernel, and whether it is this program."""
    def line(data):
        env = os.environ | {"JUPYTER_DATA_DIR": data, "VIRTUAL_ENV": "", "CONDA_PREFIX": ""}
        said = subprocess.run([tool, "doctor"], capture_output=True, text=True, env=env).stdout
        return [line for line in said.splitlines() if " jupyter " in line][0]

    assert line(f"{dir}/share/jupyter").startswith("ok") and dir in line(f"{dir}/share/jupyter")
    other = pathlib.Path(dir, "other/kernels/tessera")
    other.mkdir(parents=True)
    spec = json.loads(pathlib.Path(dir, "share/jupyter/kernels/tessera/kernel.json").read_text())
    other.joinpath("kernel.json").write_text(json.dumps(spec | {"argv": ["/nowhere/tessera", *spec["argv"][1:]]}))
    said = line(f"{dir}/other")
    assert said.startswith("missing") and "/nowhere/tessera" in said and "install" in said, said


STEPS = [
    what_the_kernel_is, cells_count, output_streams, commands_and_questions, values_are_rich, progress_is_one_display,
    values_survive_an_error,
    values_survive_an_interrupt, an_error_stops_the_queue, editing_is_helped, cells_are_remembered,
    wrong_requests_are_answered, wrong_messages_do_not_end_it, it_restarts_and_ends,
]


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as dir:
        where_it_is_installed(dir)
        specs = KernelSpecManager(kernel_dirs=[f"{dir}/share/jupyter/kernels"])
        kernel = Kernel(specs)
        for step in STEPS:
            try:
                step(kernel)
                print(f"ok       {step.__name__}", flush=True)
            except BaseException as why:
                failed = 1
                print(f"FAILED   {step.__name__}: {type(why).__name__}: {why}", flush=True)
        kernel.stop()
        try:
            an_orphan_ends(f"{dir}/share/jupyter/kernels")
            print("ok       an_orphan_ends", flush=True)
        except BaseException as why:
            failed = 1
            print(f"FAILED   an_orphan_ends: {why}", flush=True)
        for path in notebooks:
            try:
                a_notebook(path, specs)
                print(f"ok       {os.path.basename(path)}", flush=True)
            except BaseException as why:
                failed = 1
                print(f"FAILED   {os.path.basename(path)}: {why}", flush=True)
    sys.exit(failed)


main()
