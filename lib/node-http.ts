// node:http for all programs here. An `import` of it evaluates every export, and some of them (WebSocket and others) load the whole of
// Node's undici: 13 MB of memory and 60 ms of processor time at the start, for nothing. Taken as a plain object, it loads none of that.

const http = process.getBuiltinModule('node:http');

export const request: typeof http.request = http.request;
export const Agent: typeof http.Agent = http.Agent;
export const createServer: typeof http.createServer = http.createServer;
