// crictl exec, attach and port-forward.

import { UserError } from '../../lib/errors.ts';
import type { Flags } from './arguments.ts';
import { chooseContainers } from './containers.ts';
import type { Cri } from './cri.ts';
import { type Invocation, ShowHelp } from './invocation.ts';
import { allOf, failed } from './report.ts';
import type { Forwarder } from './streaming/forward-ports.ts';
import type { RemoteCommand, Transport } from './streaming/remote-command.ts';
import { connectSpdy, type StreamTls } from './streaming/spdy.ts';

/** A runtime that leaves these out means the kubelet's. */
const DEFAULT_ORIGIN = 'http://127.0.0.1:10250';

export function streamUrl(text: string): URL {
  return new URL(text, DEFAULT_ORIGIN);
}

function tlsOf(flags: Flags): StreamTls {
  return {
    serverName: flags.text('tls-sni'),
    caFile: flags.text('tls-ca'),
    certFile: flags.text('tls-cert'),
    keyFile: flags.text('tls-key'),
  };
}

function transportOf(flags: Flags): Transport {
  const transport = flags.text('transport');
  if (transport !== 'spdy' && transport !== 'websocket') throw new UserError(`unknown transport: ${transport}`);
  return transport;
}

const CHOOSERS = ['name', 'pod', 'image', 'state', 'label', 'latest', 'last'];

/** The containers that flags choose; undefined when the first argument names one. */
async function chosen(cri: Cri, flags: Flags): Promise<readonly string[] | undefined> {
  if (!CHOOSERS.some((name) => flags.isSet(name))) return undefined;
  const containers = await chooseContainers(cri, {
    id: '',
    pod: flags.text('pod'),
    name: flags.text('name'),
    namespace: '',
    state: flags.text('state'),
    image: flags.text('image'),
    labels: flags.list('label'),
    latest: flags.bool('latest'),
    last: flags.number('last'),
    all: false,
  });
  return containers.map(({ id }) => id);
}

interface Execution {
  readonly id: string;
  readonly command: readonly string[];
}

/** Prints the output; rejects with UserError for an exit code other than 0. */
async function execSync({ flags, console }: Invocation, cri: Cri, { id, command }: Execution): Promise<void> {
  const timeout = flags.number('timeout');
  const call = cri.call('ExecSync', { container_id: id, cmd: [...command], timeout }, { graceSeconds: timeout });
  const { stdout, stderr, exit_code: code } = await call;
  if (code !== 0) throw new UserError(`command '${command.join(' ')}' exited with ${code}: ${stderr}`);
  for (const output of [stdout, stderr]) {
    console.terminal.stdout.write(output);
    console.terminal.stdout.write('\n');
  }
}

async function execStreaming(invocation: Invocation, cri: Cri, { id, command }: Execution): Promise<void> {
  const { flags } = invocation;
  const [tty, stdin] = [flags.bool('tty'), flags.bool('interactive')];
  const { url } = await cri.call('Exec', {
    container_id: id,
    cmd: [...command],
    tty,
    stdin,
    stdout: true,
    stderr: !tty,
  });
  await runOver(invocation, { url: streamUrl(url), stdin, tty });
}

/** Runs the streams of an exec or attach to their end. */
async function runOver(
  { flags, console, signal }: Invocation,
  streams: Pick<RemoteCommand, 'url' | 'stdin' | 'tty'>,
): Promise<void> {
  const { runRemoteCommand } = await import('./streaming/remote-command.ts');
  await runRemoteCommand({
    ...streams,
    transport: transportOf(flags),
    tls: tlsOf(flags),
    terminal: console.terminal,
    signal,
    warn: (message) => console.log('WARN', message),
  });
}

export async function exec(invocation: Invocation): Promise<void> {
  const { flags, args, console, openCri } = invocation;
  if (args.length === 0) throw new ShowHelp();
  transportOf(flags);
  const cri = await openCri();
  const found = await failed('listing containers', chosen(cri, flags));
  const ids = found ?? args.slice(0, 1);
  const command = found === undefined ? args.slice(1) : args;
  if (command.length === 0) throw new ShowHelp();
  if (ids.length === 0) {
    console.log('ERRO', 'No containers found per filter flags');
    throw new ShowHelp();
  }
  const names = found !== undefined && !flags.bool('quiet') && !flags.bool('parallel');
  const runIn = async (id: string): Promise<void> => {
    if (names) console.line(`${id}:`);
    const where = `execing command in container ${id}`;
    if (flags.bool('sync')) await failed(`${where} synchronously`, execSync(invocation, cri, { id, command }));
    else await failed(where, execStreaming(invocation, cri, { id, command }));
  };
  try {
    if (flags.bool('parallel')) await allOf(ids.map((id) => () => runIn(id)));
    else await inTurn(ids, runIn);
  } catch (error) {
    if (!flags.bool('ignore-errors') || !(error instanceof UserError)) throw error;
    if (!flags.bool('quiet')) console.log('WARN', `ignored, because of --ignore-errors: ${error.message}`);
  }
}

/** Each after the other, all of them, and then what failed. */
async function inTurn(ids: readonly string[], runIn: (id: string) => Promise<void>): Promise<void> {
  const failures: string[] = [];
  for (const id of ids) {
    try {
      await runIn(id);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      failures.push(error.message);
    }
  }
  if (failures.length > 0) throw new UserError(failures.join('\n'));
}

export async function attach(invocation: Invocation): Promise<void> {
  const { flags, args, openCri } = invocation;
  const [id = ''] = args;
  if (id === '') throw new UserError('ID cannot be empty');
  if (args.length !== 1) throw new ShowHelp();
  transportOf(flags);
  const [tty, stdin] = [flags.bool('tty'), flags.bool('stdin')];
  const cri = await openCri();
  const attaching = async (): Promise<void> => {
    const { url } = await cri.call('Attach', { container_id: id, tty, stdin, stdout: true, stderr: !tty });
    await runOver(invocation, { url: streamUrl(url), stdin, tty });
  };
  await failed('attaching running container failed', attaching());
}

export async function portForward({ flags, args, console, signal, openCri }: Invocation): Promise<void> {
  const [id, ...ports] = args;
  if (id === undefined || ports.length === 0) throw new ShowHelp();
  const transport = transportOf(flags);
  const tls = tlsOf(flags);
  const forwarding = await import('./streaming/forward-ports.ts');
  const bySpdy = async (cri: Cri): Promise<Forwarder> => {
    const { url } = await cri.call('PortForward', { pod_sandbox_id: id, port: [] });
    const dialing = connectSpdy(streamUrl(url), [forwarding.PORT_FORWARD_PROTOCOL], tls);
    const { connection } = await failed('error upgrading connection', dialing);
    return forwarding.spdyForwarder(connection, console);
  };
  const byWebSocket = async (cri: Cri): Promise<Forwarder> => {
    const { forwardOverWebSocket } = await import('./streaming/websocket.ts');
    return forwarding.webSocketForwarder(async (local, remote) => {
      // A URL is good for one connection, and names the port.
      const { url } = await cri.call('PortForward', { pod_sandbox_id: id, port: [remote] });
      return forwardOverWebSocket(streamUrl(url), tls, local);
    }, console);
  };
  const run = async (): Promise<void> => {
    const wanted = forwarding.parsePorts(ports);
    const cri = await openCri();
    const forwarder = await (transport === 'websocket' ? byWebSocket(cri) : bySpdy(cri));
    await forwarding.forwardPorts(forwarder, wanted, console, signal);
  };
  await failed('port forward', run());
}
