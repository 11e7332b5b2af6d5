/**
 * The floor of any HTTP server in front of the daemon: a process with `node:http` that opens one socket connection a request
 * and speaks no protocol. `node bare-relay.js SOCKET [FILE]`: POST relays the body as one line, or answers it as it came
 * where the path is /bare; GET answers FILE's bytes.
 */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";

const [socketPath = "", file] = process.argv.slice(2);
const bytes = file === undefined ? Buffer.alloc(0) : readFileSync(file);

const server = createServer((request, response) => {
  if (request.method === "GET") {
    response.writeHead(200, { "content-type": "application/json", "content-length": bytes.length }).end(bytes);
    return;
  }
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    if (request.url === "/bare") {
      const body = Buffer.concat(chunks);
      response.writeHead(200, { "content-type": "application/json", "content-length": body.length }).end(body);
      return;
    }
    const socket = connect(socketPath);
    const answer: Buffer[] = [];
    socket.write(Buffer.concat([...chunks, Buffer.from("\n")]));
    socket.on("data", (chunk) => {
      answer.push(chunk);
      if (chunk[chunk.length - 1] !== 10) return;
      const body = Buffer.concat(answer);
      response.writeHead(200, { "content-type": "application/json", "content-length": body.length }).end(body);
      socket.destroy();
    });
    socket.on("error", (error) => response.writeHead(502).end(String(error)));
  });
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
