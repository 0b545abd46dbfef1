// node:http for programs that stay small, the agent first of all. An `import` of it evaluates every export, and some of them (WebSocket and others) load the
// whole of Node's undici: 5 MB of memory that they do not need. Taken as a plain object, it loads none of that.

const http = process.getBuiltinModule('node:http');

export const request: typeof http.request = http.request;
export const Agent: typeof http.Agent = http.Agent;
export const createServer: typeof http.createServer = http.createServer;
