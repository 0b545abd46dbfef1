import { describe, expect, it } from 'vitest';
import { diffMachine, MACHINE_PARTS, type MachineSnapshot, ownerOf } from '../../../lib/machine.ts';
import { normaliseIptables, normaliseNft } from '../../../lib/machine-rules.ts';
import type { ProcessEntry } from '../../../lib/processes.ts';

function snapshot(parts: Partial<Record<(typeof MACHINE_PARTS)[number], readonly string[]>>): MachineSnapshot {
  const map = (texts: readonly string[] = []): ReadonlyMap<string, string> =>
    new Map(texts.map((text) => [text, text]));
  return {
    process: map(parts.process),
    mount: map(parts.mount),
    'loop device': map(parts['loop device']),
    'network namespace': map(parts['network namespace']),
    link: map(parts.link),
    address: map(parts.address),
    route: map(parts.route),
    'iptables rule': map(parts['iptables rule']),
    'ip6tables rule': map(parts['ip6tables rule']),
    'nftables rule': map(parts['nftables rule']),
    cgroup: map(parts.cgroup),
    path: map(parts.path),
  };
}

describe('comparing two looks at a machine', () => {
  it.each(MACHINE_PARTS)('reports a %s that was left behind', (part) => {
    expect(diffMachine(snapshot({}), snapshot({ [part]: ['x'] }))).toEqual([`left behind: ${part} x`]);
  });

  it.each(MACHINE_PARTS.filter((part) => part !== 'process'))('tells a %s that is gone', (part) => {
    const text = 'net:[1] at /kubepods/x';
    expect(diffMachine(snapshot({ [part]: [text] }), snapshot({}))).toEqual([`gone: ${part} ${text}`]);
  });

  it('ignores a cgroup of another program that is gone with it', () => {
    expect(diffMachine(snapshot({ cgroup: ['/sys/fs/cgroup/memory/tool/1'] }), snapshot({}))).toEqual([]);
  });

  it.each([
    ['below one that somebody else had before', ['/sys/fs/cgroup/memory/tool'], '/sys/fs/cgroup/memory/tool/2/x', []],
    [
      'of a pod below it',
      ['/c/memory/tool'],
      '/c/memory/tool/kubepods',
      ['left behind: cgroup /c/memory/tool/kubepods'],
    ],
    ['of its own beside it', ['/c/memory/tool'], '/c/memory/tool2', ['left behind: cgroup /c/memory/tool2']],
    ['below one of a lab', ['/c/nodelet-1'], '/c/nodelet-1/x', ['left behind: cgroup /c/nodelet-1/x']],
  ])('a new cgroup %s', (_where, before, made, lines) => {
    expect(diffMachine(snapshot({ cgroup: before }), snapshot({ cgroup: [...before, made] }))).toEqual(lines);
  });

  it('does not mind a process that was there before and has ended, nor the network namespace that it alone was in', () => {
    const before = snapshot({ process: ['1 x'], 'network namespace': ['net:[1]'] });
    expect(diffMachine(before, snapshot({}))).toEqual([]);
  });

  it('says nothing when nothing differs', () => {
    const same = snapshot({ link: ['lo'], mount: ['/'] });
    expect(diffMachine(same, same)).toEqual([]);
  });

  it('can be limited to what mentions certain words', () => {
    const after = snapshot({ link: ['nl-1234', 'docker0'] });
    expect(diffMachine(snapshot({}), after, { mentioning: ['1234'] })).toEqual(['left behind: link nl-1234']);
  });
});

describe('whose process it is', () => {
  const entry = (pid: number, ppid: number, comm = 'sh'): ProcessEntry => ({
    pid,
    ppid,
    comm,
    startTime: 1,
    state: 'S',
    argv: [comm],
  });
  const table = [
    entry(10, 1, 'sshd'),
    entry(11, 10),
    entry(20, 11, 'node'),
    entry(21, 20),
    entry(22, 21),
    entry(30, 1, 'containerd-shim'),
    entry(31, 30, 'nginx'),
    entry(40, 11),
    entry(50, 1, 'sleep'),
    entry(51, 1, 'httpd'),
    entry(60, 1, 'apt-daily'),
    entry(70, 1, 'containerd'),
  ];
  const cgroups = new Map([
    [10, '0::/user.slice/session-1.scope'],
    [20, '0::/user.slice/session-1.scope'],
    [50, '0::/user.slice/session-1.scope'],
    [51, '0::/kubepods.slice/kubepods-besteffort.slice/x.scope'],
    [60, '0::/system.slice/apt-daily.service'],
  ]);
  const byPid = new Map(table.map((each) => [each.pid, each]));
  it.each([
    [22, 'ours', 'a descendant'],
    [30, 'ours', 'an orphan'],
    [31, 'ours', 'a container below an orphaned shim'],
    [50, 'ours', 'an orphan of any name in our own cgroup'],
    [51, 'ours', 'an orphan in the cgroup of a pod'],
    [60, 'other', 'a service that the machine started meanwhile'],
    [40, 'other', 'a job of the login that also started us'],
    [10, 'other', 'what we descend from, though init is its parent'],
  ])('%i is %s: %s', (pid, owner) => {
    const found = byPid.get(pid);
    if (found === undefined) throw new Error('no such process in the table');
    expect(ownerOf(found, byPid, 20, (of) => cgroups.get(of))).toBe(owner);
  });

  it.each([
    [22, 'ours', 'a descendant, whatever its environment'],
    [30, 'ours', 'an orphan with the mark'],
    [31, 'ours', 'a container below an orphaned shim with the mark'],
    [50, 'other', 'an orphan without the mark, in our own cgroup'],
    [51, 'ours', 'an orphan in the cgroup of a pod, which has an environment of its own'],
    [60, 'other', 'a service that the machine started meanwhile'],
    [70, 'other', 'the machine’s own containerd'],
  ])('%i is %s where all that we start carries a mark: %s', (pid, owner) => {
    const found = byPid.get(pid);
    if (found === undefined) throw new Error('no such process in the table');
    expect(
      ownerOf(
        found,
        byPid,
        20,
        (of) => cgroups.get(of),
        (of) => of === 30,
      ),
    ).toBe(owner);
  });
});

describe('iptables-save', () => {
  it('is compared without counters, comments and untouched built-in chains', () => {
    const saved = `# Generated by iptables-save
*nat
:PREROUTING ACCEPT [12:345]
:CNI-HOSTPORT-DNAT - [0:0]
[3:99] -A PREROUTING -j CNI-HOSTPORT-DNAT
COMMIT
*filter
:FORWARD DROP [7:8]
COMMIT
`;
    expect(normaliseIptables(saved)).toEqual([
      'nat :CNI-HOSTPORT-DNAT -',
      'nat -A PREROUTING -j CNI-HOSTPORT-DNAT',
      'filter :FORWARD DROP',
    ]);
  });
});

describe('the nftables ruleset', () => {
  it('is nothing when there are only the tables that iptables makes by looking', () => {
    const ruleset = `table ip nat {
	chain POSTROUTING {
		type nat hook postrouting priority srcnat; policy accept;
	}
}
`;
    expect(normaliseNft(ruleset)).toEqual([]);
  });

  it('names table and chain of each rule, without counters', () => {
    const ruleset = `table ip nat {
	chain POSTROUTING {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr 10.0.0.1 counter packets 5 bytes 300 masquerade
	}
	chain CNI-X {
	}
}
table inet own {
	chain input {
		type filter hook input priority filter; policy drop;
	}
}
`;
    expect(normaliseNft(ruleset)).toEqual([
      'table ip nat > chain POSTROUTING > ip saddr 10.0.0.1 counter masquerade',
      'table ip nat > chain CNI-X',
      'table inet own > chain input',
      'table inet own > chain input > type filter hook input priority filter; policy drop;',
    ]);
  });
});
