// Removes flows from the kernel's table of connections, by netlink: what `conntrack -D` does, without the program.

import { createRequire } from 'node:module';
import { errorMessage } from '../../lib/errors.ts';
import type { SpanAttributes, Tracer } from '../../lib/trace.ts';
import type { Flow } from './flows.ts';

const NETLINK_NETFILTER = 12;
/** NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE */
const CT_DELETE = (1 << 8) | 2;
const AF_INET = 2;
const NESTED = 0x8000;
const UDP = 17;
/** NLM_F_REQUEST, NLM_F_ACK */
const [REQUEST, ACK] = [1, 4];
const TIMEOUT_MS = 5_000;

type CreateNetlink = typeof import('netlink')['createNetlink'];

function isSocketLayer(value: unknown): value is { createNetlink: CreateNetlink } {
  return typeof value === 'object' && value !== null && 'createNetlink' in value;
}

/** struct nlattr: its length, its type, its value, padded to four bytes. Pure. */
function attribute(type: number, value: Buffer): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt16LE(value.length + 4, 0);
  head.writeUInt16LE(type, 2);
  return Buffer.concat([head, value, Buffer.alloc((4 - (value.length % 4)) % 4)]);
}

const address = (text: string): Buffer => Buffer.from(text.split('.').map(Number));

function port(number: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(number);
  return bytes;
}

/** struct nfgenmsg, and CTA_TUPLE_ORIG. Pure. */
export function deletionBody(flow: Flow): Buffer {
  const addresses = Buffer.concat([attribute(1, address(flow.source)), attribute(2, address(flow.destination))]);
  const protocol = Buffer.concat([
    attribute(1, Buffer.from([UDP])),
    attribute(2, port(flow.sourcePort)),
    attribute(3, port(flow.destinationPort)),
  ]);
  const tuple = Buffer.concat([attribute(1 | NESTED, addresses), attribute(2 | NESTED, protocol)]);
  return Buffer.concat([Buffer.from([AF_INET, 0, 0, 0]), attribute(1 | NESTED, tuple)]);
}

function attributesOf({ source, sourcePort, destination, destinationPort }: Flow): SpanAttributes {
  return { source: `${source}:${sourcePort}`, destination: `${destination}:${destinationPort}` };
}

/** One that has gone meanwhile is none the worse. Rejects with the kernel's refusal. */
export async function deleteFlows(flows: readonly Flow[], tracer: Tracer): Promise<void> {
  if (flows.length === 0) return;
  const loaded: unknown = createRequire(import.meta.url)('netlink/dist/netlink.js');
  if (!isSocketLayer(loaded)) throw new Error('the package netlink has no createNetlink');
  const socket = loaded.createNetlink(NETLINK_NETFILTER);
  try {
    for (const flow of flows) {
      try {
        await tracer.span('netlink', 'CT_DELETE', attributesOf(flow), () =>
          socket.request(CT_DELETE, deletionBody(flow), { flags: REQUEST | ACK, timeout: TIMEOUT_MS }),
        );
      } catch (error) {
        // The package has the name of the error in its message alone.
        if (!errorMessage(error).includes('ENOENT')) throw error;
      }
    }
  } finally {
    socket.close();
  }
}
