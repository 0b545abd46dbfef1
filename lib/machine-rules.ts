// Firewall dumps as comparable lines: without counters and comments, and without the tables that the iptables command
// creates when it only lists. Pure.

const ACCEPTING_BUILTIN = /^:(PREROUTING|INPUT|FORWARD|OUTPUT|POSTROUTING) ACCEPT$/;

/** Lines of iptables-save, each with its table: "nat -A POSTROUTING …", "nat :CNI-HOSTPORT-DNAT -". */
export function normaliseIptables(saved: string): readonly string[] {
  const lines: string[] = [];
  let table = '';
  for (const raw of saved.split('\n')) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#') || line === 'COMMIT') continue;
    if (line.startsWith('*')) {
      table = line.slice(1);
      continue;
    }
    const bare = line.replace(/ ?\[\d+:\d+\] ?/, '');
    if (!ACCEPTING_BUILTIN.test(bare)) lines.push(`${table} ${bare}`);
  }
  return lines;
}

/** Lines of `nft list ruleset`, each with its table and chain (or set) in front. */
export function normaliseNft(ruleset: string): readonly string[] {
  const lines: string[] = [];
  const stack: string[] = [];
  for (const raw of ruleset.split('\n')) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    if (line === '}') {
      stack.pop();
      continue;
    }
    if (line.endsWith('{')) {
      stack.push(line.slice(0, -1).trim());
      // A regular chain counts even when it is empty; a table or base chain only by what is in it.
      if (line.startsWith('chain ') && !isBaseChainName(line)) lines.push(stack.join(' > '));
      continue;
    }
    if (/^type \w+ hook \w+ .*policy accept;$/.test(line)) continue;
    lines.push([...stack, line.replace(/counter packets \d+ bytes \d+/, 'counter')].join(' > '));
  }
  return lines;
}

function isBaseChainName(line: string): boolean {
  return /^chain (PREROUTING|INPUT|FORWARD|OUTPUT|POSTROUTING) \{$/.test(line);
}
