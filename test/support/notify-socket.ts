// systemd's end of sd_notify(3): a datagram socket that prints what comes, with the sender's credentials by the kernel.
// In Perl, because Node has no such sockets.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const LISTENER = `
use Socket;
$| = 1;
my $recvmsg = (qx(uname -m) =~ /aarch64/) ? 212 : 47;
socket(my $socket, PF_UNIX, SOCK_DGRAM, 0) or die "socket: $!";
bind($socket, sockaddr_un($ARGV[0])) or die "bind: $!";
# SO_PASSCRED
setsockopt($socket, SOL_SOCKET, 16, pack("i", 1)) or die "setsockopt: $!";
print "listening\\n";
for (;;) {
  my ($text, $control) = ("\\0" x 4096, "\\0" x 256);
  my $vector = pack("PQ", $text, 4096);
  my $header = pack("QIx4PQPQiI", 0, 0, $vector, 1, $control, 256, 0, 0);
  my $length = syscall($recvmsg, fileno($socket), $header, 0);
  die "recvmsg: $!" if $length < 0;
  my (undef, undef, undef, $pid) = unpack("QiiI", $control);
  print "$pid " . substr($text, 0, $length) . "\\n";
}
`;

export interface Notification {
  readonly pid: number;
  readonly message: string;
}

export interface NotifySocket {
  /** What has come so far. */
  readonly notifications: readonly Notification[];
  close(): Promise<void>;
}

/** Resolves once it listens at `path`. */
export async function listenForNotifications(path: string): Promise<NotifySocket> {
  const child = spawn('perl', ['-e', LISTENER, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const notifications: Notification[] = [];
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', () => reject(new Error('the listener has ended')));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [, pid, message] = /^(\d+) (.*)$/.exec(line) ?? [];
      if (line === 'listening') resolve();
      else if (message !== undefined) notifications.push({ pid: Number(pid), message });
    });
  });
  return {
    notifications,
    async close() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
