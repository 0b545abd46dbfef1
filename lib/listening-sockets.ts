// The sockets that listen, from the kernel's tables /proc/net/tcp and its like. Pure.

export interface ListeningSocket {
  /** TCP or UDP. */
  readonly protocol: string;
  readonly port: number;
  /** Reachable from its own network namespace alone. */
  readonly loopback: boolean;
}

const LISTEN = '0A';
/** Of UDP, which has no LISTEN: bound, and connected to none. */
const UNCONNECTED = '07';
const LOOPBACK = /^(?:[0-9A-F]{6}7F|0{24}01000000|0{16}FFFF0000[0-9A-F]{6}7F)$/;

export function parseListening(protocol: 'TCP' | 'UDP', text: string): ListeningSocket[] {
  return text.split('\n').flatMap((line) => {
    const [, address = '', port = '', state = ''] =
      /^\s*\d+: ([0-9A-F]+):([0-9A-F]{4}) \S+ ([0-9A-F]{2}) /.exec(line) ?? [];
    if (state !== (protocol === 'TCP' ? LISTEN : UNCONNECTED)) return [];
    return [{ protocol, port: Number.parseInt(port, 16), loopback: LOOPBACK.test(address) }];
  });
}
