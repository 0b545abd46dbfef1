// A runtime for measuring `nodelet tap`: answers every unary call with a message, on the socket that is its second argument. The
// first says by what: "http2", or "frames" that cost little.

import { createServer } from 'node:http2';
import { MESSAGE } from './tap-call.ts';
import { serveFrames } from './tap-frames.ts';

function serveHttp2(path: string, onListening: () => void): void {
  const server = createServer({ settings: { maxConcurrentStreams: 1000 } });
  server.on('stream', (stream) => {
    stream.resume();
    stream.on('end', () => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end(MESSAGE);
    });
    // A client that goes away is the end of its calls, and no more.
    stream.on('error', () => undefined);
  });
  server.listen(path, onListening);
}

const [kind, path = ''] = process.argv.slice(2);
const ready = (): void => void process.stdout.write('ready\n');
if (kind === 'frames') serveFrames(path, MESSAGE, ready);
else serveHttp2(path, ready);
