// Starts the language server of C$ (`rayfold cdollar serve`) for files *.cb in Visual Studio Code.

const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
    const command = workspace.getConfiguration("cdollar").get("command", "rayfold");
    const server = { command, args: ["cdollar", "serve"] };
    client = new LanguageClient("cdollar", "C$", server, { documentSelector: [{ language: "cdollar" }] });
    return client.start();
};

exports.deactivate = () => client?.stop();
