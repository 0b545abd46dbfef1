import { describe, expect, test } from 'vitest';
import { CgroupV1Reader } from '../../../../agent/stats/cgroup-v1.ts';
import { CgroupV2Reader, sharesOfWeight } from '../../../../agent/stats/cgroup-v2.ts';

const POD = '/kubepods/podu1';

function reader(version: 1 | 2, files: Readonly<Record<string, string>>) {
  const read = (path: string): string | undefined => files[path];
  const directories = (path: string): readonly string[] => (path.endsWith(POD) ? ['box', 'abc'] : []);
  return version === 2
    ? new CgroupV2Reader({ mountPoint: '/cg', read, directories, example: POD })
    : new CgroupV1Reader({
        mounts: new Map(['cpu', 'cpuacct', 'memory', 'pids', 'blkio'].map((name) => [name, `/cg/${name}`])),
        read,
        directories,
        example: POD,
      });
}

/** Files of the pod's cgroup, below each mount. */
function v1(files: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(files).map(([name, text]) => {
      const [controller = '', ...file] = name.split('/');
      return [`/cg/${controller}${POD}/${file.join('/')}`, text];
    }),
  );
}

const V1 = v1({
  'cpuacct/cpuacct.usage': '12345678901\n',
  'cpuacct/cpuacct.stat': 'user 900\nsystem 300\n',
  'cpu/cpu.stat': 'nr_periods 50\nnr_throttled 7\nthrottled_time 250000000\n',
  'cpu/cpu.shares': '102\n',
  'cpu/cpu.cfs_period_us': '100000\n',
  'cpu/cpu.cfs_quota_us': '20000\n',
  'memory/memory.usage_in_bytes': '10000\n',
  'memory/memory.stat':
    'cache 1\nrss 2\npgfault 3\ninactive_file 0\nhierarchical_memory_limit 9\ntotal_cache 4000\ntotal_rss 5000\n' +
    'total_mapped_file 600\ntotal_swap 70\ntotal_pgfault 80\ntotal_pgmajfault 9\ntotal_inactive_file 1500\ntotal_active_file 2500\n',
  'memory/memory.max_usage_in_bytes': '20000\n',
  'memory/memory.failcnt': '3\n',
  'memory/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 2\n',
  'memory/memory.limit_in_bytes': '134217728\n',
  'memory/memory.memsw.limit_in_bytes': '9223372036854771712\n',
  'memory/memory.soft_limit_in_bytes': '9223372036854771712\n',
  'memory/cgroup.procs': '12\n34\n',
  'pids/pids.current': '5\n',
  'pids/pids.max': 'max\n',
  'blkio/blkio.throttle.io_service_bytes_recursive': '8:0 Read 10\n8:0 Write 20\nTotal 30\n',
  'blkio/blkio.throttle.io_serviced_recursive': '8:0 Read 1\n8:0 Write 2\nTotal 3\n',
});

const V2 = Object.fromEntries(
  Object.entries({
    'cpu.stat':
      'usage_usec 12345678\nuser_usec 9000000\nsystem_usec 3000000\nnr_periods 50\nnr_throttled 7\nthrottled_usec 250000\n',
    'cpu.weight': '4\n',
    'cpu.max': '20000 100000\n',
    'memory.current': '10000\n',
    'memory.stat':
      'anon 5000\nfile 4000\nkernel 400\nfile_mapped 600\ninactive_anon 1\nactive_anon 2\ninactive_file 1500\nactive_file 2500\npgfault 80\npgmajfault 9\n',
    'memory.peak': '20000\n',
    'memory.events': 'low 0\nhigh 0\nmax 3\noom 2\noom_kill 2\noom_group_kill 0\n',
    'memory.swap.current': '70\n',
    'memory.swap.max': '0\n',
    'memory.max': '134217728\n',
    'memory.min': '0\n',
    'pids.current': '5\n',
    'pids.max': '100\n',
    'cgroup.procs': '12\n34\n',
    'io.stat': '8:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n',
    'memory.pressure':
      'some avg10=0.00 avg60=0.00 avg300=0.00 total=11\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n',
  }).map(([file, text]) => [`/cg${POD}/${file}`, text]),
);

describe.each([
  [1, V1],
  [2, V2],
] as const)('a pod’s cgroup, version %s', (version, files) => {
  const cgroup = reader(version, files);

  test('processor time', () => {
    const usageNs = version === 1 ? 12_345_678_901 : 12_345_678_000;
    expect(cgroup.cpuUsage(POD)).toBe(usageNs);
    expect(cgroup.cpu(POD)).toEqual({
      usageNs,
      userNs: 9e9,
      systemNs: 3e9,
      periods: 50,
      throttledPeriods: 7,
      throttledNs: 250_000_000,
    });
  });

  test('memory, with everything below', () => {
    const few = {
      usage: 10_000,
      workingSet: 8_500,
      rss: 5_000,
      cache: 4_000,
      mappedFile: 600,
      swap: 70,
      pageFaults: 80,
      majorPageFaults: 9,
    };
    const kernel = version === 1 ? {} : { kernel: 400 };
    const more = { maxUsage: 20_000, failures: 3, oomKills: 2 };
    expect(cgroup.memory(POD, false)).toEqual({ ...few, ...kernel });
    expect(cgroup.memory(POD, true)).toEqual({ ...few, ...kernel, ...more });
  });

  test('threads, processes and disks', () => {
    expect(cgroup.threads(POD)).toBe(5);
    expect(cgroup.processes(POD)).toEqual([12, 34]);
    expect(cgroup.io(POD)).toEqual([{ device: '8:0', readBytes: 10, writtenBytes: 20, reads: 1, writes: 2 }]);
    expect(cgroup.children(POD)).toEqual(['box', 'abc']);
  });

  test('limits: those that there are', () => {
    const common = {
      cpuShares: version === 1 ? 102 : 80,
      cpuPeriodUs: 100_000,
      cpuQuotaUs: 20_000,
      memory: 134_217_728,
    };
    expect(cgroup.limits(POD)).toEqual(
      version === 1 ? common : { ...common, memoryReservation: 0, swap: 0, tasks: 100 },
    );
  });

  test('a cgroup that is gone has no figures', () => {
    expect(cgroup.cpu('/gone')).toBeUndefined();
    expect(cgroup.cpuUsage('/gone')).toBeUndefined();
    expect(cgroup.memory('/gone', true)).toBeUndefined();
    expect(cgroup.processes('/gone')).toEqual([]);
    expect(cgroup.io('/gone')).toEqual([]);
    expect(cgroup.pressure('/gone')).toEqual({});
    expect(cgroup.limits('/gone')).toEqual({});
  });
});

test('pressure is cgroup v2’s, of the resources that the kernel measures', () => {
  expect(reader(1, V1).pressure(POD)).toEqual({});
  const line = { avg10: 0, avg60: 0, avg300: 0 };
  expect(reader(2, V2).pressure(POD)).toEqual({
    memory: { some: { ...line, total: 11 }, full: { ...line, total: 5 } },
  });
});

test('the root of cgroup v2: what it lacks comes from its sum and from /proc', () => {
  const root = reader(2, {
    '/cg/cpu.stat': 'usage_usec 5\nuser_usec 3\nsystem_usec 2\n',
    '/cg/memory.stat': 'anon 300\nfile 200\ninactive_file 50\n',
    '/proc/meminfo': 'MemTotal: 8 kB\nSwapTotal:       10 kB\nSwapFree:         4 kB\n',
  });
  expect(root.cpuUsage('/')).toBe(5_000);
  expect(root.memory('/', true)).toMatchObject({ usage: 500, workingSet: 450, swap: 6 * 1024 });
  expect(root.threads('/')).toBeUndefined();
  expect(root.limits('/')).toEqual({});
});

test('a kernel without swap accounting and block devices: no such figures', () => {
  const few = Object.fromEntries(Object.entries(V1).filter(([path]) => !/memsw|oom_control|blkio/.test(path)));
  const cgroup = reader(1, few);
  expect(cgroup.memory(POD, true)).not.toHaveProperty('oomKills');
  expect(cgroup.limits(POD)).not.toHaveProperty('swap');
  expect(cgroup.io(POD)).toEqual([]);
});

test.each([
  [1, 2],
  [100, 2597],
  [10_000, 262_144],
])('a weight of %s is %s shares', (weight, shares) => {
  expect(sharesOfWeight(weight)).toBe(shares);
});
