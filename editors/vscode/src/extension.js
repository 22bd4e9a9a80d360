// The VS Code side of the language server `tessera lsp`.

const path = require("node:path");
const vscode = require("vscode");
const { LanguageClient, State } = require("vscode-languageclient/node");

/** @type {LanguageClient | undefined} */
let client;

/** The stages that the server can show, as `tessera emit --ir` names them. */
const STAGES = ["graph", "kernels", "schedule", "tile", "llvm", "asm", "ast", "core", "host"];

function program() {
  return vscode.workspace.getConfiguration("tessera").get("path") || "tessera";
}

async function start() {
  const command = program();
  const server = { command, args: ["lsp"] };
  client = new LanguageClient("tessera", "Tessera", server, {
    documentSelector: [{ language: "tessera" }],
    // The commands of lenses run in a terminal here, so the server must not take their names.
    initializationOptions: { runsPrograms: true },
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/*.tsr") },
  });
  try {
    await client.start();
  } catch (error) {
    vscode.window.showErrorMessage(
      `The language server \`${command} lsp\` did not start: ${error.message ?? error}. The setting tessera.path says where it is.`,
    );
  }
}

async function stop() {
  const old = client;
  client = undefined;
  if (old && old.state !== State.Stopped) await old.stop();
  old?.dispose?.();
}

async function restart() {
  await stop();
  await start();
}

// ---- Running ---------------------------------------------------------------------------------

/** Runs `tessera` in a terminal that shows what it prints. */
async function inTerminal(name, args, file) {
  const execution = new vscode.ProcessExecution(program(), args, { cwd: path.dirname(file) });
  const task = new vscode.Task({ type: "tessera", args }, vscode.TaskScope.Workspace, name, "tessera", execution);
  task.presentationOptions = { clear: true, focus: false, panel: vscode.TaskPanelKind.Dedicated };
  await vscode.tasks.executeTask(task);
}

/** The file of a command: its argument, or the one that is edited. It is saved first. */
async function saved(uri) {
  const editor = vscode.window.activeTextEditor;
  const target = uri ? vscode.Uri.parse(String(uri)) : editor?.document.uri;
  if (!target || target.scheme !== "file") {
    vscode.window.showInformationMessage("There is no Tessera file to run.");
    return undefined;
  }
  const document = await vscode.workspace.openTextDocument(target);
  if (document.isDirty && !(await document.save())) return undefined;
  return target.fsPath;
}

async function run(uri) {
  const file = await saved(uri);
  if (file) await inTerminal("run", ["run", file], file);
}

/** Runs the tests of a file, or the one of a name. */
async function runTest(uri, name) {
  const file = await saved(uri);
  if (file) await inTerminal("test", ["test", file, ...(name ? ["--only", name] : [])], file);
}

// ---- Stages of compilation -------------------------------------------------------------------

const SCHEME = "tessera-ir";

/** Shows, beside a program, what the compiler makes of the function at the cursor. */
class Stage {
  constructor() {
    this.changed = new vscode.EventEmitter();
    this.onDidChange = this.changed.event;
    this.text = "";
    this.stage = undefined;
    this.source = undefined;
    this.timer = undefined;
    // Answers to earlier questions may arrive late.
    this.asked = 0;
  }

  get uri() {
    return vscode.Uri.from({ scheme: SCHEME, path: `/${this.stage}.txt` });
  }

  provideTextDocumentContent() {
    return this.text;
  }

  async show() {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.languageId !== "tessera") return;
    const stage = await vscode.window.showQuickPick(STAGES, { placeHolder: "The stage to show" });
    if (!stage) return;
    this.stage = stage;
    this.source = editor.document.uri.toString();
    await this.ask(editor);
    const document = await vscode.workspace.openTextDocument(this.uri);
    await vscode.window.showTextDocument(document, {
      viewColumn: vscode.ViewColumn.Beside,
      preserveFocus: true,
      preview: false,
    });
  }

  async ask(editor) {
    const number = ++this.asked;
    let text;
    try {
      if (!client) throw new Error("the language server does not run");
      const answer = await client.sendRequest("tessera/ir", {
        textDocument: { uri: editor.document.uri.toString() },
        position: { line: editor.selection.active.line, character: editor.selection.active.character },
        ir: this.stage,
      });
      text = answer?.text ?? "There is nothing to show at the cursor.\n";
    } catch (error) {
      text = `${error.message ?? error}\n`;
    }
    if (number !== this.asked) return;
    this.text = text;
    this.changed.fire(this.uri);
  }

  /** The cursor moved or the text changed: asks again once it rests, if anyone can see the answer. */
  follow(editor) {
    if (!this.stage || !editor || editor.document.uri.toString() !== this.source) return;
    if (!vscode.window.visibleTextEditors.some((e) => e.document.uri.scheme === SCHEME)) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(editor), 200);
  }
}

// ---- The extension ---------------------------------------------------------------------------

async function activate(context) {
  const stage = new Stage();
  const on = (name, action) => context.subscriptions.push(vscode.commands.registerCommand(name, action));
  on("tessera.run", (uri) => run(uri));
  on("tessera.runFile", (uri) => run(uri));
  on("tessera.runTest", (uri, name) => runTest(uri, name));
  on("tessera.showIr", () => stage.show());
  on("tessera.restart", restart);
  context.subscriptions.push(
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, stage),
    vscode.window.onDidChangeTextEditorSelection((event) => stage.follow(event.textEditor)),
    vscode.workspace.onDidChangeTextDocument((event) => {
      const editor = vscode.window.activeTextEditor;
      if (editor?.document === event.document) stage.follow(editor);
    }),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("tessera.path")) restart();
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
