// Which end-to-end tests need no containerd and no lab: they are the vitest project `services`. A test of this list holds
// it to that (test/unit/scripts/services.test.ts).

export const SERVICES: readonly string[] = [
  'test/e2e/agent/alone.test.ts',
  'test/e2e/apiserver/*.test.ts',
  'test/e2e/cni/{cleanup,netlink,runtime,shim}.test.ts',
  'test/e2e/conformance/*.test.ts',
  'test/e2e/controlplane/*.test.ts',
  'test/e2e/csi-agent/{groups,kill,local}.test.ts',
  'test/e2e/csi-driver/{crash,disks,sanity,strict}.test.ts',
  'test/e2e/disk/writers.test.ts',
  'test/e2e/dns/server.test.ts',
  'test/e2e/experiment/command.test.ts',
  'test/e2e/kubectl/*.test.ts',
  'test/e2e/lab/not-root.test.ts',
  'test/e2e/netpol/kernel.test.ts',
  'test/e2e/proxy/kernel.test.ts',
  'test/e2e/setup/{kubectls,setup,vm-guardian}.test.ts',
  'test/e2e/storage/{claims,kubectl}.test.ts',
  'test/e2e/volumes/{hanging-programs,linked-root,race,remove-tree,volumes}.test.ts',
];
