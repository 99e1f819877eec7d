// A server of an operator as others write one, over HTTP/1.1: node operator.js [CERTIFICATE KEY AUTHORITY]
// It prints its port, then a line of JSON for each request. The path says what it answers. With a certificate it speaks TLS
// and asks for one of its clients.
const fs = require("node:fs");
const [certificate, key, authority] = process.argv.slice(2);
const attempts = {};
let connections = 0;

function answer(request, response) {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const { method, url, headers, httpVersion: version, socket } = request;
    const body = Buffer.concat(chunks).toString();
    const client = socket.getPeerCertificate ? socket.getPeerCertificate().subject : undefined;
    console.log(JSON.stringify({ method, url, headers, version, body, client, connection: socket.number }));
    attempts[url] = (attempts[url] || 0) + 1;
    if (url.startsWith("/hang")) return;
    if (url.startsWith("/break")) return socket.destroy();
    response.statusCode = 200;
    if (url.startsWith("/fail")) response.statusCode = 503;
    if (url.startsWith("/later") && attempts[url] <= 2) response.statusCode = 503;
    if (url.startsWith("/refuse")) response.statusCode = 400;
    if (url.startsWith("/elsewhere")) response.writeHead(307, { location: "/ok" });
    response.end(url.startsWith("/long") ? Buffer.alloc(1 << 20) : "taken");
  });
}

const number = (socket) => (socket.number = ++connections);
let server;
if (certificate) {
  const [cert, own, ca] = [certificate, key, authority].map((path) => fs.readFileSync(path));
  server = require("node:https").createServer({ cert, key: own, ca, requestCert: true, rejectUnauthorized: true }, answer);
  server.on("secureConnection", number);
} else {
  server = require("node:http").createServer(answer);
  server.on("connection", number);
}
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume();
process.stdin.on("end", () => process.exit());
