// A process that exchanges directories for links, and back, as fast as it can: what a pod would do that wants a removal to
// follow a link. In Perl, whose calls take a microsecond.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/**
 * Each pair of names is exchanged through a third: the directory is where the link was a moment ago. Names that are not
 * there are no error: the tree is removed and made again meanwhile. Counts the exchanges that worked.
 */
const SCRIPT = `
$| = 1;
my @pairs = map { [split /\\t/, $_] } @ARGV;
my ($swaps, $ended) = (0, 0);
$SIG{TERM} = sub { $ended = 1 };
print "ready\\n";
while (!$ended) {
  for my $pair (@pairs) {
    my ($one, $other) = @$pair;
    next unless rename $one, "$one.kept";
    $swaps++ if rename $other, $one;
    rename "$one.kept", $other;
  }
}
print "swaps $swaps\\n";
`;

export interface Swapper {
  /** Ends the process; resolves to how many exchanges it made. */
  stop(): Promise<number>;
}

/** `pairs`: two paths each, without tabs, that are exchanged until the end. */
export async function startSwapper(pairs: readonly (readonly [string, string])[]): Promise<Swapper> {
  const child = spawn('perl', ['-e', SCRIPT, ...pairs.map((pair) => pair.join('\t'))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  await lines.next();
  return {
    async stop() {
      child.kill('SIGTERM');
      const { value } = await lines.next();
      return Number(/^swaps (\d+)$/.exec(String(value))?.[1] ?? 0);
    },
  };
}
