// Drives a language server over stdio as an editor does, with the library that editors use.
//
//   TESSERA=/path/to/tessera node test/client.js          runs `$TESSERA lsp`
//   node test/client.js COMMAND ARGS…                     runs another server
//
// Prints one line for each step and ends with 1 if one failed. What a server says it cannot do
// is left out and said.

const { spawn } = require("node:child_process");
const protocol = require("vscode-languageserver-protocol/node");

const words = process.argv.slice(2);
const [command, ...args] = words.length ? words : [process.env.TESSERA || "tessera", "lsp"];
const PATIENCE = 20_000;

const uri = "file:///tessera-client-test/program.tsr";
const program = [
  "def twice(x: Tensor[N, f32]) -> Tensor[N, f32]:",
  '    """Twice the values."""',
  "    return x + x",
  "",
  "y = twice(op.ones((3,)))",
  "print(y.shap)",
  "",
].join("\n");

let failed = 0;
const say = (good, step, more) => {
  failed += good ? 0 : 1;
  console.log(`${good ? "ok     " : "FAILED "} ${step}${more ? `: ${more}` : ""}`);
};
const leave = (step) => console.log(`left out ${step}: the server does not offer it`);

/** The promise, or an error when it takes too long. */
function soon(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no ${what} within ${PATIENCE / 1000} s`)), PATIENCE);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function step(name, action) {
  try {
    say(true, name, await action());
  } catch (error) {
    say(false, name, error.message);
  }
}

const clip = (value) => {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 120 ? `${text.slice(0, 117)}…` : text;
};

async function main() {
  const server = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const gone = new Promise((resolve) => server.on("exit", (code) => resolve(code)));
  server.on("error", (error) => {
    console.log(`FAILED  ${command} did not start: ${error.message}`);
    process.exit(1);
  });
  const connection = protocol.createProtocolConnection(
    new protocol.StreamMessageReader(server.stdout),
    new protocol.StreamMessageWriter(server.stdin),
  );
  connection.onError(([error]) => say(false, "messages", error.message));
  // Requests that a server may make of any editor.
  connection.onRequest("client/registerCapability", () => null);
  connection.onRequest("workspace/configuration", (p) => p.items.map(() => null));
  connection.onRequest("window/workDoneProgress/create", () => null);
  connection.onRequest("workspace/codeLens/refresh", () => null);
  connection.onRequest("workspace/inlayHint/refresh", () => null);
  connection.onRequest("workspace/semanticTokens/refresh", () => null);
  connection.onRequest("workspace/diagnostic/refresh", () => null);

  let heard;
  const diagnostics = new Promise((resolve) => (heard = resolve));
  connection.onNotification("textDocument/publishDiagnostics", (p) => {
    if (p.uri === uri && p.diagnostics.length) heard(p.diagnostics);
  });
  connection.listen();

  const died = gone.then((code) => Promise.reject(new Error(`the server ended with ${code}`)));
  died.catch(() => undefined);
  const ask = (method, parameters) =>
    soon(Promise.race([connection.sendRequest(method, parameters), died]), `answer to ${method}`);
  const at = (line, character) => ({ textDocument: { uri }, position: { line, character } });
  let can = {};

  await step("initialize", async () => {
    const answer = await ask("initialize", {
      processId: process.pid,
      rootUri: null,
      capabilities: {
        textDocument: {
          hover: { contentFormat: ["markdown", "plaintext"] },
          completion: { completionItem: { snippetSupport: true } },
          publishDiagnostics: { relatedInformation: true },
        },
      },
      clientInfo: { name: "client.js" },
    });
    can = answer.capabilities;
    return `${answer.serverInfo?.name ?? "a server without a name"}, ${Object.keys(can).length} capabilities`;
  });
  await connection.sendNotification("initialized", {});
  await connection.sendNotification("textDocument/didOpen", {
    textDocument: { uri, languageId: "tessera", version: 1, text: program },
  });

  await step("diagnostics", async () => {
    const pull = can.diagnosticProvider
      ? ask("textDocument/diagnostic", { textDocument: { uri } }).then((report) => report.items)
      : undefined;
    const found = await soon(pull ? Promise.race([diagnostics, pull]) : diagnostics, "diagnostics");
    if (!found.some((d) => d.range.start.line === 5)) throw new Error(`none on line 6: ${clip(found)}`);
    return clip(found[0].message);
  });

  if (can.hoverProvider) {
    await step("hover", async () => {
      const hover = await ask("textDocument/hover", at(4, 5));
      if (!hover) throw new Error("nothing over a function");
      return clip(hover.contents);
    });
  } else leave("hover");

  if (can.completionProvider) {
    await step("completion", async () => {
      const answer = await ask("textDocument/completion", at(5, 12));
      const items = Array.isArray(answer) ? answer : (answer?.items ?? []);
      if (!items.some((item) => item.label.startsWith("shape"))) throw new Error(`no \`shape\` among ${items.length}`);
      return `${items.length} items`;
    });
  } else leave("completion");

  await step("shutdown", async () => {
    await ask("shutdown", undefined);
    await connection.sendNotification("exit");
    const code = await soon(gone, "end of the server");
    if (code !== 0) throw new Error(`the server ended with ${code}`);
    return "";
  });
  connection.dispose();
  server.kill();
  process.exit(failed ? 1 : 0);
}

main().catch((error) => {
  console.log(`FAILED  ${error.message}`);
  process.exit(1);
});
