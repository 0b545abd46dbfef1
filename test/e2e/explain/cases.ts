// What explain answers for each broken pod of broken.ts, and for those that are well.

import { existsSync } from 'node:fs';

export interface Case {
  readonly pod: string;
  readonly rule: string;
  readonly verdict: RegExp;
  /** A call that is in the chain, as "NAME → TO: ANSWER". */
  readonly call?: RegExp;
  readonly details?: RegExp;
  readonly text?: RegExp;
}

export const cases: readonly Case[] = [
  // Pending
  {
    pod: 'too-big',
    rule: 'no-node-fits',
    verdict: /^no node .*takes it: too little cpu$/,
    text: /cpu: 1000 requested, .* free \(\d+ allocatable, .* requested by \d+ pods?\)/,
  },
  {
    pod: 'selective',
    rule: 'no-node-fits',
    verdict: /its labels do not match/,
    text: /nodeSelector wants disk=ssd, the node has no label disk/,
  },
  {
    pod: 'lonely',
    rule: 'no-node-fits',
    verdict: /its pod affinity is not met/,
    text: /pod affinity wants a pod with app=company in kubernetes\.io\/hostname=\S+; there is none/,
  },
  {
    pod: 'spread',
    rule: 'no-node-fits',
    verdict: /its topology spread constraints are not met/,
    text: /topology spread over explain\/zone: the node has no such label/,
  },
  { pod: 'gated', rule: 'scheduling-gate', verdict: /waits for scheduling gate example\.com\/approval to be removed/ },
  { pod: 'unscheduled', rule: 'no-scheduler', verdict: /no scheduler named absent has considered it/ },
  {
    pod: 'port-second',
    rule: 'no-node-fits',
    verdict: /host port \d+ is taken/,
    text: /belongs to pod .*\/port-first/,
  },
  {
    pod: 'claimless',
    rule: 'claim-not-bound',
    verdict: /uses claim nowhere, which does not exist/,
    call: /GET persistentvolumeclaims\/nowhere → the API server: not found/,
  },
  { pod: 'unbound', rule: 'claim-not-bound', verdict: /claim classless waits for a PersistentVolume that fits/ },
  // ContainerCreating
  {
    pod: 'no-configmap',
    rule: 'volume-object-missing',
    verdict: /volume data cannot be mounted: ConfigMap setings does not exist \(there is one called settings\)/,
    call: /GET configmaps\/setings → the API server: configmaps "setings" not found/,
  },
  { pod: 'no-secret', rule: 'volume-object-missing', verdict: /volume data .*Secret password does not exist/ },
  { pod: 'no-key', rule: 'volume-object-missing', verdict: /ConfigMap settings has no key color \(it has colour\)/ },
  {
    pod: 'no-driver',
    rule: 'csi-driver-missing',
    verdict: /volume data needs CSI driver none\.example\.com, which is not registered on node/,
    call: /none\.example\.com: .*none\.example\.com/,
  },
  {
    pod: 'no-directory',
    rule: 'volume-failed',
    verdict: /volume data cannot be mounted: .*nonexistent-directory/,
    call: /MountVolume.SetUp → the node: .*not a directory/,
  },
  {
    pod: 'no-handler',
    rule: 'runtime-class',
    verdict: /RuntimeClass explain-odd names handler no-such-handler, which the container runtime .* does not have/,
    call: /RunPodSandbox → the container runtime: .*no-such-handler/,
  },
  // Config and start
  { pod: 'env-configmap', rule: 'environment-missing', verdict: /variable WANTED .*ConfigMap setings does not exist/ },
  { pod: 'env-key', rule: 'environment-missing', verdict: /ConfigMap settings has no key color \(it has colour\)/ },
  { pod: 'env-secret', rule: 'environment-missing', verdict: /Secret password does not exist/ },
  { pod: 'root-user', rule: 'run-as-non-root', verdict: /may not run as root .*would run as root/ },
  {
    pod: 'no-command',
    rule: 'container-start',
    verdict: /its command no-such-program is not in the image/,
    call: /StartContainer → the container runtime: .*executable file not found/,
  },
  { pod: 'no-permission', rule: 'container-start', verdict: /\/etc\/passwd cannot be executed \(permission denied\)/ },
  {
    pod: 'no-seccomp',
    rule: 'container-start',
    verdict: /seccomp profile .*none\.json cannot be loaded/,
    call: /CreateContainer → the container runtime: .*none\.json/,
  },
  {
    pod: 'no-directory-to-work',
    rule: 'container-start',
    verdict: /its working directory \/etc\/passwd cannot be made \(not a directory\)/,
    call: /StartContainer → the container runtime: .*not a directory/,
  },
  {
    pod: 'file-over-directory',
    rule: 'container-start',
    verdict: /a directory is mounted over a file, or the other way round/,
  },
  {
    pod: 'below-read-only',
    rule: 'container-start',
    verdict: /a mount point cannot be made, its file system is read-only/,
    call: /StartContainer → the container runtime: .*\/data\/more.*read-only file system/,
  },
  {
    pod: 'private-mount',
    rule: 'container-start',
    verdict: /mountPropagation needs a shared mount on the node/,
    call: /CreateContainer → the container runtime: .*not a shared mount/,
  },
  {
    pod: 'no-memory',
    rule: 'sandbox-failed',
    verdict: /its cgroup has too little memory for the sandbox itself/,
  },
  // CrashLoopBackOff
  {
    pod: 'exits',
    rule: 'crash-loop',
    verdict: /ends again and again with exit code 3$/,
    details: /cannot open the database/,
  },
  { pod: 'completes', rule: 'crash-loop', verdict: /exit code 0, and restartPolicy Always starts it again/ },
  { pod: 'segfaults', rule: 'crash-loop', verdict: /exit code 139: SIGSEGV, it used memory that is not its own/ },
  {
    pod: 'oom',
    rule: 'out-of-memory',
    verdict: /needs more memory than its limit of 16 MiB/,
    call: /oom-kill → the kernel: SIGKILL/,
    text: /the most that the pod has used is/,
  },
  { pod: 'unhealthy', rule: 'probe-kills', verdict: /because its liveness probe fails: the cache is cold/ },
  { pod: 'slow-start', rule: 'probe-kills', verdict: /because its startup probe fails: the cache is cold/ },
  { pod: 'hook', rule: 'hook-failed', verdict: /postStart hook fails: .*exited with 7/ },
  {
    pod: 'hook-ends-late',
    rule: 'hook-failed',
    verdict: /postStart hook fails: .*exited with 8/,
    text: /container main is being ended, with 1 h of grace/,
  },
  { pod: 'init-runs', rule: 'starting', verdict: /init container prepare runs; the others wait for it to succeed/ },
  {
    pod: 'init-fails',
    rule: 'crash-loop',
    verdict: /init container prepare ends .* exit code 4/,
    details: /no schema/,
  },
  // Running, not Ready
  {
    pod: 'refused',
    rule: 'probe-fails',
    verdict: /its readiness probe fails: .*connection refused/,
    call: /readiness probe → container main: .*connection refused, .* after its start/,
  },
  { pod: 'unready', rule: 'probe-fails', verdict: /its readiness probe fails: the cache is cold/ },
  { pod: 'starts-long', rule: 'probe-fails', verdict: /its startup probe fails: the cache is cold/ },
  { pod: 'readiness-gate', rule: 'readiness-gate', verdict: /readiness gate example\.com\/balancer is not set/ },
  // Ended
  {
    pod: 'out-of-cpu',
    rule: 'rejected',
    verdict: /refused it: it has too little cpu left/,
    text: /the pod requested 1000 cpu; of the node’s \d+ cpu, .* were in use, .* free/,
  },
  { pod: 'wrong-node', rule: 'rejected', verdict: /labels do not match/, text: /disk=ssd \(it has no such label\)/ },
  {
    pod: 'wrong-zone',
    rule: 'rejected',
    verdict: /labels do not match/,
    text: /node affinity demands explain\/zone In \(moon, mars\); the node has no label explain\/zone/,
  },
  {
    pod: 'preempted',
    rule: 'rejected',
    verdict: /preempted it: a critical pod needed the room/,
    text: /priority 0; it requested \d+m? cpu\npod .*\/critical is there with priority 2000001000; it requests \d+m? cpu/,
  },
  // The kernel of most machines has no AppArmor, and the agent then refuses the pod itself.
  ...(existsSync('/sys/module/apparmor')
    ? [{ pod: 'confined', rule: 'container-start', verdict: /its AppArmor profile cannot be used/ }]
    : [{ pod: 'confined', rule: 'rejected', verdict: /the pod’s AppArmor profile cannot be used on the node/ }]),
  { pod: 'late', rule: 'deadline-exceeded', verdict: /it was ended after 1 s, as its activeDeadlineSeconds demands/ },
  {
    pod: 'gives-up',
    rule: 'failed',
    verdict: /container main failed with exit code 5, and restartPolicy Never/,
    details: /no licence/,
  },
  { pod: 'finished', rule: 'succeeded', verdict: /it has finished/ },
  // Nothing wrong
  { pod: 'healthy', rule: 'ready', verdict: /^it is Ready/ },
];
