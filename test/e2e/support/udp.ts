// UDP in network namespaces: a server that answers with a name, and a client. Programs of their own, as the image of the tests has none for UDP.

import { spawn } from 'node:child_process';
import { exec } from '../../../lib/exec.ts';

const SERVER = `const socket = require('node:dgram').createSocket('udp4');
socket.on('message', (_, { port, address }) => socket.send(process.argv[1], port, address));
socket.bind(Number(process.argv[2]));`;
/** Sends one datagram, and prints the answer; ends with 1 after a second without any. */
const CLIENT = `const socket = require('node:dgram').createSocket('udp4');
const end = (code) => { socket.close(); process.exitCode = code; };
const timer = setTimeout(() => end(1), 1000);
socket.on('error', () => { clearTimeout(timer); end(1); });
socket.on('message', (answer) => { clearTimeout(timer); console.log(String(answer)); end(0); });
socket.connect(Number(process.argv[2]), process.argv[1], () => socket.send('?'));`;

/** `network`: the file of the namespace. Answers each datagram with `name` until it is stopped. */
export function udpServer(network: string, name: string, port: number): { readonly stop: () => Promise<void> } {
  const args = [`--net=${network}`, process.execPath, '-e', SERVER, name, String(port)];
  const child = spawn('nsenter', args, { stdio: ['ignore', 'ignore', 'inherit'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  return {
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** What is answered; undefined: nothing. From this process's network, or from another one. */
export async function udpAnswer(address: string, port: number, network?: string): Promise<string | undefined> {
  const command = [process.execPath, '-e', CLIENT, address, String(port)];
  const [file = '', ...args] = network === undefined ? command : ['nsenter', `--net=${network}`, ...command];
  const { code, stdout } = await exec(file, args, { timeoutMs: 20_000 });
  return code === 0 ? stdout.trim() : undefined;
}
