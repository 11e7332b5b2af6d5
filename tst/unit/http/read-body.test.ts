import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readBody } from "../../../src/http/read-body.js";
import { until } from "../../harness/until.js";

const LIMIT = 1_000;

let bodies: (string | undefined)[];
let requests: IncomingMessage[];
let socket: Socket;
let answers: string;
const server = createServer((request, response) => {
  requests.push(request);
  readBody(request, LIMIT, (body) => {
    bodies.push(body?.toString());
    response.end("ok");
  });
});

beforeEach(async () => {
  [bodies, requests, answers] = [[], [], ""];
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.setNoDelay(true).on("data", (chunk) => {
    answers += chunk.toString();
  });
  await once(socket, "connect");
});
afterEach(async () => {
  socket.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const head = (length: number) => `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n`;
const pause = () => new Promise((resolve) => setTimeout(resolve, 30));
const answered = (count: number) =>
  until(
    () => answers.split("HTTP/1.1 200").length - 1,
    (got) => got === count,
  );

describe("a request's body", () => {
  it("that comes with its head is taken whole, and the request ends", async () => {
    socket.write(`${head(5)}hello`);
    await answered(1);
    expect(bodies).toEqual(["hello"]);
    await until(() => requests[0]?.readableEnded === true && requests[0].destroyed, Boolean);
  });

  it("is one after the other where requests follow each other on one connection, in one write too", async () => {
    socket.write(`${head(3)}one${head(3)}two`);
    await answered(2);
    socket.write(`${head(5)}three`);
    await answered(3);
    expect(bodies).toEqual(["one", "two", "three"]);
  });

  it("that comes in pieces is put together", async () => {
    socket.write(`${head(10)}01`);
    await pause();
    expect(bodies).toEqual([]);
    socket.write("2345");
    await pause();
    socket.write("6789");
    await answered(1);
    socket.write(head(4));
    await pause();
    socket.write("late");
    await answered(2);
    expect(bodies).toEqual(["0123456789", "late"]);
  });

  it("that is sent in chunks is put together", async () => {
    socket.write("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n");
    await pause();
    socket.write("2\r\nde\r\n0\r\n\r\n");
    await answered(1);
    expect(bodies).toEqual(["abcde"]);
  });

  it("that is empty is empty", async () => {
    socket.write(head(0));
    await answered(1);
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await answered(2);
    expect(bodies).toEqual(["", ""]);
  });

  it("over the limit is none, whether its length is told or not", async () => {
    socket.write(head(LIMIT + 1));
    await answered(1);
    expect(bodies).toEqual([undefined]);
    const other = connect((server.address() as AddressInfo).port, "127.0.0.1");
    other.write("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    other.write(`${(LIMIT + 1).toString(16)}\r\n${"a".repeat(LIMIT + 1)}\r\n`);
    await until(() => bodies.length === 2, Boolean);
    other.destroy();
    expect(bodies).toEqual([undefined, undefined]);
  });

  it("that breaks off is nobody's", async () => {
    socket.write(`${head(10)}0123`);
    await pause();
    socket.destroy();
    await until(() => requests[0]?.destroyed === true, Boolean);
    await pause();
    expect(bodies).toEqual([]);
  });
});
