// A runtime for measuring `nodelet tap`: answers every unary call with the message it was sent, on the socket that is its
// argument. Does nothing else.

import { createServer } from 'node:http2';

const server = createServer({ settings: { maxConcurrentStreams: 1000 } });
server.on('stream', (stream) => {
  const parts: Buffer[] = [];
  stream.on('data', (part: Buffer) => parts.push(part));
  stream.on('end', () => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end(Buffer.concat(parts));
  });
  // A client that goes away is the end of its calls, and no more.
  stream.on('error', () => undefined);
});
server.listen(process.argv[2], () => process.stdout.write('ready\n'));
